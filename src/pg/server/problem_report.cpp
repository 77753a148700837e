#include "pg/server/postgres.hpp"

extern "C" {
#include "mb/pg_wchar.h"
}

#include "pg/server/problem_report.hpp"

namespace streamfilter::pg {
namespace {

std::size_t cut_by_encoding(const char* text, std::size_t length, std::size_t most) noexcept {
  return pg_mbcliplen(text, static_cast<int>(length), static_cast<int>(most));
}

}  // namespace

void init_problem_report() { set_cut_text(cut_by_encoding); }

int sqlstate(Error error) noexcept {
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

int problem_report(const Problem& problem) {
  errcode(sqlstate(problem.error));
  errmsg("%s", problem.message);
  if (problem.detail[0] != '\0') errdetail("%s", problem.detail);
  if (problem.hint[0] != '\0') errhint("%s", problem.hint);
  return 0;
}

void raise(const Problem& problem) {
  ereport(ERROR, problem_report(problem));
  pg_unreachable();
}

}  // namespace streamfilter::pg
