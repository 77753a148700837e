// The rows of a statement on their way into its table, many at a time: each finds its partition,
// our trigger there judges it, and what is kept is written in batches. The result is that of one
// row after the other, as long as nothing in between looks at the table (target_rule.hpp).
#pragma once

extern "C" {
#include "nodes/execnodes.h"
}

#include "pg/ingest/batch_writer.hpp"

namespace streamfilter::pg {

struct Ingest;

// So many rows may have come that are not judged yet.
constexpr int kMaxUnjudgedRows = 512;

struct IngestCounts {
  uint64 rows;           // that have come
  uint64 inserted;       // or are about to be
  uint64 discarded;      // by a trigger, or skipped by ON CONFLICT among those that came alone
  uint64 conflicting;    // passed the trigger and were skipped by ON CONFLICT
  uint64 alone;          // came to tables that do not take batches
  uint64 batches;        // that were written, or with ON CONFLICT judged
  const char* obstacle;  // of the first table that does not take them; nullptr: there was none
};

// In the current memory context, which must be the EState's or live longer. `node` may be one that
// was made up, as COPY does it: with its state and operation, its rootResultRelInfo, its
// mt_transition_capture, and for a partitioned table its mt_partition_tuple_routing. Statement
// triggers, es_processed and the command tag are the caller's. Partitions that do not take batches
// get their rows one by one. `asked`: some filter was asked for each row before it came. That of a
// trigger may be of the same tree; then its rows come one by one, too.
Ingest* begin_ingest(ModifyTableState* node, WriteMode mode, RowWatch watch, bool asked);

// A slot of the target's row type, for callers who have none: values may be stored in it as a
// virtual tuple, and have to last only until it is given to ingest_row.
TupleTableSlot* row_to_fill(Ingest* ingest);

// A row of the target's row type, in whatever slot; it is copied. `number` is for the RowWatch.
// Resets the per-tuple context of the EState.
void ingest_row(Ingest* ingest, TupleTableSlot* row, uint64 number);

// Judges and writes the rest, and gives everything back.
IngestCounts finish_ingest(Ingest* ingest);

// While it goes on.
const IngestCounts* counts_of(const Ingest* ingest);

// The number of the row whose key waits for another transaction, or has waited last; 0: none has.
uint64 row_that_waits(const Ingest* ingest);

}  // namespace streamfilter::pg
