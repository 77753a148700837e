// One row, one verdict: a filter that has been given the key of a row takes it for a repeat from
// then on, also where another part of the same statement gives it the same row again.
#pragma once

#include "pg/handle/filter_handle.hpp"
#include "pg/trigger/row_source.hpp"

namespace streamfilter::pg {

[[noreturn]] void raise_asked_twice(const FilterHandle* filter);

// A query gives the filter a key. Raises 0A000 if another query that rules have made of the same
// statement has done so: both have the same rows.
inline void note_asked(FilterHandle* filter) {
  if (unlikely(filter->asked_in == running_statement && filter->asked_by != running_query &&
               running_statement != 0))
    raise_asked_twice(filter);
  filter->asked_in = running_statement;
  filter->asked_by = running_query;
}

}  // namespace streamfilter::pg
