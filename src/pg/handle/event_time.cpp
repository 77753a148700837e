#include "pg/server/postgres.hpp"

extern "C" {
#include "common/int.h"
}

#include "core/base/ticks.hpp"
#include "pg/catalog/element_roles.hpp"
#include "pg/handle/event_time.hpp"

namespace streamfilter::pg {
namespace {

void warn(FilterHandle* filter) {
  if (filter->warned_of_time) return;
  filter->warned_of_time = true;
  ereport(WARNING, errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
          errmsg("an event is too far ahead for filter \"%s\"", filter->relation->name),
          errdetail("Its time is later than the server's by more than max_future. It is judged as "
                    "one of the filter's present, and moves no window."),
          errhint("Look at the times that come in and their time zones (column ahead of "
                  "streamfilter_stats counts such events), or set option max_future."));
}

}  // namespace

void check_time(FilterHandle* filter, Element* element) {
  if (!is_finite(element->time)) return;
  // The clock is looked at only where the last look does not say enough.
  if (pg_add_s64_overflow(current_time(), filter->max_future, &filter->latest_time))
    filter->latest_time = PG_INT64_MAX;
  if (element->time <= filter->latest_time) return;
  element->time = PG_INT64_MAX;
  count_ahead(filter);
  warn(filter);
}

}  // namespace streamfilter::pg
