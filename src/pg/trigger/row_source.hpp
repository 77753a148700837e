// Finds the statement behind a BEFORE INSERT row trigger. PostgreSQL tells a trigger the row, but
// not why it is inserted.
#pragma once

extern "C" {
#include "catalog/pg_class.h"
#include "commands/trigger.h"
#include "executor/execdesc.h"
#include "nodes/execnodes.h"
#include "utils/rel.h"
}

#include "pg/handle/key_builder.hpp"
#include "pg/server/hooks.hpp"

namespace streamfilter::pg {

enum class InsertCause : uint8 {
  inserted,             // by INSERT, the INSERT of a MERGE, or COPY
  moved,                // by UPDATE or MERGE, from another partition; the row exists already
  on_conflict,          // by INSERT … ON CONFLICT DO UPDATE, which may not insert it after all
  unless_conflict,      // by INSERT … ON CONFLICT DO NOTHING, likewise
  unclear_executor,     // by an executor other than PostgreSQL's
  unclear_replication,  // by a replication worker, inserted or moved
};

// Origin of the rows of one target of one statement. The same for all of them, except for MERGE.
struct RowSource {
  InsertCause cause;
  uint64 statement;                       // inserts the rows; 0 if not known
  const ModifyTableState* merge;          // set if each row of this MERGE needs its own look
  bool copied = false;                    // not by ModifyTable: COPY, or another extension
  const ResultRelInfo* target = nullptr;  // of an INSERT
};

inline bool is_partitioned(const ResultRelInfo* target) {
  return target->ri_RelationDesc->rd_rel->relkind == RELKIND_PARTITIONED_TABLE;
}

// Number of the innermost running statement, 0 if none. Numbers ascend, so nested statements have
// higher ones.
extern uint64 running_statement;
// Number of its query, counted likewise; rules can make several queries of one statement.
extern uint64 running_query;
// No statement has this number.
constexpr uint64 kNoStatement = PG_UINT64_MAX;
// Does the innermost statement run within another one?
bool is_within_statement();

// A COPY that runs.
struct Copied {
  bool pauses;   // it reads what a client or a program sends
  bool chooses;  // it has a WHERE clause
  void* kept;
  uint64 rows;
  CommandId command;
};

// A statement that runs. Queries that only read and call only PostgreSQL's functions are not among
// these.
struct Frame {
  const QueryDesc* query;  // nullptr for a utility statement
  NodeTag kind;            // of a utility statement
  Copied* copy;            // set if that is COPY
  uint64 number;
  uint64 query_number;
  const Frame* below;  // the statement that runs this one
};

// nullptr: no statement runs.
const Frame* innermost_frame();

// A place for state of the running COPY, empty when COPY begins; nullptr if a query runs instead.
void** kept_for_copy();
// The command id for rows of the COPY; triggers before them may have run other commands.
CommandId command_of_copy();
// Somebody sees to it that nobody waits for the COPY while its client sends nothing.
void copy_never_pauses();
// Adds rows to the COPY's command tag.
void count_copied(uint64 rows);

// Steps that track the running statement.
void track_run(RunCall* call);
void track_finish(FinishCall* call);
void track_utility(UtilityCall* call);

// For the trigger that fires now. The answer holds as long as call->tg_trigger is the same object,
// so it may be kept in fn_extra.
RowSource find_row_source(const TriggerData* call);

// Reason of an AFTER DELETE row trigger.
enum class DeleteCause : uint8 {
  deleted,  // also for a row that moves with another key, and where the reason is not known
  moved,    // by UPDATE or MERGE, to another partition, with these columns unchanged
};

// The answer for all rows of one target of one statement; the columns are those of a key.
DeleteCause find_delete_cause(const TriggerData* call, const KeyInput* key, int count);

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
