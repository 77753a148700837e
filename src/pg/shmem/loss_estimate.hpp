// How many rows a filter has probably discarded although they were new.
//
// A new row is taken for a repeat at the false-positive rate f of the time, and accepted otherwise.
// So f / (1 - f) new rows were discarded for each that was accepted: what is counted is what was
// seen, and f is the estimate of streamfilter_stats.fpr_now. Repeats that a filter has forgotten
// count as new ones here: where it forgets, the estimate is too high by as much.
//
// f changes when transactions bring keys in. It is looked up again when the accepted rows are a
// 64th more, after a second, after a reset or a merge: what is in between is taken at the rate
// before. The same look tells how full the filter is, by which accepted rows are counted for
// streamfilter_tuning.
#pragma once

#include "core/filter/filter.hpp"
#include "pg/shmem/filter_directory.hpp"

namespace streamfilter::pg {

// Sums over the slices of a filter, locked one after the other.
Totals read_totals(const FilterSlot* slot, const Parameters& parameters);

// Slices with a rate above this discard nothing; 0: all do.
void note_passing_rate(FilterSlot* slot, double rate);

// Looks the rate up if that is due: before the first row of a transaction is judged, and later on.
// Cannot raise.
void note_false_rate(FilterSlot* slot);

// Rows that were accepted; they are not in the slot's counter yet.
struct AcceptedRows {
  uint64 count;
  uint64 spared;   // of them: by whom no repeat is discarded
  bool met_empty;  // the filter, as their transaction sees it
};

// Cannot raise.
void add_losses(FilterSlot* slot, const AcceptedRows& accepted);

// A value was merged in: what was looked up is of another filter.
void expect_other_rate(FilterSlot* slot);

// NaN if the filter cannot tell.
double lost_rows(const FilterSlot* slot);

}  // namespace streamfilter::pg
