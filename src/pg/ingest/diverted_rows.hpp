// Diverts repeats in batches, like divert.hpp one by one, where nothing can tell the difference.
#pragma once

#include "pg/ingest/batch_writer.hpp"
#include "pg/trigger/judge_row.hpp"

namespace streamfilter::pg {

// Converts rows of one table (partition) to rows of another.
struct DivertedRows;

// All diverted rows of a statement; zero: none yet.
struct Diverting {
  EState* estate;
  RowWatch watch;
  List* targets;
  // the target whose rows are being written, as the owner; nullptr: none
  struct DivertTarget* open;
};

// For a prepared judge. Allocates in the current memory context, which must last until the end.
// nullptr: rows must be diverted one by one, for this reason.
DivertedRows* open_diverted(Diverting* all, const RowJudge* judge, const char** obstacle);

// Adds a row of the table; copies it.
void divert_with_others(Diverting* all, const DivertedRows* rows, TupleTableSlot* row,
                        uint64 number);

// Writes the rows of a batch. Until then errors may concern them. The owner's code runs as the
// owner.
void write_diverted(Diverting* all);

void finish_diverting(Diverting* all);

}  // namespace streamfilter::pg
