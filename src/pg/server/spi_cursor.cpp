#include "pg/server/postgres.hpp"

extern "C" {
#include "executor/spi.h"
#include "tcop/cmdtag.h"
#include "utils/plancache.h"
#include "utils/timestamp.h"
}

#include "pg/server/spi_cursor.hpp"

namespace streamfilter::pg {
namespace {

constexpr int64 kQuiet = 2 * USECS_PER_SEC;     // before the first notice
constexpr int64 kInterval = 5 * USECS_PER_SEC;  // between notices

}  // namespace

Portal open_query(const char* query, const char* function) {
  SPIPlanPtr plan = SPI_prepare(query, 0, nullptr);
  if (plan == nullptr) elog(ERROR, "SPI_prepare failed: %s", SPI_result_code_string(SPI_result));
  List* statements = SPI_plan_get_plan_sources(plan);
  const char* found = "It has no statement.";
  if (list_length(statements) > 1) {
    found = psprintf("It has %d statements.", list_length(statements));
  } else if (list_length(statements) == 1) {
    const CommandTag tag = static_cast<CachedPlanSource*>(linitial(statements))->commandTag;
    found = tag == CMDTAG_SELECT && SPI_is_cursor_plan(plan)
                ? nullptr
                : psprintf("It is %s.", tag == CMDTAG_SELECT ? "a SELECT without a result"
                                                             : GetCommandTagName(tag));
  }
  if (found != nullptr)
    ereport(ERROR, (errcode(ERRCODE_INVALID_CURSOR_DEFINITION),
                    errmsg("argument \"query\" of %s must be one SELECT", function),
                    errdetail("%s", found)));
  return SPI_cursor_open(nullptr, plan, nullptr, nullptr, false);
}

Progress::Progress(const char* function)
    : function_(function), start_(GetCurrentTimestamp()), next_(start_ + kQuiet) {}

void Progress::add(uint64 rows) {
  CHECK_FOR_INTERRUPTS();
  rows_ += rows;
  const TimestampTz now = GetCurrentTimestamp();
  if (now < next_) return;
  next_ = now + kInterval;
  const double seconds = static_cast<double>(now - start_) / USECS_PER_SEC;
  ereport(NOTICE, (errmsg("%s: " UINT64_FORMAT " rows read in %.0f s", function_, rows_, seconds)));
}

}  // namespace streamfilter::pg
