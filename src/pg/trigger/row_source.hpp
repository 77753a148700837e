// Why a BEFORE INSERT row trigger fires: a trigger is told the row, not the statement behind it.
#pragma once

extern "C" {
#include "commands/trigger.h"
#include "nodes/execnodes.h"
}

#include "pg/handle/key_builder.hpp"
#include "pg/server/hooks.hpp"

namespace streamfilter::pg {

enum class Arrival : uint8 {
  inserted,             // by INSERT, the INSERT of a MERGE, or COPY
  moved,                // UPDATE or MERGE moves a row that exists into this partition
  on_conflict,          // by INSERT … ON CONFLICT DO UPDATE: it may not be inserted after all
  unless_conflict,      // by INSERT … ON CONFLICT DO NOTHING: nor may it
  unclear_executor,     // by an executor that is not the server's own
  unclear_replication,  // by a replication worker: inserted or moved
};

// Where the rows of one target of one statement come from: one answer for all of them, MERGE aside.
struct RowSource {
  Arrival arrival;
  uint64 statement;                       // that inserts them; 0: not known
  const ModifyTableState* merge;          // set if each row of this MERGE needs a look
  bool copied = false;                    // by no node that inserts: COPY, or another extension
  const ResultRelInfo* target = nullptr;  // of rows that come unless there is a conflict
};

// Statements are numbered as they begin; this is the innermost one that runs, 0: none. What another
// one calls has a higher number than that one.
extern uint64 running_statement;
// Its query, numbered likewise: of one statement rules can make several.
extern uint64 running_query;
// No statement has this number.
constexpr uint64 kNoStatement = PG_UINT64_MAX;
// Does the innermost one run within another?
bool is_within_statement();

// Called when a statement calls a trigger of ours for its first row in a table.
extern void (*on_first_row)(const RelationData* table);

// A place for what somebody keeps for the COPY that runs and calls no query; nullptr: none does. It
// is empty when COPY begins.
void** kept_for_copy();
// The command that its rows are of; triggers before them may have run others since.
CommandId command_of_copy();
// Rows were inserted for that COPY: its command tag counts them, too.
void count_copied(uint64 rows);

// Steps that note which statement runs.
void track_run(RunCall* call);
void track_finish(FinishCall* call);
void track_utility(UtilityCall* call);

// For the trigger that fires now. The answer holds as long as call->tg_trigger is the same object,
// and so may be kept in fn_extra.
RowSource find_row_source(const TriggerData* call);

// Why an AFTER DELETE row trigger fires.
enum class Departure : uint8 {
  deleted,  // also where a row is moved with another key, and where nothing says which it is
  moved,    // UPDATE or MERGE moves it to another partition, and leaves these columns alone
};

// Of all rows of one target of one statement; the columns are those of a key.
Departure find_departure(const TriggerData* call, const KeyInput* key, int count);

// How the row at hand arrives.
inline Arrival arrival_of(const RowSource& source) {
  if (likely(source.merge == nullptr)) return source.arrival;
  switch (SF_MERGE_COMMAND(source.merge)) {
    case CMD_INSERT: return Arrival::inserted;
    case CMD_UPDATE: return Arrival::moved;
    default: return Arrival::unclear_executor;
  }
}

}  // namespace streamfilter::pg
