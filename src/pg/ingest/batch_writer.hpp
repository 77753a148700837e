// Writes rows into tables many at a time, as COPY does: first the rows, then their index entries
// and the events of AFTER triggers. Rows may go to several partitions of one table; index entries
// and triggers follow the order in which the rows came.
#pragma once

extern "C" {
#include "commands/trigger.h"
}

namespace streamfilter::pg {

struct BatchWriter;

// As many as in COPY, and one batch more (ingest.hpp).
constexpr int kMaxWaitingRows = 1000 + 512;

// A table that rows are written to.
struct BatchTable;

// Callbacks for the reader of the rows, by the numbers that it gave them; nullptr: not wanted.
struct RowWatch {
  // Points to the number of the row that an error would concern; 0: the row being read.
  uint64* at;
  // The row will be written as number `place` of a batch, and until then an error may concern it.
  // Rows of a batch that are not kept cause no error later.
  void (*keep)(void* context, int place, uint64 number);
  void* context;
};

inline void look_at(const RowWatch& watch, uint64 number) {
  if (watch.at != nullptr) *watch.at = number;
}

inline void keep(const RowWatch& watch, int place, uint64 number) {
  if (unlikely(watch.keep != nullptr)) watch.keep(watch.context, place, number);
}

struct WriteMode {
  int options;        // of table_multi_insert
  bool spares_cache;  // like COPY, not all written pages stay in the cache
  // For INSERT … ON CONFLICT DO NOTHING: each row goes to its indexes before the next one.
  bool skips_conflicts;
  bool returns;  // the caller takes written rows by next_written()
};

// Allocates in the current memory context. Rows get the command id of the EState (es_output_cid);
// the transition tables get the rows, nullptr: there are none.
BatchWriter* begin_batch_writer(EState* estate, WriteMode mode, TransitionCaptureState* transition,
                                RowWatch watch);

// The target must live as long as the writer. A second call makes a new table.
BatchTable* add_table(BatchWriter* writer, ResultRelInfo* target);

// An empty slot for a row of the table, to hold a heap tuple of the caller.
TupleTableSlot* take_slot(BatchTable* table);
void give_back_slot(BatchTable* table, TupleTableSlot* row);

// Makes rows that last until they are written: a copy of one, or memory for others. The caller may
// drop some of them.
HeapTuple copy_row(BatchWriter* writer, TupleTableSlot* row);
MemoryContext row_memory(BatchWriter* writer);

// Takes the slot back with a row made here: computes its generated columns and checks its
// constraints. At once: its index entries exist when this returns. False: an index has the row, and
// conflicts are skipped.
bool write_row(BatchTable* table, TupleTableSlot* row, uint64 number, bool at_once);

// Writes waiting rows if there are enough. Call it after at most 512 rows, when every row made here
// was given or dropped.
void write_if_many(BatchWriter* writer);

// Writes all waiting rows.
void write_batch(BatchWriter* writer);

// Writes waiting rows, then inserts this one with all its triggers, also into a table that takes no
// batches. False: a trigger has discarded it, or an index has it, as above.
bool write_alone(BatchTable* table, TupleTableSlot* row, uint64 number);

// For a writer that returns rows, when every row made here was given or dropped: the next of the
// written rows, in the order in which they came. It stays until the caller has had nullptr, which
// comes too while rows wait to be written.
TupleTableSlot* next_written(BatchWriter* writer);

// Writes the rest and frees everything; returns the number of batches. After an error the end of
// the transaction frees it.
uint64 finish_batch_writer(BatchWriter* writer);

}  // namespace streamfilter::pg
