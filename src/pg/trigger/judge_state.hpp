// Judges rows of a table with a trigger, for the trigger function, which has rows one by one, and
// for pg/ingest, which has many.
#pragma once

#include "pg/binding/trigger_definition.hpp"
#include "pg/catalog/lookup.hpp"

namespace streamfilter::pg {

// What a statement has resolved for one table (partition) that it inserts into.
struct RowJudge {
  TriggerKind kind;
  Outcome of_repeats;  // what the kind makes of them; mode shadow has its own
  uint64 statement;    // inserts the rows; 0 if not known
  bool outside;        // another extension brings the rows, and may fill several tables
  bool lasts;          // resolved: also for later statements, until table or filter change
  const Trigger* trigger;
  const TriggerDesc* triggers;  // all that the statement fires; nullptr: not known
  Relation table;
  MemoryContext context;  // context of all that follows
  Oid resolved;           // the trigger's OID
  Oid created;  // the trigger that CREATE TRIGGER made, if this one is a clone, or the copy that
                // a chunk has of its parent's; on shards, since a statement may fill
                // several, the filter
  Oid owner;    // owner of the trigger's table
  Oid target;   // table that repeats are diverted to, if any
  KeyRoute keys_from;
  int replication_role;
  const TableWatch* watch;
  uint64 table_changes;
  const TableWatch* declared;
  uint64 origin_changes;
  // versions of filter and table, for INSERT … ON CONFLICT
  uint64 checked_version, checked_changes;
  TriggerPlan* plan;
  List* key_indexes;  // indexes to look into before a row is inserted
  PendingTriggerCounts* pending_counts;
  KeyBuilder keys;  // no filter until resolved
};

void set_kind(RowJudge* judge, TriggerKind kind);

// Takes memory from `parent`. Everything else is zero.
void init_row_judge(RowJudge* judge, TriggerKind kind, uint64 statement, MemoryContext parent);

void resolve_judge(RowJudge* judge);

// The triggers that the statement fires for the table. Those in the relation cache come and go
// while it runs: none may be left, and where a savepoint was rolled back the entry is an old one.
inline const TriggerDesc* triggers_of(const RowJudge* judge) {
  return judge->triggers != nullptr ? judge->triggers : judge->table->trigdesc;
}

inline bool is_resolved(const RowJudge* judge) {
  return is_current(&judge->keys) && judge->resolved == judge->trigger->tgoid &&
         judge->replication_role == SessionReplicationRole &&
         judge->table_changes == judge->watch->changes &&
         judge->origin_changes == judge->declared->changes;
}

// Resolves, locks and attaches whatever is not ready. Call it again whenever foreign code has run.
[[gnu::always_inline]] inline void prepare_judge(RowJudge* judge) {
  if (likely(judge->keys.filter != nullptr)) use_filter(judge->keys.filter, Use::judge_granted);
  if (unlikely(!is_resolved(judge))) resolve_judge(judge);
  judge->keys.filter->route = judge->keys_from;
  judge->keys.filter->route.triggers = triggers_of(judge);
  check_mode(judge->keys.filter, judge->owner);
}

// Call for INSERT … ON CONFLICT DO NOTHING on a prepared judge. The filter also remembers a row
// that a unique index refuses, so the row's key must be in the table: raises 0A000, with the
// reason, if it may not be.
void check_conflicts(RowJudge* judge, const ResultRelInfo* target);

// Makes the row's element, in per-row memory. False: the row has no key.
inline bool make_element(const RowJudge* judge, TupleTableSlot* row, Element* element) {
  if (!build_element(&judge->keys, row, element)) return false;
  bound_time(judge->keys.filter, element);
  return true;
}

// The outcome for repeats; not for mode off.
inline Outcome of_repeats(const RowJudge* judge) {
  return unlikely(judge->keys.filter->mode == FilterMode::shadow) ? Outcome::would_discard
                                                                  : judge->of_repeats;
}

// Counts a judged row for the trigger; the filter has counted its key.
inline void count_judged(const RowJudge* judge, bool repeat, Outcome of_repeats) {
  TriggerCounts& counts = *counts_to_add_to(judge->pending_counts);
  ++counts[TriggerCount::rows];
  counts[kTriggerCountOf[static_cast<int>(of_repeats)]] += repeat;
}

// Is the passing row to be skipped because a unique index has its key? Counts it then.
bool skip_conflicting(const RowJudge* judge, TupleTableSlot* row);
inline bool is_skipped(const RowJudge* judge, TupleTableSlot* row) {
  return unlikely(judge->key_indexes != NIL) && skip_conflicting(judge, row);
}

// The row with its mark; the same tuple if the mark is set already.
HeapTuple set_mark(const RowJudge* judge, TupleTableSlot* row, HeapTuple tuple, bool repeat);

}  // namespace streamfilter::pg
