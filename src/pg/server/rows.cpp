#include "pg/server/postgres.hpp"

extern "C" {
#include "tcop/cmdtag.h"
#include "utils/plancache.h"
}

#include "pg/server/rows.hpp"

namespace streamfilter::pg {

void require_arguments(FunctionCallInfo fcinfo, std::initializer_list<int> numbers) {
  for (const int number : numbers) {
    if (likely(!PG_ARGISNULL(number))) continue;
    const auto raise = [=](const FormData_pg_proc& function, HeapTuple row) {
      Oid* types;
      char** names;
      char* modes;
      get_func_arg_info(row, &types, &names, &modes);
      ereport(ERROR, errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
              errmsg("argument \"%s\" of %s must not be null", names[number],
                     NameStr(function.proname)));
    };
    read_catalog<FormData_pg_proc>(PROCOID, fcinfo->flinfo->fn_oid, raise);
  }
}

// ---- of a query ---------------------------------------------------------------------------------

Portal open_query(const char* query, const char* function) {
  SPIPlanPtr plan = SPI_prepare(query, 0, nullptr);
  if (plan == nullptr) elog(ERROR, "SPI_prepare failed: %s", SPI_result_code_string(SPI_result));
  List* statements = SPI_plan_get_plan_sources(plan);
  const char* found = "It has no statement.";
  if (list_length(statements) > 1) {
    found = psprintf("It has %d statements.", list_length(statements));
  } else if (list_length(statements) == 1) {
    const auto* source = static_cast<CachedPlanSource*>(linitial(statements));
    if (source->commandTag != CMDTAG_SELECT)
      found = psprintf("It is %s.", GetCommandTagName(source->commandTag));
    else if (!SPI_is_cursor_plan(plan))
      found = "It is a SELECT without a result.";
    else if (linitial_node(Query, source->query_list)->hasModifyingCTE)
      found = "It changes rows in WITH.";
    else
      found = nullptr;
  }
  if (found != nullptr)
    ereport(ERROR, (errcode(ERRCODE_INVALID_CURSOR_DEFINITION),
                    errmsg("argument \"query\" of %s must be one SELECT", function),
                    errdetail("%s", found), errhint("Give one SELECT that changes no rows.")));
  return SPI_cursor_open(nullptr, plan, nullptr, nullptr, false);
}

uint64 expected_rows(Portal portal) {
  const auto* statement = linitial_node(PlannedStmt, portal->stmts);
  return statement->planTree == nullptr
             ? 0
             : static_cast<uint64>(Max(0, statement->planTree->plan_rows));
}

}  // namespace streamfilter::pg
