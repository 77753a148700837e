// Repeats on their way into the table that they are diverted to, a batch at a time: as divert.hpp
// does it with one row, where nothing can tell the difference.
#pragma once

#include "pg/ingest/batch_writer.hpp"
#include "pg/trigger/trigger_rows.hpp"

namespace streamfilter::pg {

// How rows of one table (partition) become those of another one.
struct DivertedRows;

// All that a statement diverts; zero: nothing yet.
struct Diverting {
  EState* estate;
  RowWatch watch;
  List* targets;
  struct DivertTarget* open;  // whose rows are being written, as the owner; nullptr: none
};

// For a judge that is prepared, in the current memory context, which lives until all is finished.
// nullptr: they have to go one by one, for this reason.
DivertedRows* open_diverted(Diverting* all, const RowJudge* judge, const char** obstacle);

// A row of the table; it is copied.
void divert_with_others(Diverting* all, const DivertedRows* rows, TupleTableSlot* row,
                        uint64 number);

// Writes those of a batch. Until then errors may concern them, and the owner's code runs as the
// owner.
void write_diverted(Diverting* all);

void finish_diverting(Diverting* all);

}  // namespace streamfilter::pg
