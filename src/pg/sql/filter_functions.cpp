// Functions on named filters, for use in any query.
#include "pg/server/postgres.hpp"

#include "core/filter/filter.hpp"
#include "pg/citus/citus_nodes.hpp"
#include "pg/handle/event_time.hpp"
#include "pg/handle/filter_keys.hpp"
#include "pg/handle/key_builder.hpp"
#include "pg/remote/remote_keys.hpp"
#include "pg/server/problem_report.hpp"
#include "pg/trigger/judged_once.hpp"
#include "pg/value/value.hpp"

using namespace streamfilter;
using namespace streamfilter::pg;

// streamfilter_seen(filter regclass, VARIADIC key "any") → boolean: was the key seen before?
// Remembers it once the transaction commits. Also false if the filter's mode lets all rows pass.
// Needs INSERT on the filter.
SF_FUNCTION(streamfilter_seen) {
  PreventCommandDuringRecovery("streamfilter_seen()");
  PreventCommandIfReadOnly("streamfilter_seen()");
  if (unlikely(fcinfo->flinfo->fn_extra == nullptr) && !PG_ARGISNULL(0))
    require_shard_node(PG_GETARG_OID(0), "streamfilter_seen");
  KeyCall* site = key_call_site(fcinfo, Use::judge, "streamfilter_seen", false);
  FilterHandle* filter = site->keys.filter;
  check_mode(filter, InvalidOid);
  const FilterMode mode = filter->mode;
  if (unlikely(mode == FilterMode::off)) PG_RETURN_BOOL(false);
  note_asked(filter);
  Element element;
  if (!build_element(&site->keys, fcinfo->args + 1, &element)) PG_RETURN_BOOL(false);
  bound_time(filter, &element);
  filter->origin.way = origin_in_query(&site->keys).way;
  const bool enforced = mode == FilterMode::enforce;
  const bool seen =
      test_and_insert_key(filter, element, enforced ? Outcome::discarded : Outcome::would_discard);
  PG_RETURN_BOOL(seen && enforced);
}

// streamfilter_test(filter regclass, VARIADIC key "any") → boolean: was the key seen before?
// Remembers nothing; role columns may be left out. Needs SELECT on the filter.
SF_FUNCTION(streamfilter_test) {
  if (unlikely(fcinfo->flinfo->fn_extra == nullptr) && !PG_ARGISNULL(0))
    require_shard_node(PG_GETARG_OID(0), "streamfilter_test");
  KeyCall* site = key_call_site(fcinfo, Use::test, "streamfilter_test", true);
  Element element;
  if (!build_element(&site->keys, fcinfo->args + 1, &element)) PG_RETURN_BOOL(false);
  PG_RETURN_BOOL(test_key(site->keys.filter, element));
}

// streamfilter_value(filter regclass) → streamfilter: the shared state as a value. Needs SELECT.
SF_FUNCTION(streamfilter_value) {
  require_shard_node(PG_GETARG_OID(0), "streamfilter_value");
  FilterHandle* filter = filter_handle(PG_GETARG_OID(0));
  use_filter(filter, Use::test);
  if (filter->remote != nullptr && filter->remote->count != 1)
    require_local(filter, "streamfilter_value");
  if (filter->remote != nullptr)
    PG_RETURN_DATUM(fetch_remote_value(filter->remote, get_func_rettype(fcinfo->flinfo->fn_oid)));
  const Parameters& parameters = filter->header->parameters;
  if (Problem problem; !fits_value(parameters, problem)) raise(problem);
  Header* copy = copy_filter(filter);
  // Requested options may have been altered since the state was built.
  copy->parameters.keys = filter->relation->definition.parameters.keys;
  copy->parameters.fpr = filter->relation->definition.parameters.fpr;
  copy->parameters.nulls = filter->rule.nulls;
  SET_VARSIZE(copy, parameters.memory);
  PG_RETURN_POINTER(copy);
}

// streamfilter_merge(filter regclass, streamfilter): adds the value's keys to the shared state.
// Both must have equal kind, parameters and seed. Needs INSERT.
SF_FUNCTION(streamfilter_merge) {
  PreventCommandDuringRecovery("streamfilter_merge()");
  PreventCommandIfReadOnly("streamfilter_merge()");
  require_shard_node(PG_GETARG_OID(0), "streamfilter_merge");
  FilterHandle* filter = filter_handle(PG_GETARG_OID(0));
  const Header* value = get_value(PG_GETARG_DATUM(1));
  use_filter(filter, Use::insert);
  require_local(filter, "streamfilter_merge");
  Problem problem;
  if (!mergeable(filter->header->parameters, value->parameters, problem)) raise(problem);
  merge_into_filter(filter, value);
  PG_RETURN_VOID();
}
