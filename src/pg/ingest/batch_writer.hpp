// Writes rows into tables many at a time: first the rows, then their index entries and the events
// of AFTER triggers, as COPY does it. Rows may go to several tables, the partitions of one; index
// entries and triggers follow the order in which the rows came.
#pragma once

extern "C" {
#include "commands/trigger.h"
#include "nodes/execnodes.h"
}

namespace streamfilter::pg {

struct BatchWriter;

// As many as COPY has them, and one batch more (ingest.hpp).
constexpr int kMaxWaitingRows = 1000 + 512;

// One of the tables.
struct BatchTable;

// What the reader of the rows is told about them, by the numbers that they came with. nullptr: the
// reader does not want to know.
struct RowWatch {
  // Here is the number of the row that an error would concern; 0: the one that is being read.
  uint64* at;
  // The row is to be written with others, as the one that came after so many of them, and an error
  // may concern it until then. Rows that are not kept within a batch of later
  // ones cause no error.
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
  bool spares_cache;  // it does not get all pages that are written, as COPY has it
  // Of INSERT … ON CONFLICT DO NOTHING: each row goes to its indexes before the next one.
  bool skips_conflicts;
};

// In the current memory context. Rows get the command id of the EState (es_output_cid), and the
// transition tables get the rows, nullptr: there are none.
BatchWriter* begin_batch_writer(EState* estate, WriteMode mode, TransitionCaptureState* transition,
                                RowWatch watch);

// The target must live as long as the writer; asked for again, the table is a new one.
BatchTable* add_table(BatchWriter* writer, ResultRelInfo* target);

// An empty slot for a row of the table, for a heap tuple that the caller has.
TupleTableSlot* take_slot(BatchTable* table);
void give_back_slot(BatchTable* table, TupleTableSlot* row);

// Rows are made here, to stay until they are written: a copy of one, or the memory for others. The
// caller may find some of them not worth writing.
HeapTuple copy_row(BatchWriter* writer, TupleTableSlot* row);
MemoryContext row_memory(BatchWriter* writer);

// Takes the slot back, with a row that was made here and is to be inserted: its generated columns
// are computed, its constraints checked. At once: its indexes have it when this returns. False: an
// index has it, and conflicts are skipped.
bool write_row(BatchTable* table, TupleTableSlot* row, uint64 number, bool at_once);

// Writes what waits if that is enough; to be called after every 512 rows at the latest, when none
// is left that was made here and has not been given.
void write_if_many(BatchWriter* writer);

// Writes all that waits.
void write_batch(BatchWriter* writer);

// Inserts this row now, after those before it, with all its triggers. The table may be one that
// takes no batches. False: a trigger has discarded it, or an index has it, as above.
bool write_alone(BatchTable* table, TupleTableSlot* row, uint64 number);

// Writes the rest and gives everything back; how many batches were there? After an error the end of
// the transaction gives it back.
uint64 finish_batch_writer(BatchWriter* writer);

}  // namespace streamfilter::pg
