#include "pg/server/postgres.hpp"

#include "pg/key/hash_method.hpp"

extern "C" {
#include "utils/typcache.h"
}

namespace streamfilter::pg {

Method method_of(Oid type) {
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
    default: break;
  }
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

TupleDesc row_columns(Oid type) { return lookup_rowtype_tupdesc(type, -1); }

Oid find_unhashable(Oid type) {
  check_stack_depth();
  type = getBaseType(type);
  switch (method_of(type)) {
    case Method::array: return find_unhashable(get_element_type(type));
    case Method::range: return find_unhashable(get_range_subtype(type));
    case Method::multirange: return find_unhashable(get_multirange_range(type));
    case Method::record: {
      if (type == RECORDOID) return InvalidOid;
      TupleDesc columns = row_columns(type);
      Oid culprit = InvalidOid;
      for (int i = 0; i < columns->natts && !OidIsValid(culprit); ++i)
        if (!TupleDescAttr(columns, i)->attisdropped)
          culprit = find_unhashable(TupleDescAttr(columns, i)->atttypid);
      ReleaseTupleDesc(columns);
      return culprit;
    }
    case Method::procedure: {
      const TypeCacheEntry* entry = lookup_type_cache(type, TYPECACHE_HASH_EXTENDED_PROC);
      return OidIsValid(entry->hash_extended_proc) ? InvalidOid : type;
    }
    default: return InvalidOid;
  }
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

bool hashes_to_32_bits(Oid type) {
  type = getBaseType(type);
  const Method method = method_of(type);
  if (method == Method::array) return hashes_to_32_bits(get_element_type(type));
  return method == Method::procedure32;
}

}  // namespace streamfilter::pg
