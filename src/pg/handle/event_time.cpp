#include "pg/server/postgres.hpp"

extern "C" {
#include "common/int.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
}

#include "core/filter/filter.hpp"
#include "pg/catalog/element_roles.hpp"
#include "pg/handle/event_time.hpp"
#include "pg/transaction/transaction_changes.hpp"

namespace streamfilter::pg {
namespace {

void warn(FilterHandle* filter) {
  if (filter->times.warned) return;
  filter->times.warned = true;
  ereport(WARNING, errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
          errmsg("an event is too far ahead for filter \"%s\"", filter->relation->name),
          errdetail("Its time is later than the server's clock by more than max_future. It counts "
                    "as an event of the filter's present, and does not move the window."),
          errhint("Check the times of events and their time zones, or set option max_future. "
                  "Column ahead of streamfilter_stats counts such events."));
}

void warn_of_clock(const FilterHandle* filter, int64 behind) {
  ereport(WARNING, errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
          errmsg("the clock went back for filter \"%s\"", filter->relation->name),
          errdetail("It remembers times up to %lld seconds later than the server's clock, and goes "
                    "on from there.",
                    static_cast<long long>((behind + USECS_PER_SEC - 1) / USECS_PER_SEC)),
          errhint("Look at the server's clock. To begin anew, use TRUNCATE %s.",
                  quote_identifier(filter->relation->name)));
}

// Advances the filter's time ahead of the clock by so much more.
void set_ahead(FilterHandle* filter, int64 more) {
  const int64 before =
      static_cast<int64>(pg_atomic_fetch_add_u64(&filter->slot->ahead_of_clock, more));
  if (before == 0) warn_of_clock(filter, more);
}

// Other sessions may come between reading the clock and reading the filter. If the clock seems to
// have gone back, read it again, after the filter.
void follow_clock(FilterHandle* filter, Element* element) {
  if (filter->slot == nullptr) return;
  const int64 latest = clock_of(filter->header, element->hash);
  const auto ahead = static_cast<int64>(pg_atomic_read_u64(&filter->slot->ahead_of_clock));
  element->time += ahead;
  if (likely(element->time >= latest && ahead == 0)) return;
  element->time = current_time();
  if (has_truncated(filter)) return;
  element->time += ahead;
  if (element->time >= latest) return;
  set_ahead(filter, latest - element->time);
  element->time = latest;
}

void check_time(FilterHandle* filter, Element* element) {
  if (!is_finite(element->time)) return;
  // Reads the clock only if the last reading does not decide.
  if (pg_add_s64_overflow(current_time(), filter->times.max_future, &filter->times.latest))
    filter->times.latest = PG_INT64_MAX;
  if (element->time <= filter->times.latest) return;
  element->time = PG_INT64_MAX;
  count(filter, RowCount::ahead);
  warn(filter);
}

}  // namespace

void bound_event_time(FilterHandle* filter, Element* element) {
  if (unlikely(element->time > filter->times.latest)) check_time(filter, element);
  if (filter->times.by_clock) follow_clock(filter, element);
}

void warn_of_late(const FilterHandle* filter) {
  static List* told = NIL;  // filters that this session has been told about
  const Oid relid = filter->relation->relid;
  if (list_member_oid(told, relid)) return;
  const MemoryContext caller = MemoryContextSwitchTo(TopMemoryContext);
  told = lappend_oid(told, relid);
  MemoryContextSwitchTo(caller);
  ereport(WARNING, errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
          errmsg("an event comes too late for filter \"%s\"", filter->relation->name),
          errdetail("Its time is before the filter's window and lateness. It passes and is not "
                    "remembered."),
          errhint("Look at the times that come in (column late of streamfilter_stats counts such "
                  "events), or set option lateness."));
}

}  // namespace streamfilter::pg
