// Finds the statement behind a BEFORE INSERT row trigger. PostgreSQL tells a trigger the row, but
// not why it is inserted.
#pragma once

extern "C" {
#include "commands/trigger.h"
}

#include "pg/handle/key_builder.hpp"
#include "pg/handle/statement.hpp"

namespace streamfilter::pg {

enum class InsertCause : uint8 {
  inserted,             // by INSERT, the INSERT of a MERGE, or COPY
  moved,                // by UPDATE or MERGE, from another partition; the row exists already
  unclear_executor,     // by an executor other than PostgreSQL's
  unclear_replication,  // by a replication worker, inserted or moved
};

// Origin of the rows of one target of one statement. The same for all of them, except for MERGE.
struct RowSource {
  InsertCause cause;
  uint64 statement;                       // inserts the rows; 0 if not known
  const ModifyTableState* merge;          // set if each row of this MERGE needs its own look
  bool outside = false;                   // not by ModifyTable: COPY, or another extension
  const ResultRelInfo* target = nullptr;  // of an INSERT
  bool conflicts = false;                 // it has ON CONFLICT
};

inline bool is_partitioned(const ResultRelInfo* target) {
  return target->ri_RelationDesc->rd_rel->relkind == RELKIND_PARTITIONED_TABLE;
}

// For the trigger that fires now. The answer holds as long as call->tg_trigger is the same object,
// so it may be kept in fn_extra.
RowSource find_row_source(const TriggerData* call);

// Do rows that fire a DELETE trigger go on in another partition, by UPDATE or MERGE? For all rows
// of one target of one statement; false where that is not known.
bool moves_rows(const TriggerData* call);

// InsertCause of the current row.
inline InsertCause cause_of(const RowSource& source) {
  if (likely(source.merge == nullptr)) return source.cause;
  switch (SF_MERGE_COMMAND(source.merge)) {
    case CMD_INSERT: return InsertCause::inserted;
    case CMD_UPDATE: return InsertCause::moved;
    default: return InsertCause::unclear_executor;
  }
}

}  // namespace streamfilter::pg
