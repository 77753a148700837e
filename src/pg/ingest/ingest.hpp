// Brings the rows of a statement into its table, many at a time: finds the partition of each,
// judges it by our trigger there, and writes kept rows in batches. The result is that of one row
// after the other, as long as nothing in between looks at the table (target_rule.hpp).
#pragma once

#include "pg/ingest/batch_writer.hpp"

namespace streamfilter::pg {

struct Ingest;

// Maximum number of rows that were given but not judged.
constexpr int kMaxUnjudgedRows = 512;

struct IngestCounts {
  uint64 rows;           // rows given
  uint64 inserted;       // or about to be
  uint64 discarded;      // by a trigger, or skipped by ON CONFLICT among rows that went alone
  uint64 conflicting;    // passed the trigger, skipped by ON CONFLICT
  uint64 alone;          // rows of tables that do not take batches
  uint64 batches;        // written, or with ON CONFLICT judged
  const char* obstacle;  // of the first table that does not take batches; nullptr: none
};

// Allocates in the current memory context, which must be the EState's or live longer. `node` may be
// made up, as COPY does it: with its state and operation, its rootResultRelInfo, its
// mt_transition_capture, and for a partitioned table its mt_partition_tuple_routing. Statement
// triggers, es_processed and the command tag are the caller's. Partitions that do not take batches
// get their rows one by one. `asked`: some filter was asked for each row before it came. If a
// trigger's filter may be of the same tree, its rows go one by one, too.
Ingest* begin_ingest(ModifyTableState* node, WriteMode mode, RowWatch watch, bool asked);

// For a caller without slots of its own: a context for the values of rows in the slots below. They
// stay until their batch is judged, so that no tuple is formed of a repeat.
ExprContext* keep_values(Ingest* ingest);
// A slot of the target's row type for the next row; needs such a context.
TupleTableSlot* row_to_fill(Ingest* ingest);

// Adds a row of the target's row type, in any slot; copies it, unless it is in the one for it.
// `number` is for the RowWatch. Resets the per-tuple context of the EState.
void ingest_row(Ingest* ingest, TupleTableSlot* row, uint64 number);

// Frees values that are not needed; needs such a context. Call it instead of ingest_row for a row
// that is none.
void free_values(Ingest* ingest);

// For a WriteMode that returns rows, after each call of ingest_row() and of settle_ingest(), until
// it is nullptr: the next row that was inserted. It stays until the next call.
TupleTableSlot* next_inserted(Ingest* ingest);

// Judges and writes all rows that were given.
void settle_ingest(Ingest* ingest);

// The same, and frees everything.
IngestCounts finish_ingest(Ingest* ingest);

// Counts so far.
const IngestCounts* counts_of(const Ingest* ingest);

// Number of the row whose key waits, or waited last, for another transaction; 0: none.
uint64 row_that_waits(const Ingest* ingest);

}  // namespace streamfilter::pg
