// Aggregates over filters and over hashes of keys: streamfilter_union_agg, streamfilter_hash_agg,
// approx_count_distinct_hash. Their state is a value of type streamfilter, with text and binary
// forms, and their arguments have fixed types, so that an engine that runs parts of an aggregate on
// several machines can carry the state from one to another (docs/engines.md).
#include "pg/server/postgres.hpp"

#include "pg/catalog/element_roles.hpp"
#include "pg/value/compact_value.hpp"
#include "pg/value/growing_state.hpp"
#include "pg/value/value.hpp"

namespace streamfilter::pg {
namespace {

// The state in argument 0, for changes: inside an aggregate it is ours.
Header* get_state(FunctionCallInfo fcinfo) {
  const Header* state = get_value(PG_GETARG_DATUM(0));
  if (AggCheckCallContext(fcinfo, nullptr)) return const_cast<Header*>(state);
  return copy_value(state, CurrentMemoryContext);
}

// A state to go on with: inside an aggregate a block, which the next call changes in its place.
Datum state_datum(FunctionCallInfo fcinfo, Header* state) {
  return AggCheckCallContext(fcinfo, nullptr) ? PointerGetDatum(state) : value_datum(state);
}

// The last definitions given by rows, parsed, in fn_extra. Groups may alternate.
struct ParsedPrototypes {
  static constexpr uint64 kPlaces = 64;
  struct {
    text* definition;  // nullptr: unused
    Parameters parameters;
  } places[kPlaces];
};

const Parameters& parse_once(FunctionCallInfo fcinfo, text* definition) {
  FmgrInfo* function = fcinfo->flinfo;
  if (function->fn_extra == nullptr)
    function->fn_extra = MemoryContextAllocZero(function->fn_mcxt, sizeof(ParsedPrototypes));
  const Size size = VARSIZE_ANY(definition);
  auto& place = static_cast<ParsedPrototypes*>(function->fn_extra)
                    ->places[hash_bytes(definition, size, 0) % ParsedPrototypes::kPlaces];
  if (place.definition != nullptr && VARSIZE_ANY(place.definition) == size &&
      memcmp(place.definition, definition, size) == 0)
    return place.parameters;
  const Parameters parameters = parse_prototype(text_to_cstring(definition));
  text* copy = static_cast<text*>(MemoryContextAlloc(function->fn_mcxt, size));
  memcpy(copy, definition, size);
  if (place.definition != nullptr) pfree(place.definition);
  place.definition = copy;
  place.parameters = parameters;
  return place.parameters;
}

const Parameters& get_prototype_text(FunctionCallInfo fcinfo) {
  check_prototype(fcinfo, 2);
  return parse_once(fcinfo, PG_GETARG_TEXT_PP(2));
}

Header* state_for_row(FunctionCallInfo fcinfo) {
  if (PG_ARGISNULL(0)) {
    Header* state = make_value(get_prototype_text(fcinfo), CurrentMemoryContext);
    share_stream(state);
    return state;
  }
  Header* state = get_state(fcinfo);
  if (is_constant_argument(fcinfo, 1)) return state;
  const Parameters& parameters = get_prototype_text(fcinfo);
  if (memcmp(&parameters, &state->parameters, sizeof parameters) != 0) raise_changed_prototype();
  return state;
}

void remember_hash(FunctionCallInfo fcinfo, Header* state) {
  if (PG_ARGISNULL(1)) return;
  Element element = new_element(state->parameters);
  element.hash = static_cast<uint64>(PG_GETARG_INT64(1));
  insert(state, element);
}

}  // namespace

// streamfilter_hash(key "any" [, prototype streamfilter]): the key's hash for a filter of the
// prototype's kind and seed; NULL if such a filter would not remember the key.
SF_FUNCTION(streamfilter_hash) {
  TypeHasher* hasher = key_hasher(fcinfo, 0);
  KeyRule rule{Nulls::distinct, 0, false};
  if (!PG_ARGISNULL(1)) rule = key_rule(parameters_of_value(PG_GETARG_DATUM(1)));
  uint64 hash;
  if (PG_ARGISNULL(0) || !hash_key_value(hasher, PG_GETARG_DATUM(0), rule, &hash)) PG_RETURN_NULL();
  PG_RETURN_INT64(static_cast<int64>(hash));
}

// Transition and combination: the union of both; skips NULLs.
SF_FUNCTION(streamfilter_agg_merge) {
  if (PG_ARGISNULL(1)) {
    if (PG_ARGISNULL(0)) PG_RETURN_NULL();
    PG_RETURN_DATUM(PG_GETARG_DATUM(0));
  }
  if (PG_ARGISNULL(0) && !AggCheckCallContext(fcinfo, nullptr)) PG_RETURN_DATUM(PG_GETARG_DATUM(1));
  if (PG_ARGISNULL(0)) PG_RETURN_POINTER(get_value(PG_GETARG_DATUM(1)));
  Header* into = get_state(fcinfo);
  merge_datum(into, PG_GETARG_DATUM(1));
  if (!AggCheckCallContext(fcinfo, nullptr)) settle_value(into);
  PG_RETURN_DATUM(state_datum(fcinfo, into));
}

// Does not change the state: a window function asks for its result after every row.
SF_FUNCTION(streamfilter_agg_result) {
  Header* result = copy_value(get_value(PG_GETARG_DATUM(0)), CurrentMemoryContext);
  settle_value(result);
  PG_RETURN_DATUM(value_datum(result));
}

// Transition of streamfilter_hash_agg(hash, prototype).
SF_FUNCTION(streamfilter_hash_agg_transition) {
  Header* state = state_for_row(fcinfo);
  remember_hash(fcinfo, state);
  PG_RETURN_DATUM(state_datum(fcinfo, state));
}

// Transition of approx_count_distinct_hash(hash).
SF_FUNCTION(approx_count_distinct_hash_transition) {
  Header* state = PG_ARGISNULL(0)
                      ? make_value(parse_prototype(kCountingPrototype), CurrentMemoryContext)
                      : get_state(fcinfo);
  remember_hash(fcinfo, state);
  PG_RETURN_DATUM(state_datum(fcinfo, state));
}

SF_FUNCTION(approx_count_distinct_hash_final) {
  if (PG_ARGISNULL(0)) PG_RETURN_INT64(0);
  PG_RETURN_INT64(count_keys(get_value(PG_GETARG_DATUM(0))));
}

}  // namespace streamfilter::pg
