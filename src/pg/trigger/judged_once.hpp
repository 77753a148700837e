// Each row is judged once. If two parts of a statement gave a filter the key of the same row, the
// second answer would always be "repeat", and the row would be lost.
#pragma once

#include "pg/trigger/row_source.hpp"

namespace streamfilter::pg {

struct RowJudge;

// Notes that a query gives the filter its first key. Raises 0A000 if another query of the same
// statement, made by a rule, has done so: both have the same rows. Also what look_at_askers()
// raises.
void note_first_asked(FilterHandle* filter);

// Call it for each key that a query gives the filter.
inline void note_asked(FilterHandle* filter) {
  if (unlikely(filter->last.asked_by != running_query)) note_first_asked(filter);
}

// Raises 0A000 if another part of the statement has given the filter the row's key. Call it for
// each judged row, except in mode off.
void check_judged_once(const RowJudge* judge);

}  // namespace streamfilter::pg
