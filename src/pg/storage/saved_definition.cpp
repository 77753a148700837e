#include "pg/server/postgres.hpp"

extern "C" {
#include "utils/fmgrprotos.h"
}

#include "core/filter/packed_header.hpp"
#include "pg/key/hash_method.hpp"
#include "pg/storage/saved_definition.hpp"
#include "pg/storage/state_heaps.hpp"

namespace streamfilter::pg {

int64 begin_life() {
  int64 life;
  if (!pg_strong_random(&life, sizeof life))
    ereport(ERROR, errcode(ERRCODE_INTERNAL_ERROR), errmsg("could not generate a random number"));
  return life != 0 ? life : 1;
}

const char* take_parameters(const char* bytes, Size length, const FilterRelation* relation,
                            uint64 columns, Parameters* result) {
  Parameters parameters;
  Size used;
  if (Problem problem; !unpack_header(bytes, length, parameters, used, problem))
    return pstrdup(problem.message);
  if (!is_state_of(relation, parameters, columns))
    return "It belongs to another definition of the filter.";
  *result = parameters;
  result->nulls = relation->definition.parameters.nulls;
  return nullptr;
}

// ---- collations of keys -------------------------------------------------------------------------

static const char* installed_version(Oid collation) {
  const bool of_database = collation == DEFAULT_COLLATION_OID;
  LOCAL_FCINFO(call, 1);
  InitFunctionCallInfoData(*call, nullptr, 1, InvalidOid, nullptr, nullptr);
  call->args[0].value = ObjectIdGetDatum(of_database ? MyDatabaseId : collation);
  call->args[0].isnull = false;
  const Datum version =
      of_database ? pg_database_collation_actual_version(call) : pg_collation_actual_version(call);
  return call->isnull ? "-" : TextDatumGetCString(version);
}

static void append_collation(StringInfo lines, const char* column, Oid collation) {
  const auto append = [&](const FormData_pg_collation& row, HeapTuple tuple) {
    bool isnull;
    const Datum version = SysCacheGetAttr(COLLOID, tuple, Anum_pg_collation_collversion, &isnull);
    appendStringInfo(
        lines, "%s: %s, OID %u, version %s, installed %s\n", column,
        quote_qualified_identifier(get_namespace_name(row.collnamespace), NameStr(row.collname)),
        collation, isnull ? "-" : TextDatumGetCString(version), installed_version(collation));
  };
  read_catalog<FormData_pg_collation>(COLLOID, collation, append);
}

const char* collations_of(Oid filter) {
  TextBuffer lines;
  const int columns = read_field(RELOID, filter, &FormData_pg_class::relnatts, 0);
  for (int i = 1; i <= columns; ++i) {
    const auto append = [&](const FormData_pg_attribute& row, HeapTuple) {
      if (row.attisdropped) return;
      const List* collations = collations_inside(row.atttypid, row.attcollation);
      for (int k = 0; k < list_length(collations); ++k)
        append_collation(&lines, NameStr(row.attname), list_nth_oid(collations, k));
    };
    read_catalog<FormData_pg_attribute>(ATTNUM, filter, append, static_cast<AttrNumber>(i));
  }
  return lines.data;
}

}  // namespace streamfilter::pg
