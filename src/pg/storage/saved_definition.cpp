#include "pg/server/postgres.hpp"

extern "C" {
#include "access/transam.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_class.h"
#include "catalog/pg_collation.h"
#include "lib/stringinfo.h"
#include "utils/fmgrprotos.h"
}

#include "core/filter/filter.hpp"
#include "pg/server/syscache.hpp"
#include "pg/storage/saved_definition.hpp"
#include "pg/storage/state_heaps.hpp"

namespace streamfilter::pg {
namespace {

// What the present definition derives, also if it has adopted another geometry.
const Parameters& derived_by(const FilterRelation* relation) {
  return relation->is_adopted ? relation->derived_now : relation->definition.parameters;
}

// Does a former definition derive now what the present one does? An ALTER to others then keeps the
// state as it is: in memory, and its header in what is saved. A header has `keys`, but not whether
// they were given.
bool derives_the_same(const FilterRelation* relation, const Definition& before,
                      const Parameters& saved) {
  for (const uint64 keys : {saved.keys, uint64{0}}) {
    Definition attempt = before;
    attempt.parameters.keys = keys;
    attempt.parameters.fpr = saved.fpr;
    Problem ignored;
    if (complete(attempt, ignored) && attempt.parameters.keys == saved.keys &&
        has_same_geometry(attempt.parameters, derived_by(relation)))
      return true;
  }
  return false;
}

bool was_asked_by(const FilterRelation* relation, const Parameters& saved, int64 identity) {
  return identity == asked_identity(relation, saved);
}

// Was it saved before an ALTER that only wrote down what held anyway, or no longer does? Its
// options were then, each, what is derived now, or not given.
bool was_worded_otherwise(const FilterRelation* relation, const Parameters& saved, int64 identity) {
  FilterRelation before = *relation;
  const Parameters& derived = derived_by(relation);
  for (uint64 i = 0; i < count_wordings(derived); ++i) {
    CHECK_FOR_INTERRUPTS();
    before.options.asked = wording_of(derived, i);
    if (was_asked_by(&before, saved, identity))
      return derives_the_same(relation, before.options.asked, saved);
  }
  return false;
}

// Was it saved in a tree, with the seed of the root? It keeps that seed when it leaves the tree.
bool was_in_tree(const FilterRelation* relation, const Parameters& saved, int64 identity) {
  if (relation->options.parent != nullptr || relation->definition.is_given(Common::seed))
    return false;
  FilterRelation before = *relation;
  adopt_seed(&before, saved.seed);
  return was_asked_by(&before, saved, identity);
}

bool is_of_definition(const FilterRelation* relation, const Parameters& saved, int64 identity) {
  const Parameters& wanted = relation->definition.parameters;
  if (relation->definition.is_given(Common::seed) && saved.seed != wanted.seed) return false;
  const bool same = has_same_geometry(saved, wanted);
  if (was_asked_by(relation, saved, identity) || was_in_tree(relation, saved, identity))
    return same || (saved.keys == wanted.keys && is_same_fpr(saved.fpr, wanted.fpr)) ||
           derives_the_same(relation, relation->options.asked, saved);
  return was_worded_otherwise(relation, saved, identity);
}

}  // namespace

int64 asked_identity(const FilterRelation* relation, const Parameters& parameters) {
  return identity_of(asked_signature(relation, parameters.keys, parameters.fpr), parameters.seed);
}

const char* take_parameters(const char* bytes, const FilterRelation* relation, int64 identity,
                            Parameters* result) {
  Header header;
  memcpy(static_cast<void*>(&header), bytes, sizeof header);
  if (Problem problem; !check_header(header, problem)) return pstrdup(problem.message);
  if (!is_of_definition(relation, header.parameters, identity))
    return "It belongs to another definition of the filter.";
  *result = header.parameters;
  result->nulls = relation->definition.parameters.nulls;
  return nullptr;
}

// ---- collations of keys -------------------------------------------------------------------------

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

}  // namespace

const char* collations_of(Oid filter) {
  StringInfoData lines;
  initStringInfo(&lines);
  const int columns = read_field(RELOID, filter, &FormData_pg_class::relnatts, 0);
  for (int i = 1; i <= columns; ++i) {
    const auto append = [&](const FormData_pg_attribute& row, HeapTuple) {
      if (!row.attisdropped && row.attcollation >= FirstGenbkiObjectId)
        append_collation(&lines, NameStr(row.attname), row.attcollation);
    };
    read_catalog<FormData_pg_attribute>(ATTNUM, filter, append, static_cast<AttrNumber>(i));
  }
  return lines.data;
}

}  // namespace streamfilter::pg
