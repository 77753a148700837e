#include "pg/server/postgres.hpp"

extern "C" {
#include "access/transam.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_class.h"
#include "catalog/pg_collation.h"
#include "lib/stringinfo.h"
#include "utils/fmgrprotos.h"
}

#include "pg/storage/key_collations.hpp"

namespace streamfilter::pg {
namespace {

const char* installed_version(Oid collation) {
  LOCAL_FCINFO(call, 1);
  InitFunctionCallInfoData(*call, nullptr, 1, InvalidOid, nullptr, nullptr);
  call->args[0].value = ObjectIdGetDatum(collation);
  call->args[0].isnull = false;
  const Datum version = pg_collation_actual_version(call);
  return call->isnull ? "-" : TextDatumGetCString(version);
}

void append_collation(StringInfo lines, const char* column, Oid collation) {
  HeapTuple tuple = SearchSysCache1(COLLOID, ObjectIdGetDatum(collation));
  if (!HeapTupleIsValid(tuple)) return;
  const auto* form = reinterpret_cast<Form_pg_collation>(GETSTRUCT(tuple));
  bool isnull;
  const Datum version = SysCacheGetAttr(COLLOID, tuple, Anum_pg_collation_collversion, &isnull);
  appendStringInfo(
      lines, "%s: %s, OID %u, version %s, installed %s\n", column,
      quote_qualified_identifier(get_namespace_name(form->collnamespace), NameStr(form->collname)),
      collation, isnull ? "-" : TextDatumGetCString(version), installed_version(collation));
  ReleaseSysCache(tuple);
}

int count_columns(Oid relation) {
  HeapTuple tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relation));
  if (!HeapTupleIsValid(tuple)) return 0;
  const int count = reinterpret_cast<Form_pg_class>(GETSTRUCT(tuple))->relnatts;
  ReleaseSysCache(tuple);
  return count;
}

}  // namespace

const char* collations_of(Oid filter) {
  StringInfoData lines;
  initStringInfo(&lines);
  const int columns = count_columns(filter);
  for (int i = 1; i <= columns; ++i) {
    HeapTuple tuple = SearchSysCache2(ATTNUM, ObjectIdGetDatum(filter), Int16GetDatum(i));
    if (!HeapTupleIsValid(tuple)) continue;
    const auto* form = reinterpret_cast<Form_pg_attribute>(GETSTRUCT(tuple));
    if (!form->attisdropped && form->attcollation >= FirstGenbkiObjectId)
      append_collation(&lines, NameStr(form->attname), form->attcollation);
    ReleaseSysCache(tuple);
  }
  return lines.data;
}

}  // namespace streamfilter::pg
