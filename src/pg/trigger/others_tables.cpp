#include "pg/server/postgres.hpp"

extern "C" {
#include "utils/resowner.h"
}

#include "pg/trigger/others_tables.hpp"

namespace streamfilter::pg {
namespace {

// Cancellation, lack of memory, shutdown and internal errors still end the statement.
bool concerns_the_statement(int sqlstate) {
  const int category = ERRCODE_TO_CATEGORY(sqlstate);
  return category == ERRCODE_TO_CATEGORY(ERRCODE_OPERATOR_INTERVENTION) ||
         category == ERRCODE_TO_CATEGORY(ERRCODE_INSUFFICIENT_RESOURCES) ||
         category == ERRCODE_TO_CATEGORY(ERRCODE_INTERNAL_ERROR);
}

pg_noinline ErrorData* find_error(void (*check)(void*), void* context) {
  const MemoryContext memory = CurrentMemoryContext;
  const ResourceOwner owner = CurrentResourceOwner;
  ErrorData* volatile error = nullptr;
  BeginInternalSubTransaction(nullptr);
  MemoryContextSwitchTo(memory);
  PG_TRY();
  {
    check(context);
    ReleaseCurrentSubTransaction();
  }
  PG_CATCH();
  {
    MemoryContextSwitchTo(memory);
    error = CopyErrorData();
    FlushErrorState();
    RollbackAndReleaseCurrentSubTransaction();
  }
  PG_END_TRY();
  MemoryContextSwitchTo(memory);
  CurrentResourceOwner = owner;
  return error;
}

}  // namespace

void warn_instead(void (*check)(void* context), void* context) {
  ErrorData* error = find_error(check, context);
  if (error == nullptr) return;
  if (concerns_the_statement(error->sqlerrcode)) ReThrowError(error);
  error->elevel = WARNING;
  ThrowErrorData(error);
}

}  // namespace streamfilter::pg
