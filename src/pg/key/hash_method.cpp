#include "pg/server/postgres.hpp"

extern "C" {
#include "catalog/pg_language.h"
}

#include "pg/key/enum_births.hpp"
#include "pg/key/hash_method.hpp"

namespace streamfilter::pg {

// Method::procedure: of no such type.
static Method method_of_built_in(Oid type) {
  switch (type) {
    case BOOLOID: return Method::boolean;
    case CHAROID: return Method::character;
    case INT2OID: return Method::int16;
    case INT4OID:
    case DATEOID: return Method::int32;
    case INT8OID:
    case TIMEOID:
    case TIMESTAMPOID:
    case TIMESTAMPTZOID:
    case XID8OID:
    case PG_LSNOID: return Method::int64;
    case OIDOID:
    case XIDOID:
    case CIDOID:
    case REGPROCOID:
    case REGPROCEDUREOID:
    case REGOPEROID:
    case REGOPERATOROID:
    case REGCLASSOID:
    case REGCOLLATIONOID:
    case REGTYPEOID:
    case REGROLEOID:
    case REGNAMESPACEOID:
    case REGCONFIGOID:
    case REGDICTIONARYOID: return Method::unsigned32;
    case FLOAT4OID: return Method::real4;
    case FLOAT8OID: return Method::real8;
    case NUMERICOID: return Method::numeric;
    case INTERVALOID: return Method::interval;
    case TIMETZOID: return Method::timetz;
    case JSONBOID: return Method::jsonb;
    case UUIDOID:
    case MACADDROID:
    case MACADDR8OID:
    case TIDOID:
    case ACLITEMOID: return Method::fixed;
    case TEXTOID:
    case VARCHAROID:
    case BYTEAOID: return Method::varlena;
    case BPCHAROID: return Method::padded;
    case NAMEOID: return Method::name;
    case UNKNOWNOID: return Method::c_string;
    case RECORDOID: return Method::record;
    default: return Method::procedure;
  }
}

Method method_of(Oid type) {
  if (const Method method = method_of_built_in(type); method != Method::procedure) return method;
  if (OidIsValid(get_element_type(type))) return Method::array;
  switch (get_typtype(type)) {
    case TYPTYPE_COMPOSITE: return Method::record;
    case TYPTYPE_ENUM: return Method::enumeration;
    case TYPTYPE_RANGE: return Method::range;
    case TYPTYPE_MULTIRANGE: return Method::multirange;
    default: break;
  }
  const TypeCacheEntry* entry =
      lookup_type_cache(type, TYPECACHE_HASH_EXTENDED_PROC | TYPECACHE_HASH_PROC);
  return OidIsValid(entry->hash_extended_proc) || !OidIsValid(entry->hash_proc)
             ? Method::procedure
             : Method::procedure32;
}

namespace {

// Types to visit, each once: types can contain types many thousand levels deep, and rows with two
// columns of the same type would double the work at each level.
class TypeQueue {
 public:
  TypeQueue() { known_ = make_hash_table<Oid>("streamfilter types", 64, CurrentMemoryContext); }

  void add(Oid type) {
    type = getBaseType(type);
    bool found;
    hash_search(known_, &type, HASH_ENTER, &found);
    if (!found) types_ = lappend_oid(types_, type);
  }

  // InvalidOid if there is none left.
  Oid next() { return next_ < list_length(types_) ? list_nth_oid(types_, next_++) : InvalidOid; }

  void end() {
    hash_destroy(known_);
    list_free(types_);
  }

