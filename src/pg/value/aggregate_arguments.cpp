#include "pg/server/postgres.hpp"

extern "C" {
#include "nodes/primnodes.h"
}

#include "pg/value/aggregate_arguments.hpp"
#include "pg/value/value.hpp"

namespace streamfilter::pg {

MemoryContext aggregate_context(FunctionCallInfo fcinfo) {
  MemoryContext context;
  if (!AggCheckCallContext(fcinfo, &context))
    elog(ERROR, "aggregate function called in non-aggregate context");
  return context;
}

namespace {

const Node* argument_of(FunctionCallInfo fcinfo, int number) {
  const Aggref* call = AggGetAggref(fcinfo);
  if (call == nullptr || call->args == NIL) return nullptr;
  const List* arguments = call->args;
  const Node* last =
      reinterpret_cast<const Node*>(static_cast<TargetEntry*>(llast(arguments))->expr);
  if (IsA(last, RowExpr)) arguments = reinterpret_cast<const RowExpr*>(last)->args;
  if (list_length(arguments) <= number) return nullptr;
  const Node* argument = static_cast<const Node*>(list_nth(arguments, number));
  return IsA(argument, TargetEntry)
             ? reinterpret_cast<const Node*>(reinterpret_cast<const TargetEntry*>(argument)->expr)
             : argument;
}

}  // namespace

// A parameter counts as constant: it does not change while the aggregate runs.
bool is_constant_argument(FunctionCallInfo fcinfo, int number) {
  const Node* argument = argument_of(fcinfo, number);
  return argument != nullptr && (IsA(argument, Const) || IsA(argument, Param));
}

bool is_literal_argument(FunctionCallInfo fcinfo, int number) {
  const Node* argument = argument_of(fcinfo, number);
  return argument != nullptr && IsA(argument, Const);
}

void check_prototype(FunctionCallInfo fcinfo, int number) {
  if (PG_ARGISNULL(number))
    ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
                    errmsg("the prototype of a filter must not be null"),
                    errhint("Give a definition, for example 'sbf(memory=64kB, fpr=0.01)'.")));
}

const Header* get_prototype(FunctionCallInfo fcinfo, int number) {
  check_prototype(fcinfo, number);
  return get_value(PG_GETARG_DATUM(number));
}

uint64 given_prototype(FunctionCallInfo fcinfo, int number) {
  if (PG_ARGISNULL(number)) return 0;
  const auto* given = reinterpret_cast<const char*>(PG_GETARG_DATUM(number));
  if (VARATT_IS_EXTERNAL(given) && !VARATT_IS_EXTERNAL_ONDISK(given)) return 0;
  return hash_bytes(given, VARSIZE_ANY(given), 1);
}

[[noreturn]] void raise_changed_prototype() {
  ereport(
      ERROR,
      (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
       errmsg("the prototype of a filter must not change from row to row"),
       errhint("To merge filters, use streamfilter_union_agg; to fill one filter per group, let "
               "the prototype depend on the columns of GROUP BY only.")));
  pg_unreachable();
}

}  // namespace streamfilter::pg
