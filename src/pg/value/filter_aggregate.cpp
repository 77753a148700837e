// Aggregates over keys of any type: streamfilter_agg, approx_count_distinct. Their state is in the
// aggregate's memory context (growing_state.hpp); final functions do not change it.
#include "pg/server/postgres.hpp"

#include "pg/catalog/element_roles.hpp"
#include "pg/value/growing_state.hpp"
#include "pg/value/value.hpp"

namespace streamfilter::pg {
namespace {

// What the transition function of one aggregate call keeps from row to row, in fn_extra.
struct CallSite {
  TypeHasher* hasher;
  WordKey word_key;  // unless the filter takes integers unhashed
  bool constant_prototype;
  bool literal_prototype;  // also when the aggregate runs again
  bool grows;              // states begin as words
  Parameters parameters;   // of the default or constant prototype, if it has one
};

GrowingState* get_state(FunctionCallInfo fcinfo, int number) {
  return PG_ARGISNULL(number) ? nullptr
                              : reinterpret_cast<GrowingState*>(PG_GETARG_POINTER(number));
}

Datum return_state(FunctionCallInfo fcinfo, GrowingState* state) {
  if (state == nullptr) PG_RETURN_NULL();
  PG_RETURN_POINTER(state);
}

// Each parallel worker may have such a state; these are merged.
GrowingState* start_state(const Header* prototype, MemoryContext context) {
  GrowingState* state = make_state(copy_value(prototype, context), context);
  share_stream(state->filter);
  state->extra = allocate_zeros<StateExtra>(1, context);
  return state;
}

CallSite* make_call_site(FunctionCallInfo fcinfo) {
  FmgrInfo* function = fcinfo->flinfo;
  CallSite* site = allocate_zeros<CallSite>(1, function->fn_mcxt);
  site->hasher = make_key_hasher(fcinfo, 1);
  site->word_key = word_key(&site->hasher, 1, {Nulls::distinct, 0, false});
  if (PG_NARGS() > 2) {
    site->constant_prototype = is_constant_argument(fcinfo, 1);
    site->literal_prototype = is_literal_argument(fcinfo, 1);
  } else {
    site->constant_prototype = site->literal_prototype = site->grows = true;
    site->parameters = parse_prototype(kCountingPrototype);
  }
  function->fn_extra = site;
  return site;
}

CallSite* call_site(FunctionCallInfo fcinfo) {
  void* extra = fcinfo->flinfo->fn_extra;
  return likely(extra != nullptr) ? static_cast<CallSite*>(extra) : make_call_site(fcinfo);
}

// With a constant prototype, all states of a run have it.
bool prepare_growing(CallSite* site, const Header* prototype) {
  if (!site->constant_prototype || !can_grow(prototype->parameters) || !is_empty(prototype))
    return false;
  uint32 words;
  if (!count_words(prototype, words) || words > 0) return false;
  site->parameters = prototype->parameters;
  return site->grows = true;
}

GrowingState* first_words(FunctionCallInfo fcinfo, const CallSite* site, bool for_filter,
                          MemoryContext context) {
  if (!for_filter && AggCheckCallContext(fcinfo, nullptr) == AGG_CONTEXT_WINDOW)
    return make_counting(&site->parameters, context);
  return make_growing(&site->parameters, for_filter, context);
}

GrowingState* first_state(FunctionCallInfo fcinfo, CallSite* site, bool for_filter) {
  const MemoryContext context = aggregate_context(fcinfo);
  if (site->grows && site->literal_prototype) return first_words(fcinfo, site, for_filter, context);
  const Header* prototype = get_prototype(fcinfo, 2);
  require_promise(prototype);
  if (prepare_growing(site, prototype)) return first_words(fcinfo, site, for_filter, context);
  GrowingState* state = start_state(prototype, context);
  if (site->constant_prototype) return state;
  state->extra->prototype = checksum(prototype);
  state->extra->given = given_prototype(fcinfo, 2);
  return state;
}

void check_kept_prototype(FunctionCallInfo fcinfo, StateExtra* extra) {
  const uint64 given = given_prototype(fcinfo, 2);
  if (given != 0 && given == extra->given) return;
  if (extra->prototype != checksum(get_prototype(fcinfo, 2))) raise_changed_prototype();
  extra->given = given;
}

GrowingState* state_for_row(FunctionCallInfo fcinfo, CallSite* site, bool for_filter) {
  GrowingState* state = get_state(fcinfo, 0);
  if (unlikely(state == nullptr)) return first_state(fcinfo, site, for_filter);
  if (unlikely(!site->constant_prototype)) check_kept_prototype(fcinfo, state->extra);
  return state;
}

// False: no key.
bool hash_argument(FunctionCallInfo fcinfo, const CallSite* site, const Parameters& parameters,
                   Nulls nulls, uint64* hash) {
  if (PG_ARGISNULL(1)) return false;
  if (likely(site->word_key != WordKey::no && parameters.key_shift == 0)) {
    *hash = hash_word_key(site->word_key, PG_GETARG_DATUM(1), parameters.seed);
    return true;
  }
  KeyRule rule = key_rule(parameters);
  rule.nulls = nulls;
  return hash_key_value(site->hasher, PG_GETARG_DATUM(1), rule, hash);
}

void remember(FunctionCallInfo fcinfo, const CallSite* site, GrowingState* state, Nulls nulls) {
  const Parameters& parameters = state->its();
  uint64 hash;
  if (!hash_argument(fcinfo, site, parameters, nulls, &hash)) return;
  if (state->extra != nullptr && state->extra->in_window)
    return insert_in_window(fcinfo, state, hash);
  if (state->parameters != nullptr) return insert_hash(fcinfo, state, hash);
  Element element = new_element(parameters);
  element.hash = hash;
  insert(state->filter, element);
}

// A state of a process that has met no key. Filters that keep an order would notice a merge with
// it.
bool is_nothing(const GrowingState* state) {
  return state->filter != nullptr && is_empty(state->filter);
}

// Parameters for states of a combine function, in fn_extra: one copy of equal ones.
const Parameters* keep_parameters(FunctionCallInfo fcinfo, const GrowingState* state) {
  if (state->filter != nullptr) return nullptr;
  FmgrInfo* function = fcinfo->flinfo;
  auto* kept = static_cast<Parameters*>(function->fn_extra);
  if (kept != nullptr && memcmp(kept, state->parameters, sizeof *kept) == 0) return kept;
  kept = allocate<Parameters>(1, function->fn_mcxt);
  *kept = *state->parameters;
  function->fn_extra = kept;
  return kept;
}

}  // namespace

// Transition of streamfilter_agg(key, prototype). A record with a NULL is a key if the prototype
// has nulls = not distinct.
SF_FUNCTION(streamfilter_agg_transition) {
  CallSite* site = call_site(fcinfo);
  GrowingState* state = state_for_row(fcinfo, site, true);
  remember(fcinfo, site, state, state->its().nulls);
  PG_RETURN_POINTER(state);
}

// Transition of approx_count_distinct(key [, prototype]). Like count(DISTINCT …), it skips NULL but
// counts a record with a NULL.
SF_FUNCTION(approx_count_distinct_transition) {
  CallSite* site = call_site(fcinfo);
  GrowingState* state = state_for_row(fcinfo, site, false);
  remember(fcinfo, site, state, Nulls::not_distinct);
  PG_RETURN_POINTER(state);
}

SF_FUNCTION(streamfilter_agg_combine) {
  GrowingState* into = get_state(fcinfo, 0);
  GrowingState* from = get_state(fcinfo, 1);
  if (from == nullptr || (into != nullptr && is_nothing(from))) return return_state(fcinfo, into);
  if (into == nullptr || is_nothing(into))
    PG_RETURN_POINTER(
        copy_growing_state(from, keep_parameters(fcinfo, from), aggregate_context(fcinfo)));
  merge_state(fcinfo, into, from);
  PG_RETURN_POINTER(into);
}

SF_FUNCTION(streamfilter_agg_serialize) {
  if (GrowingState* state = get_state(fcinfo, 0)) PG_RETURN_POINTER(serialize_state(state));
  Datum prototype;
  if (!constant_prototype(fcinfo, &prototype)) PG_RETURN_NULL();
  PG_RETURN_POINTER(get_value(prototype));
}

SF_FUNCTION(streamfilter_agg_deserialize) {
  PG_RETURN_POINTER(deserialize_state(PG_GETARG_DATUM(0)));
}

SF_FUNCTION(streamfilter_agg_final) {
  GrowingState* state = get_state(fcinfo, 0);
  if (state != nullptr) PG_RETURN_DATUM(finished_value(state));
  Datum prototype;
  if (!constant_prototype(fcinfo, &prototype)) PG_RETURN_NULL();
  PG_RETURN_DATUM(prototype);
}

SF_FUNCTION(approx_count_distinct_final) {
  GrowingState* state = get_state(fcinfo, 0);
  if (state == nullptr) PG_RETURN_INT64(0);
  PG_RETURN_INT64(count_keys(state));
}

}  // namespace streamfilter::pg
