#include "pg/server/postgres.hpp"

extern "C" {
#include "access/transam.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
}

#include "pg/key/trusted_code.hpp"

namespace streamfilter::pg {

bool is_trusted_function(Oid function) {
  if (function < FirstNormalObjectId) return true;
  HeapTuple tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
  if (!HeapTupleIsValid(tuple)) return false;
  const Oid language = reinterpret_cast<Form_pg_proc>(GETSTRUCT(tuple))->prolang;
  ReleaseSysCache(tuple);
  return language == ClanguageId || language == INTERNALlanguageId;
}

bool is_trusted_type(Oid type) {
  if (const Oid element = get_element_type(type); OidIsValid(element)) type = element;
  if (type == RECORDOID) return false;
  return type < FirstNormalObjectId || get_typtype(type) == TYPTYPE_BASE;
}

}  // namespace streamfilter::pg
