#include "pg/server/postgres.hpp"

extern "C" {
#include "utils/resowner.h"
}

#include "pg/server/problem_report.hpp"

namespace streamfilter::pg {
static std::size_t cut_by_encoding(const char* text, std::size_t length,
                                   std::size_t most) noexcept {
  return pg_mbcliplen(text, static_cast<int>(length), static_cast<int>(most));
}

static pg_attribute_printf(1, 0) const char* print(const char* format, va_list arguments) {
  for (Size size = 256;;) {
    va_list copy;
    va_copy(copy, arguments);
    auto* text = allocate<char>(size);
    const Size needed = pvsnprintf(text, size, format, copy);
    va_end(copy);
    if (needed < size) return text;
    size = needed;
  }
}

static int sqlstate(Error error) noexcept {
  switch (error) {
    case Error::syntax: return ERRCODE_INVALID_PARAMETER_VALUE;
    case Error::unknown_name: return ERRCODE_FDW_INVALID_OPTION_NAME;
    case Error::out_of_range: return ERRCODE_INVALID_PARAMETER_VALUE;
    case Error::conflict: return ERRCODE_INVALID_PARAMETER_VALUE;
    case Error::too_small: return ERRCODE_INVALID_PARAMETER_VALUE;
    case Error::too_large: return ERRCODE_PROGRAM_LIMIT_EXCEEDED;
    case Error::mismatch: return ERRCODE_INVALID_PARAMETER_VALUE;
    case Error::unsupported: return ERRCODE_FEATURE_NOT_SUPPORTED;
    case Error::corrupt: return ERRCODE_DATA_CORRUPTED;
    case Error::newer_version: return ERRCODE_FEATURE_NOT_SUPPORTED;
    case Error::none: break;
  }
  return ERRCODE_INTERNAL_ERROR;
}

void init_problem_report() { set_cut_text(cut_by_encoding); }

int problem_report(const Problem& problem) {
  errcode(sqlstate(problem.error));
  errmsg("%s", problem.message);
  if (problem.detail[0] != '\0') errdetail("%s", problem.detail);
  if (problem.hint[0] != '\0') errhint("%s", problem.hint);
  return 0;
}

void raise(const Problem& problem) { ereport(ERROR, problem_report(problem)); }

bool Fault::set(int sqlstate, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  code = sqlstate;
  message = print(format, arguments);
  va_end(arguments);
  return false;
}

bool Fault::add_detail(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  detail = print(format, arguments);
  va_end(arguments);
  return false;
}

bool Fault::add_hint(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  hint = print(format, arguments);
  va_end(arguments);
  return false;
}

bool Fault::set(const Problem& problem) {
  code = sqlstate(problem.error);
  message = pstrdup(problem.message);
  detail = problem.detail[0] != '\0' ? pstrdup(problem.detail) : nullptr;
  hint = problem.hint[0] != '\0' ? pstrdup(problem.hint) : nullptr;
  return false;
}

const char* Fault::text() const {
  return detail == nullptr ? message : psprintf("%s: %s", message, detail);
}

int fault_report(const Fault& fault) {
  errcode(fault.code);
  errmsg_internal("%s", fault.message);
  if (fault.detail != nullptr) errdetail_internal("%s", fault.detail);
  if (fault.hint != nullptr) errhint("%s", fault.hint);
  return 0;
}

void raise(const Fault& fault) { ereport(ERROR, fault_report(fault)); }

ErrorData* error_in_savepoint(bool (*run)(void*), void* context) {
  const MemoryContext memory = CurrentMemoryContext;
  const ResourceOwner owner = CurrentResourceOwner;
  ErrorData* volatile error = nullptr;
  BeginInternalSubTransaction(nullptr);
  MemoryContextSwitchTo(memory);
  PG_TRY();
  {
    if (run(context))
      ReleaseCurrentSubTransaction();
    else
      RollbackAndReleaseCurrentSubTransaction();
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

}  // namespace streamfilter::pg
