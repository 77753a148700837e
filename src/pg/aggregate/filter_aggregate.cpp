// Aggregates over keys of any type: streamfilter_agg, approx_count_distinct. Their state is a
// filter in the aggregate's memory context; final functions leave it as it is.
#include "pg/server/postgres.hpp"

#include "pg/aggregate/aggregate_arguments.hpp"
#include "pg/aggregate/distinct_count.hpp"
#include "pg/catalog/element_roles.hpp"
#include "pg/server/problem_report.hpp"
#include "pg/value/key_argument.hpp"
#include "pg/value/value.hpp"

namespace streamfilter::pg {
namespace {

struct State {
  Header* filter;
  // If the prototype is no constant: the checksum of the one that it started from, and what the
  // last row gave for it.
  uint64 prototype, given;
};

// What the transition function of one aggregate call keeps from row to row, in fn_extra.
struct CallSite {
  TypeHasher* hasher;
  bool constant_prototype;
  Parameters parameters;  // of the default prototype, where none is given
};

State* get_state(FunctionCallInfo fcinfo, int number) {
  return PG_ARGISNULL(number) ? nullptr : reinterpret_cast<State*>(PG_GETARG_POINTER(number));
}

Datum return_state(FunctionCallInfo fcinfo, State* state) {
  if (state == nullptr) PG_RETURN_NULL();
  PG_RETURN_POINTER(state);
}

State* make_state(Header* filter, MemoryContext context) {
  State* state = static_cast<State*>(MemoryContextAlloc(context, sizeof(State)));
  *state = {filter, 0, 0};
  return state;
}

State* copy_state(const Header* filter, MemoryContext context) {
  return make_state(copy_value(filter, context), context);
}

// Parallel workers may each have one like this, whose states are merged.
State* start_state(const Header* prototype, MemoryContext context) {
  State* state = copy_state(prototype, context);
  share_stream(state->filter);
  return state;
}

CallSite* call_site(FunctionCallInfo fcinfo) {
  FmgrInfo* function = fcinfo->flinfo;
  if (function->fn_extra == nullptr) {
    CallSite* site =
        static_cast<CallSite*>(MemoryContextAllocZero(function->fn_mcxt, sizeof(CallSite)));
    site->hasher = make_key_hasher(fcinfo, 1);
    if (PG_NARGS() > 2)
      site->constant_prototype = is_constant_argument(fcinfo, 1);
    else
      site->parameters = parse_prototype(kCountingPrototype);
    function->fn_extra = site;
  }
  return static_cast<CallSite*>(function->fn_extra);
}

State* state_for_row(FunctionCallInfo fcinfo, CallSite* site) {
  State* state = get_state(fcinfo, 0);
  const MemoryContext context = aggregate_context(fcinfo);
  if (PG_NARGS() <= 2)
    return state != nullptr ? state : make_state(make_value(site->parameters, context), context);
  if (state != nullptr && site->constant_prototype) return state;
  const uint64 given = site->constant_prototype ? 0 : given_prototype(fcinfo, 2);
  if (state != nullptr && given != 0 && given == state->given) return state;
  const Header* prototype = get_prototype(fcinfo, 2);
  const uint64 sum = site->constant_prototype ? 0 : checksum(prototype);
  if (state == nullptr) {
    require_promise(prototype);
    state = start_state(prototype, context);
    state->prototype = sum;
  } else if (state->prototype != sum) {
    raise_changed_prototype();
  }
  state->given = given;
  return state;
}

void remember(FunctionCallInfo fcinfo, CallSite* site, State* state, Nulls nulls) {
  const Parameters& parameters = state->filter->parameters;
  Element element = new_element(parameters);
  KeyRule rule = key_rule(parameters);
  rule.nulls = nulls;
  if (PG_ARGISNULL(1) || !hash_key_value(site->hasher, PG_GETARG_DATUM(1), rule, &element.hash))
    return;
  insert(state->filter, element);
}

}  // namespace
}  // namespace streamfilter::pg

using namespace streamfilter;
using namespace streamfilter::pg;

// Transition of streamfilter_agg(key, prototype). A record with a NULL in it is a key if the
// prototype has nulls = not distinct.
SF_FUNCTION(streamfilter_agg_transition) {
  CallSite* site = call_site(fcinfo);
  State* state = state_for_row(fcinfo, site);
  remember(fcinfo, site, state, state->filter->parameters.nulls);
  PG_RETURN_POINTER(state);
}

// Transition of approx_count_distinct(key [, prototype]). As count(DISTINCT …): a NULL is not
// counted, a record with a NULL in it is.
SF_FUNCTION(approx_count_distinct_transition) {
  CallSite* site = call_site(fcinfo);
  State* state = state_for_row(fcinfo, site);
  remember(fcinfo, site, state, Nulls::not_distinct);
  PG_RETURN_POINTER(state);
}

SF_FUNCTION(streamfilter_agg_combine) {
  State* into = get_state(fcinfo, 0);
  const State* from = get_state(fcinfo, 1);
  const MemoryContext context = aggregate_context(fcinfo);
  if (from == nullptr) return return_state(fcinfo, into);
  if (into == nullptr) PG_RETURN_POINTER(copy_state(from->filter, context));
  merge_value(into->filter, from->filter);
  PG_RETURN_POINTER(into);
}

// The block has room for the length of a varlena, so that it can travel as it is.
SF_FUNCTION(streamfilter_agg_serialize) { PG_RETURN_POINTER(get_state(fcinfo, 0)->filter); }

SF_FUNCTION(streamfilter_agg_deserialize) {
  Header* filter = const_cast<Header*>(get_value(PG_GETARG_DATUM(0)));  // combine only reads it
  PG_RETURN_POINTER(make_state(filter, CurrentMemoryContext));
}

SF_FUNCTION(streamfilter_agg_final) {
  const State* state = get_state(fcinfo, 0);
  if (state == nullptr) PG_RETURN_NULL();
  PG_RETURN_POINTER(copy_value(state->filter, CurrentMemoryContext));
}

SF_FUNCTION(approx_count_distinct_final) {
  const State* state = get_state(fcinfo, 0);
  if (state == nullptr) PG_RETURN_INT64(0);
  PG_RETURN_INT64(count_keys(state->filter));
}
