// Gives a filter the keys of all rows of a plan. The executor would copy each row twice before it
// hands a batch over.
#pragma once

namespace streamfilter::pg {

// After ExecInitNode: do the rows of an INSERT into this filter go in batches, and does nothing
// look at a single one?
bool takes_batches(const ResultRelInfo* target);

// Rows without a key count as added.
struct KeyCounts {
  uint64 added, seen, batches;
};

// The rows have the filter's row type. Needs takes_batches().
KeyCounts insert_keys_of(PlanState* rows, ResultRelInfo* target);

}  // namespace streamfilter::pg
