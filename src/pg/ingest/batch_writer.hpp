// Writes rows into tables many at a time: first the rows, then their index entries, then the events
// of AFTER triggers, as COPY does it. Rows may go to several tables, the partitions of one; within
// a batch each keeps its place, so that triggers see them in the order in which they came.
#pragma once

extern "C" {
#include "nodes/execnodes.h"
}

namespace streamfilter::pg {

struct BatchWriter;

// Tells whoever reads the rows which one an error would concern, by the number that it came with;
// 0: the one that is being read, as before.
struct RowWatch {
  void (*look_at)(void* context, uint64 number);
  void* context;
};

// Must live as long as the EState, in whose query context all lives. `options` are
// those of table_multi_insert.
BatchWriter* begin_batch_writer(EState* estate, int options, RowWatch watch);

// An empty slot for a row of the table. It belongs to the caller until it is given to write_row or
// drop_row.
TupleTableSlot* take_slot(BatchWriter* writer, ResultRelInfo* target);

// The row is to be inserted: its generated columns are computed, its constraints checked. When a
// batch is full, it is written.
void write_row(BatchWriter* writer, ResultRelInfo* target, TupleTableSlot* row, uint64 number);

// The row is not wanted.
void drop_row(BatchWriter* writer, ResultRelInfo* target, TupleTableSlot* row);

// Whatever there is, is written now.
void write_batch(BatchWriter* writer);

// Inserts this row now, after those before it, with all its triggers, whatever the table is. The
// row is dropped afterwards. False: a trigger has discarded it.
bool write_alone(BatchWriter* writer, ResultRelInfo* target, TupleTableSlot* row, uint64 number);

// Writes the rest and gives everything back. After an error the transaction's end does so.
void finish_batch_writer(BatchWriter* writer);

uint64 batches_written(const BatchWriter* writer);

}  // namespace streamfilter::pg
