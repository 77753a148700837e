#include "streamfilter/pg/pg.hpp"

#include "streamfilter/pg/key_types.hpp"

extern "C" {
#include "access/tupdesc.h"
#include "utils/typcache.h"
}

namespace streamfilter::pg {

bool find_direct_method(Oid type, Method* method) {
  switch (type) {
    case BOOLOID: *method = Method::boolean; return true;
    case CHAROID: *method = Method::character; return true;
    case INT2OID: *method = Method::int16; return true;
    case INT4OID:
    case DATEOID: *method = Method::int32; return true;
    case INT8OID:
    case TIMEOID:
    case TIMESTAMPOID:
    case TIMESTAMPTZOID:
    case XID8OID:
    case PG_LSNOID: *method = Method::int64; return true;
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
    case REGDICTIONARYOID: *method = Method::unsigned32; return true;
    case FLOAT4OID: *method = Method::real4; return true;
    case FLOAT8OID: *method = Method::real8; return true;
    case NAMEOID: *method = Method::name; return true;
    case UNKNOWNOID: *method = Method::c_string; return true;
    case TEXTOID:
    case VARCHAROID:
    case BYTEAOID: *method = Method::varlena; return true;
    case BPCHAROID: *method = Method::padded; return true;
    case MACADDROID: *method = Method::six_bytes; return true;
    case MACADDR8OID: *method = Method::eight_bytes; return true;
    case UUIDOID: *method = Method::sixteen_bytes; return true;
    default: return false;
  }
}

TupleDesc row_columns(Oid type) {
  if (type == RECORDOID || get_typtype(type) != TYPTYPE_COMPOSITE) return nullptr;
  return lookup_rowtype_tupdesc(type, -1);
}

Oid find_unhashable(Oid type) {
  check_stack_depth();
  type = getBaseType(type);
  Method method;
  if (type == RECORDOID || find_direct_method(type, &method)) return InvalidOid;
  if (const Oid element = get_element_type(type); OidIsValid(element))
    return find_unhashable(element);
  if (TupleDesc columns = row_columns(type)) {
    Oid culprit = InvalidOid;
    for (int i = 0; i < columns->natts && !OidIsValid(culprit); ++i)
      if (!TupleDescAttr(columns, i)->attisdropped)
        culprit = find_unhashable(TupleDescAttr(columns, i)->atttypid);
    ReleaseTupleDesc(columns);
    return culprit;
  }
  const TypeCacheEntry* entry =
      lookup_type_cache(type, TYPECACHE_HASH_EXTENDED_PROC | TYPECACHE_HASH_PROC);
  return OidIsValid(entry->hash_extended_proc) || OidIsValid(entry->hash_proc) ? InvalidOid : type;
}

void raise_unhashable(Oid type, Oid culprit, const char* what) {
  const char* advice = culprit == JSONOID ? "Cast it to jsonb."
                                          : "Cast it to a type that has one, for example text.";
  const char* name = format_type_be(culprit);
  if (what == nullptr) what = "the key";
  if (type == culprit)
    ereport(ERROR, (errcode(ERRCODE_UNDEFINED_FUNCTION),
                    errmsg("could not identify a hash function for type %s", name),
                    errdetail("Keys are compared as by SELECT DISTINCT, through the default hash "
                              "operator class of their type; that of %s has none.",
                              what),
                    errhint("%s", advice)));
  ereport(ERROR, (errcode(ERRCODE_UNDEFINED_FUNCTION),
                  errmsg("could not identify a hash function for type %s", name),
                  errdetail("Keys are compared as by SELECT DISTINCT, through the default hash "
                            "operator class of their type; %s is of type %s, which contains %s.",
                            what, format_type_be(type), name),
                  errhint("%s", advice)));
  pg_unreachable();
}

bool is_hashable(Oid type) { return !OidIsValid(find_unhashable(type)); }

bool hashes_to_32_bits(Oid type) {
  type = getBaseType(type);
  Method method;
  if (type == RECORDOID || find_direct_method(type, &method)) return false;
  if (const Oid element = get_element_type(type); OidIsValid(element))
    return hashes_to_32_bits(element);
  if (get_typtype(type) == TYPTYPE_COMPOSITE) return false;  // several columns make more bits
  const TypeCacheEntry* entry =
      lookup_type_cache(type, TYPECACHE_HASH_EXTENDED_PROC | TYPECACHE_HASH_PROC);
  return !OidIsValid(entry->hash_extended_proc) && OidIsValid(entry->hash_proc);
}

}  // namespace streamfilter::pg