 private:
  HTAB* known_;
  List* types_ = NIL;
  int next_ = 0;
};

template <typename Visit>
void for_each_column(Oid type, Visit visit) {
  if (type == RECORDOID) return;
  TupleDesc columns = lookup_rowtype_tupdesc(type, -1);
  for (int i = 0; i < columns->natts; ++i)
    if (!TupleDescAttr(columns, i)->attisdropped) visit(TupleDescAttr(columns, i));
  ReleaseTupleDesc(columns);
}

// The first of the type and the types inside it that is wanted; InvalidOid: there is none.
template <typename IsWanted>
Oid find_inside(Oid type, IsWanted is_wanted) {
  TypeQueue queue;
  queue.add(type);
  Oid found = InvalidOid;
  while (!OidIsValid(found) && OidIsValid(type = queue.next())) {
    CHECK_FOR_INTERRUPTS();
    if (is_wanted(type)) found = type;
    switch (method_of(type)) {
      case Method::array: queue.add(get_element_type(type)); break;
      case Method::range: queue.add(get_range_subtype(type)); break;
      case Method::multirange: queue.add(get_multirange_range(type)); break;
      case Method::record:
        for_each_column(type, [&](const FormData_pg_attribute* row) { queue.add(row->atttypid); });
        break;
      default: break;
    }
  }
  queue.end();
  return found;
}

}  // namespace

Oid find_unhashable(Oid type) {
  return find_inside(type, [](Oid inner) {
    return method_of(inner) == Method::procedure &&
           !OidIsValid(lookup_type_cache(inner, TYPECACHE_HASH_EXTENDED_PROC)->hash_extended_proc);
  });
}

bool contains_type(Oid type, Oid part) {
  return OidIsValid(find_inside(type, [part](Oid inner) { return inner == part; }));
}

Oid find_renamed_enum(Oid type) {
  return find_inside(
      type, [](Oid inner) { return get_typtype(inner) == TYPTYPE_ENUM && has_births(inner); });
}

List* collations_inside(Oid type, Oid collation) {
  List* found = NIL;
  const auto take = [&found](Oid inner) {
    if (inner >= FirstGenbkiObjectId) found = list_append_unique_oid(found, inner);
  };
  take(collation);
  find_inside(type, [&](Oid inner) {
    const Method method = method_of(inner);
    if (method == Method::range)
      take(lookup_type_cache(inner, TYPECACHE_RANGE_INFO)->rng_collation);
    else if (method == Method::record)
      for_each_column(inner, [&](const FormData_pg_attribute* row) { take(row->attcollation); });
    else if (method >= Method::procedure && type_is_collatable(inner))
      found = list_append_unique_oid(found, DEFAULT_COLLATION_OID);
    return false;
  });
  return found;
}

bool unhashable(Oid type, Oid culprit, const char* what, Fault& fault) {
  const char* name = format_type_be(culprit);
  if (what == nullptr) what = "the key";
  fault.set(ERRCODE_UNDEFINED_FUNCTION, "could not identify a hash function for type %s", name);
  if (type == culprit)
    fault.add_detail(
        "Keys are compared as by SELECT DISTINCT, through the default hash operator class of their "
        "type; that of %s has none.",
        what);
  else
    fault.add_detail(
        "Keys are compared as by SELECT DISTINCT, through the default hash operator class of their "
        "type; %s is of type %s, which contains %s.",
        what, format_type_be(type), name);
  return fault.add_hint("%s", culprit == JSONOID
                                  ? "Cast it to jsonb."
                                  : "Cast it to a type that has one, for example text.");
}

bool hashes_to_32_bits(Oid type) {
  type = getBaseType(type);
  const Method method = method_of(type);
  if (method == Method::array) return hashes_to_32_bits(get_element_type(type));
  return method == Method::procedure32;
}

// ---- whose code runs ----------------------------------------------------------------------------

bool is_trusted_function(Oid function) {
  if (function < FirstNormalObjectId) return true;
  const Oid language = read_field(PROCOID, function, &FormData_pg_proc::prolang, InvalidOid);
  return language == ClanguageId || language == INTERNALlanguageId;
}

// Only superusers make C functions, so the symbol is proof enough.
bool is_own_function(Oid function, const char* symbol) {
  bool own = false;
  read_catalog<FormData_pg_proc>(
      PROCOID, function, [&](const FormData_pg_proc& row, HeapTuple tuple) {
        bool isnull = true;
        const Datum source = row.prolang != ClanguageId
                                 ? static_cast<Datum>(0)
                                 : SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_prosrc, &isnull);
        if (isnull) return;
        char* name = TextDatumGetCString(source);
        own = strcmp(name, symbol) == 0;
        pfree(name);
      });
  return own;
}

bool is_trusted_type(Oid type) {
  if (const Oid element = get_element_type(type); OidIsValid(element)) type = element;
  if (type == RECORDOID) return false;
  return type < FirstNormalObjectId || get_typtype(type) == TYPTYPE_BASE;
}

Caller become_owner(Oid relation, Oid owner) {
  Caller caller;
  GetUserIdAndSecContext(&caller.user, &caller.security);
  SetUserIdAndSecContext(owner, caller.security | SECURITY_RESTRICTED_OPERATION);
  caller.guc_level = NewGUCNestLevel();
  char* schema = get_namespace_name(get_rel_namespace(relation));
  char* path = psprintf("pg_catalog, %s, pg_temp", schema ? quote_identifier(schema) : "pg_temp");
  static_cast<void>(set_config_option("search_path", path, PGC_USERSET, PGC_S_SESSION,
                                      GUC_ACTION_SAVE, true, 0, false));
  pfree(path);
  if (schema) pfree(schema);
  return caller;
}

void return_to(const Caller& caller) {
  AtEOXact_GUC(false, caller.guc_level);
  SetUserIdAndSecContext(caller.user, caller.security);
}

}  // namespace streamfilter::pg
