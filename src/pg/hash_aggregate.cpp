// Aggregates over filters and over hashes of keys: streamfilter_union_agg, streamfilter_hash_agg,
// approx_count_distinct_hash. Their state is a value of type streamfilter, which has text and
// binary forms, and their arguments are of fixed types: so that an engine which runs the parts of an
// aggregate on different machines can take the state from one to the other (docs/engines.md).
#include "streamfilter/pg/pg.hpp"

extern "C" {
#include "nodes/primnodes.h"
}

#include "streamfilter/pg/counting.hpp"
#include "streamfilter/pg/element.hpp"
#include "streamfilter/pg/key_argument.hpp"
#include "streamfilter/pg/value.hpp"

namespace streamfilter::pg {
namespace {

// The state in argument 0, to be changed: inside an aggregate it is ours.
Header* get_state(FunctionCallInfo fcinfo) {
  const Header* state = get_value(PG_GETARG_DATUM(0));
  if (AggCheckCallContext(fcinfo, nullptr)) return const_cast<Header*>(state);
  return copy_value(state, CurrentMemoryContext);
}

// Is argument 1 of the aggregate the same in all rows? An engine that runs the transition function
// inside an aggregate of its own hands over the arguments as one row, its last argument.
bool is_constant_definition(FunctionCallInfo fcinfo) {
  const Aggref* call = AggGetAggref(fcinfo);
  if (call == nullptr || call->args == NIL) return false;
  const Expr* argument = static_cast<TargetEntry*>(llast(call->args))->expr;
  if (IsA(argument, RowExpr)) {
    const List* columns = reinterpret_cast<const RowExpr*>(argument)->args;
    if (list_length(columns) != 2) return false;
    argument = static_cast<Expr*>(lsecond(columns));
  }
  return IsA(argument, Const) || IsA(argument, Param);
}

Parameters get_definition(FunctionCallInfo fcinfo) {
  if (PG_ARGISNULL(2))
    ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
                    errmsg("the definition of a filter must not be null"),
                    errhint("Give a definition, for example 'sbf(memory=64kB, fpr=0.01)'.")));
  return parse_prototype(text_to_cstring(PG_GETARG_TEXT_PP(2)));
}

Header* state_for_row(FunctionCallInfo fcinfo) {
  if (PG_ARGISNULL(0)) return make_value(get_definition(fcinfo), CurrentMemoryContext);
  Header* state = get_state(fcinfo);
  if (is_constant_definition(fcinfo)) return state;
  const Parameters parameters = get_definition(fcinfo);
  if (memcmp(&parameters, &state->parameters, sizeof parameters) != 0)
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("the definition of a filter must not change from row to row"),
                    errhint("To fill one filter per group, let the definition depend on the "
                            "columns of GROUP BY only.")));
  return state;
}

void remember_hash(FunctionCallInfo fcinfo, Header* state) {
  if (PG_ARGISNULL(1)) return;
  Element element = new_element(state->parameters);
  element.hash = static_cast<uint64>(PG_GETARG_INT64(1));
  insert(state, element);
}

}  // namespace
}  // namespace streamfilter::pg

using namespace streamfilter;
using namespace streamfilter::pg;

// streamfilter_hash(key "any" [, prototype streamfilter]): what a filter of the prototype's kind and
// seed takes for the key; NULL if such a filter would not remember it.
SF_FUNCTION(streamfilter_hash) {
  TypeHasher* hasher = key_hasher(fcinfo, 0);
  KeyRule rule{Nulls::distinct, 0, false};
  if (!PG_ARGISNULL(1)) rule = key_rule(get_value(PG_GETARG_DATUM(1))->parameters);
  uint64 hash;
  if (PG_ARGISNULL(0) || !hash_key_value(hasher, PG_GETARG_DATUM(0), rule, &hash)) PG_RETURN_NULL();
  PG_RETURN_INT64(static_cast<int64>(hash));
}

// Transition and combination: whatever either remembers; NULLs are left out.
SF_FUNCTION(streamfilter_agg_merge) {
  if (PG_ARGISNULL(1)) {
    if (PG_ARGISNULL(0)) PG_RETURN_NULL();
    PG_RETURN_DATUM(PG_GETARG_DATUM(0));
  }
  const Header* from = get_value(PG_GETARG_DATUM(1));
  if (PG_ARGISNULL(0)) PG_RETURN_POINTER(from);
  Header* into = get_state(fcinfo);
  merge_value(into, from);
  PG_RETURN_POINTER(into);
}

// The state goes on: a window function asks for its result after every row.
SF_FUNCTION(streamfilter_agg_result) {
  PG_RETURN_POINTER(copy_value(get_value(PG_GETARG_DATUM(0)), CurrentMemoryContext));
}

// Transition of streamfilter_hash_agg(hash, definition).
SF_FUNCTION(streamfilter_hash_agg_transition) {
  Header* state = state_for_row(fcinfo);
  remember_hash(fcinfo, state);
  PG_RETURN_POINTER(state);
}

// Transition of approx_count_distinct_hash(hash).
SF_FUNCTION(approx_count_distinct_hash_transition) {
  Header* state = PG_ARGISNULL(0)
                      ? make_value(parse_prototype(kCountingPrototype), CurrentMemoryContext)
                      : get_state(fcinfo);
  remember_hash(fcinfo, state);
  PG_RETURN_POINTER(state);
}

SF_FUNCTION(approx_count_distinct_hash_final) {
  if (PG_ARGISNULL(0)) PG_RETURN_INT64(0);
  PG_RETURN_INT64(count_keys(get_value(PG_GETARG_DATUM(0))));
}
