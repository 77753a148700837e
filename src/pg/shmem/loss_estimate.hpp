// How many rows a filter has probably discarded although they were new.
//
// A new row is taken for a repeat at the false-positive rate f of the time, and accepted otherwise.
// So f / (1 - f) new rows were discarded for each that was accepted: what is counted is what was
// seen, and f is the estimate of streamfilter_stats.fpr_now. Repeats that a filter has forgotten
// count as new ones here: where it forgets, the estimate is too high by as much.
//
// A filter that is nearly full accepts too few rows to tell by, a full one none. Where f is above a
// half, the rows themselves count: f times the share of them that is new. That share is known from
// those that were accepted so far, of all rows by the odds 1 - f at which a new one was; the latest
// thousands count.
//
// f changes when transactions bring keys in. It is looked up again when the accepted rows are a
// 64th more, after a second, after a reset or a merge: what is in between is taken at the rate
// before. The same look tells how full the filter is, by which accepted rows are counted for
// streamfilter_tuning.
#pragma once

#include "pg/shmem/filter_directory.hpp"

namespace streamfilter::pg {

// Sums over the slices of a filter, which it locks one after the other.
Totals read_totals(const FilterSlot* slot, const Parameters& parameters);

// Sets the rate above which slices discard nothing; 0: all discard.
void note_passing_rate(FilterSlot* slot, double rate);

// Reads the rate if that is due: before the first row of a transaction is judged, and later on.
// Cannot raise.
void note_false_rate(FilterSlot* slot);

// Judged rows that are not yet in the slot's counters.
struct RowsToAdd {
  uint64 accepted;
  uint64 spared;  // of these, rows judged where no repeat is discarded
  uint64 discarded;
  bool met_empty;  // the transaction found the filter empty
};

// Cannot raise.
void add_losses(FilterSlot* slot, const RowsToAdd& rows);

// Call after merging a value: the rate has changed.
void expect_other_rate(FilterSlot* slot);

// NaN if the filter cannot tell.
double lost_rows(const FilterSlot* slot);

}  // namespace streamfilter::pg
