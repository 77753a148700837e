// Called by other servers: local filters that hold slices of their filters, by the hashes of their
// keys.
#include "pg/server/postgres.hpp"

extern "C" {
#include "catalog/pg_class.h"
#include "utils/acl.h"
#include "utils/array.h"
}

#include "pg/catalog/element_roles.hpp"
#include "pg/handle/event_time.hpp"
#include "pg/handle/filter_keys.hpp"
#include "pg/handle/judge_key.hpp"

namespace streamfilter::pg {
namespace {

// Values of an array of 8-byte values; it must have `count` of them. nullptr: the argument is NULL.
const Datum* read_words(FunctionCallInfo fcinfo, int number, Oid type, const char* name,
                        int* count) {
  if (PG_ARGISNULL(number)) return nullptr;
  ArrayType* array = PG_GETARG_ARRAYTYPE_P(number);
  if (array_contains_nulls(array))
    ereport(ERROR, errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
            errmsg("argument \"%s\" must not contain null", name));
  Datum* values;
  int length;
  deconstruct_array(array, type, sizeof(int64), FLOAT8PASSBYVAL, TYPALIGN_DOUBLE, &values, nullptr,
                    &length);
  if (*count >= 0 && length != *count)
    ereport(ERROR, errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
            errmsg("argument \"%s\" must have as many elements as \"hashes\"", name));
  *count = length;
  return values;
}

// A filter with local state.
FilterHandle* local_filter(FunctionCallInfo fcinfo, Use use, const char* function) {
  if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
    ereport(ERROR, errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
            errmsg("filter and hashes of %s must not be null", function));
  FilterHandle* filter = filter_handle(PG_GETARG_OID(0));
  use_filter(filter, Use::define);
  if (is_remote(filter->relation))
    ereport(ERROR, errcode(ERRCODE_WRONG_OBJECT_TYPE),
            errmsg("the state of filter \"%s\" is on another server", filter->relation->name),
            errhint("Name that server as the holder of the filter."));
  use_filter(filter, use);
  return filter;
}

constexpr char kYes = 't', kNo = 'f', kTaken = 'n';

// Calls answer_one(filter, element) for every hash; it returns one of the three answers above, and
// `taken` becomes NULL.
template <typename AnswerOne>
Datum answer(FunctionCallInfo fcinfo, Use use, const char* function, AnswerOne&& answer_one) {
  FilterHandle* filter = local_filter(fcinfo, use, function);
  int count = -1;
  const Datum* hashes = read_words(fcinfo, 1, INT8OID, "hashes", &count);
  const Datum* times = read_words(fcinfo, 2, INT8OID, "times", &count);
  const Datum* importances = read_words(fcinfo, 3, FLOAT8OID, "importances", &count);
  auto* elements = static_cast<Element*>(palloc(sizeof(Element) * Max(count, 1)));
  for (int i = 0; i < count; ++i) {
    elements[i] = new_element(filter->relation->definition.parameters);
    elements[i].hash = static_cast<uint64>(DatumGetInt64(hashes[i]));
    if (times != nullptr) elements[i].time = DatumGetInt64(times[i]);
    if (importances != nullptr) elements[i].importance = DatumGetFloat8(importances[i]);
  }
  prefetch_keys(filter, elements, nullptr, count);
  auto* answers = static_cast<Datum*>(palloc(sizeof(Datum) * Max(count, 1)));
  auto* isnull = static_cast<bool*>(palloc(sizeof(bool) * Max(count, 1)));
  for (int i = 0; i < count; ++i) {
    CHECK_FOR_INTERRUPTS();
    use_filter(filter, use);
    if (times != nullptr && use == Use::insert && is_too_late(filter->header, elements[i]))
      warn_of_late(filter);
    const char what = answer_one(filter, elements[i]);
    answers[i] = BoolGetDatum(what == kYes);
    isnull[i] = what == kTaken;
  }
  int bound = 1;
  return PointerGetDatum(construct_md_array(answers, isnull, count > 0 ? 1 : 0, &count, &bound,
                                            BOOLOID, sizeof(bool), true, TYPALIGN_CHAR));
}

void require_erase(Oid relid) {
  FilterHandle* filter = filter_handle(relid);
  use_filter(filter, Use::define);
  const FilterOps* ops = find_ops(filter->relation->definition.parameters.kind);
  if (ops->erase == nullptr)
    ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
            errmsg("filter \"%s\" cannot forget single keys", filter->relation->name),
            errdetail("Its kind, %s, cannot.", ops->name));
}

char say(bool yes) { return yes ? kYes : kNo; }

void prevent_if_read_only(const char* function) {
  PreventCommandDuringRecovery(function);
  PreventCommandIfReadOnly(function);
}

}  // namespace
}  // namespace streamfilter::pg

using namespace streamfilter;
using namespace streamfilter::pg;

// streamfilter_hashes_test(filter regclass, hashes bigint[], times bigint[], importances float8[])
// -> boolean[]: is each there? Needs SELECT.
SF_FUNCTION(streamfilter_hashes_test) {
  return answer(
      fcinfo, Use::test, "streamfilter_hashes_test",
      [](FilterHandle* filter, const Element& element) { return say(test_key(filter, element)); });
}

// The same, and remembers each once the transaction commits. Needs INSERT.
SF_FUNCTION(streamfilter_hashes_seen) {
  prevent_if_read_only("streamfilter_hashes_seen()");
  return answer(fcinfo, Use::insert, "streamfilter_hashes_seen",
                [](FilterHandle* filter, const Element& element) {
                  return say(test_and_insert_fetched_key(filter, element));
                });
}

// The same for probes of keys with several: reserves each, whether or not its bits are set. NULL:
// another transaction has added the key, and option conflict calls it a repeat.
SF_FUNCTION(streamfilter_hashes_reserve) {
  prevent_if_read_only("streamfilter_hashes_reserve()");
  return answer(fcinfo, Use::insert, "streamfilter_hashes_reserve",
                [](FilterHandle* filter, const Element& element) {
                  const PartialReservation found = reserve_partial_key(filter, element);
                  count_answer(filter, found != PartialReservation::unset, Outcome::discarded);
                  return found == PartialReservation::taken ? kTaken
                                                            : say(found == PartialReservation::set);
                });
}

// The same without a reservation, for probes of keys that are reserved elsewhere.
SF_FUNCTION(streamfilter_hashes_put) {
  prevent_if_read_only("streamfilter_hashes_put()");
  return answer(fcinfo, Use::insert, "streamfilter_hashes_put",
                [](FilterHandle* filter, const Element& element) {
                  const bool was_set = insert_partial_key(filter, element);
                  count_answer(filter, was_set, Outcome::discarded);
                  return say(was_set);
                });
}

// Forgets each; was it there? Needs DELETE.
SF_FUNCTION(streamfilter_hashes_erase) {
  prevent_if_read_only("streamfilter_hashes_erase()");
  const Oid relid = PG_ARGISNULL(0) ? InvalidOid : PG_GETARG_OID(0);
  const AclResult right = pg_class_aclcheck(relid, GetUserId(), ACL_DELETE);
  if (OidIsValid(relid) && right != ACLCHECK_OK)
    aclcheck_error(right, OBJECT_FOREIGN_TABLE, get_rel_name(relid));
  if (OidIsValid(relid)) require_erase(relid);
  return answer(
      fcinfo, Use::erase, "streamfilter_hashes_erase",
      [](FilterHandle* filter, const Element& element) { return say(erase_key(filter, element)); });
}
