#include "streamfilter/pg/pg.hpp"

extern "C" {
#include "nodes/primnodes.h"
}

#include "streamfilter/pg/aggregate_arguments.hpp"
#include "streamfilter/pg/value.hpp"

namespace streamfilter::pg {

MemoryContext aggregate_context(FunctionCallInfo fcinfo) {
  MemoryContext context;
  if (!AggCheckCallContext(fcinfo, &context))
    elog(ERROR, "aggregate function called in non-aggregate context");
  return context;
}

// A parameter is as good as a constant: it does not change while the aggregate runs.
bool is_constant_argument(FunctionCallInfo fcinfo, int number) {
  const Aggref* call = AggGetAggref(fcinfo);
  if (call == nullptr || call->args == NIL) return false;
  const Node* argument = nullptr;
  const Expr* last = static_cast<TargetEntry*>(llast(call->args))->expr;
  if (list_length(call->args) == PG_NARGS() - 1)
    argument = reinterpret_cast<Node*>(static_cast<TargetEntry*>(list_nth(call->args, number))->expr);
  else if (IsA(last, RowExpr))
    argument = static_cast<Node*>(list_nth(reinterpret_cast<const RowExpr*>(last)->args, number));
  return argument != nullptr && (IsA(argument, Const) || IsA(argument, Param));
}

const Header* get_prototype(FunctionCallInfo fcinfo, int number) {
  if (PG_ARGISNULL(number))
    ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
                    errmsg("the prototype of a filter must not be null"),
                    errhint("Give a definition, for example 'sbf(memory=64kB, fpr=0.01)'.")));
  return get_value(PG_GETARG_DATUM(number));
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
