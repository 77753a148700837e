// The rows of a statement on their way into its table, many at a time: each finds its partition,
// our trigger there judges it, and what is kept is written in batches. The result is that of one
// row after the other, as nothing that could look at the table runs in between.
#pragma once

extern "C" {
#include "nodes/execnodes.h"
}

#include "pg/ingest/batch_writer.hpp"

namespace streamfilter::pg {

struct Ingest;

struct IngestCounts {
  uint64 rows;       // that have come
  uint64 inserted;   // or are about to be
  uint64 discarded;  // by a trigger
  uint64 batches;
};

// What keeps rows of this target, as a whole, from going this way; nullptr: nothing. A text for
// EXPLAIN, palloc'ed or constant. `judged`: has it a trigger of ours that judges them? Looks at
// the target only: what else the statement asks for is the caller's to look at (transition tables
// are refused here). Of partitions nothing is known yet; one that cannot take rows this way
// gets them one by one.
const char* why_row_by_row(const ModifyTableState* node, bool* judged);

// `node` may be one that was made up, as COPY does it: its state and operation, its
// rootResultRelInfo, for partitions its mt_partition_tuple_routing. Statement triggers,
// es_processed and the command tag are the caller's. `options` are those of table_multi_insert.
Ingest* begin_ingest(ModifyTableState* node, int options, RowWatch watch);

// An empty slot for the next row, of the root's row type, that needs no copy when it is given to
// ingest_row: values may be stored in it as a virtual tuple, and have to last only until then.
TupleTableSlot* row_to_fill(Ingest* ingest);

// A row of the root's row type, in that slot or in any other, which stays the caller's. `number` is
// for the RowWatch.
void ingest_row(Ingest* ingest, TupleTableSlot* row, uint64 number);

// Judges and writes the rest, and gives everything back.
void finish_ingest(Ingest* ingest);

const IngestCounts* counts_of(const Ingest* ingest);

}  // namespace streamfilter::pg
