// A trigger's way to a verdict, for callers that have rows of its table: the trigger function,
// which has them one by one, and pg/ingest, which has many.
#pragma once

extern "C" {
#include "commands/trigger.h"
#include "executor/tuptable.h"
#include "utils/rel.h"
}

#include "pg/handle/event_time.hpp"
#include "pg/shmem/trigger_counts.hpp"
#include "pg/trigger/table_watch.hpp"
#include "pg/trigger/trigger_definition.hpp"

namespace streamfilter::pg {

// What a statement has resolved, for one table (partition) that it inserts into.
struct RowJudge {
  TriggerKind kind;
  uint64 statement;  // that inserts the rows; 0: not known
  bool never_waits;  // resolved: nothing in the table makes a row wait for those of others
  bool routed;       // another extension brings them, and may fill several tables with them
  bool lasts;        // resolved: also for later statements, until table or filter change
  const Trigger* trigger;
  Relation table;
  MemoryContext context;  // of what follows
  Oid resolved;           // the trigger, by its OID
  Oid created;  // the trigger that CREATE TRIGGER made, if this one is a clone, or the copy that
                // a chunk has of its parent's; on shards, since a statement may fill
                // several, the filter
  Oid owner;    // who answers for it
  Oid target;   // where repeats are diverted to, if it does that
  int replication_role;
  const TableWatch* watch;
  uint64 table_changes;
  const TableWatch* origin;
  uint64 origin_changes;
  uint64 checked_version, checked_changes;  // of filter and table, for INSERT … ON CONFLICT
  TriggerPlan* plan;
  List* key_indexes;  // that are to be asked before a row is inserted
  TriggerTally* tally;
  KeyBuilder keys;  // without a filter: nothing is resolved
};

// Its memory comes from `parent`. The rest is zero.
void init_row_judge(RowJudge* judge, TriggerKind kind, uint64 statement, MemoryContext parent);

void resolve(RowJudge* judge);

inline bool is_resolved(const RowJudge* judge) {
  return is_current(&judge->keys) && judge->resolved == judge->trigger->tgoid &&
         judge->replication_role == SessionReplicationRole &&
         judge->table_changes == judge->watch->changes &&
         judge->origin_changes == judge->origin->changes;
}

// Ready to judge: everything is resolved, locked and attached. To be called again whenever code of
// others has run.
inline void prepare(RowJudge* judge) {
  if (likely(judge->keys.filter != nullptr)) use_filter(judge->keys.filter, Use::judge_granted);
  if (unlikely(!is_resolved(judge))) resolve(judge);
  judge->keys.filter->never_waits = judge->never_waits;
  check_mode(judge->keys.filter, judge->owner);
}

// For INSERT … ON CONFLICT DO NOTHING, once the judge is prepared: a row that a unique index
// refuses is remembered all the same, so its key has to be in the table. Raises 0A000, with the
// reason.
void check_conflicts(RowJudge* judge, const ResultRelInfo* target);

// One row, one verdict: raises 0A000 if anything that this statement does has given the filter its
// key. To be called when it is judged, not in mode off.
void check_judged_once(const RowJudge* judge);

// The element that a row stands for. False: it has no key. In per-row memory.
inline bool make_element(const RowJudge* judge, TupleTableSlot* row, Element* element) {
  if (!build_element(&judge->keys, row, element)) return false;
  bound_time(judge->keys.filter, element);
  return true;
}

// Counts a row that was judged, if it has a key, and what becomes of it.
void count(const RowJudge* judge, bool has_key, bool repeat);

// Is the row, which passes, to be skipped, because a unique index has its key? It is counted then.
bool skip_conflicting(const RowJudge* judge, TupleTableSlot* row);
inline bool is_skipped(const RowJudge* judge, TupleTableSlot* row) {
  return unlikely(judge->key_indexes != NIL) && skip_conflicting(judge, row);
}

// The row with its mark: the same tuple if that is what it says already.
HeapTuple set_mark(const RowJudge* judge, TupleTableSlot* row, HeapTuple tuple, bool repeat);

}  // namespace streamfilter::pg
