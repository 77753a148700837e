// How many rows a filter has probably discarded although they were new.
//
// A new row is taken for a repeat at the false-positive rate f of the time, and accepted otherwise.
// So f / (1 - f) new rows were discarded for each that was accepted: what is counted is what was
// seen, and f is the estimate of streamfilter_stats.fpr_now. Repeats that a filter has forgotten
// count as new ones here: where it forgets, the estimate is too high by as much.
//
// f changes when transactions bring keys in. It is looked up again when the accepted rows are a
// 64th more, after a second, or after a reset: what is in between is taken at the rate before.
#pragma once

#include "core/filter/filter.hpp"
#include "pg/shmem/filter_directory.hpp"

namespace streamfilter::pg {

// Sums over the slices of a filter, each of which is locked in turn.
Totals read_totals(const FilterSlot* slot, const Parameters& parameters);

// Looks the rate up if that is due: before the first row of a transaction is judged, and later on.
// Cannot raise.
void note_false_rate(FilterSlot* slot);

// So many rows were accepted by whom repeats are discarded; they are not in the slot's counter yet.
// Cannot raise.
void add_losses(FilterSlot* slot, uint64 accepted);

// NaN if the filter cannot tell.
double lost_rows(const FilterSlot* slot);

}  // namespace streamfilter::pg
