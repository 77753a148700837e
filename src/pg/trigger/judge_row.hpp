// Judges rows of a table with a trigger: for the trigger function, which has rows one by one, and
// for pg/ingest, which has many. Each row is judged once: if two parts of a statement gave a filter
// the key of the same row, the second answer would always be "repeat", and the row would be lost.
#pragma once

#include "pg/binding/trigger_definition.hpp"
#include "pg/catalog/lookup.hpp"
#include "pg/trigger/divert.hpp"
#include "pg/trigger/row_source.hpp"

namespace streamfilter::pg {

// What judging a row takes, by how long it stays right.
struct RowJudge {
  // As long as the judge itself: of a session (discard_trigger.cpp) or a statement.
  struct Owned {
    TriggerKind kind;
    Outcome of_repeats;     // what the kind makes of them; mode shadow has its own
    MemoryContext context;  // of what is `found`
  } own;

  struct OfStatement {
    uint64 number;                // inserts the rows; 0 if not known
    bool outside;                 // another extension brings the rows, and may fill several tables
    const TriggerDesc* triggers;  // all that the statement fires; nullptr: not known
    enum : uint8 { unknown, no, yes } notes_dropped;
  } statement;

  // What resolve_judge() has found for a table (partition): until it, the trigger or the filter
  // changes.
  struct Found {
    bool lasts;   // also for later statements
    Oid trigger;  // whose rows it is for
    // The trigger that CREATE TRIGGER made, if this one is a clone, or the copy that a chunk has of
    // its parent's; on shards, since a statement may fill several, the filter.
    Oid created;
    Oid owner;   // of the trigger's table
    Oid target;  // table that repeats are diverted to, if any
    KeyRoute route;
    int replication_role;
    const TableWatch* watch;  // of the table
    uint64 changes;
    const TableWatch* declared;  // of the table that CREATE TRIGGER named
    uint64 declared_changes;
    TriggerPlan* plan;
    List* key_indexes;  // to look into before a row is inserted
    PendingTriggerCounts* counts;
  } found;
  KeyBuilder keys;  // likewise; no filter until resolved

  // The relation cache may move both: set them for each row, or for each table of a statement.
  struct OfRow {
    const Trigger* trigger;
    Relation table;
  } row;
};

void set_judge_kind(RowJudge* judge, TriggerKind kind);

// Takes memory from `parent`. Everything else is zero.
void init_row_judge(RowJudge* judge, TriggerKind kind, uint64 statement, MemoryContext parent);

// Finds, locks and attaches everything anew. May wait: for the locks of the filter and of the table
// for repeats, for the filter's restoration, and for other servers that have its state. Raises what
// is wrong with the trigger.
void resolve_judge(RowJudge* judge);

// The triggers that the statement fires for the table. Those in the relation cache come and go
// while it runs: none may be left, and where a savepoint was rolled back the entry is an old one.
inline const TriggerDesc* triggers_of(const RowJudge* judge) {
  return judge->statement.triggers != nullptr ? judge->statement.triggers
                                              : judge->row.table->trigdesc;
}

inline bool is_resolved(const RowJudge* judge) {
  return is_current(&judge->keys) && judge->found.trigger == judge->row.trigger->tgoid &&
         judge->found.replication_role == SessionReplicationRole &&
         judge->found.changes == judge->found.watch->changes &&
         judge->found.declared_changes == judge->found.declared->changes;
}

// Makes ready whatever is not. Call it again whenever foreign code has run. Waits only if something
// has changed: in make_ready() or resolve_judge().
[[gnu::always_inline]] inline void prepare_judge(RowJudge* judge) {
  if (likely(judge->keys.filter != nullptr)) use_filter(judge->keys.filter, Use::judge_granted);
  if (unlikely(!is_resolved(judge))) resolve_judge(judge);
  judge->keys.filter->route = judge->found.route;
  judge->keys.filter->route.triggers = triggers_of(judge);
  check_mode(judge->keys.filter, judge->found.owner);
}

// Raises 0A000 if another part of the statement has given the filter the row's key. Call it for
// each judged row, except in mode off.
void note_fired(const RowJudge* judge);
inline void check_judged_once(const RowJudge* judge) {
  if (unlikely(running_diversion != nullptr ||
               !judge->keys.filter->last.is_only(judge->statement.number, judge->found.created)))
    note_fired(judge);
}

// Notes that a query, or a trigger, gives the filter its first key. Raises 0A000 if another query
// of the same statement, made by a rule, has done so, or the query whose row has fired the trigger:
// both have the same rows. Also what look_at_askers() raises.
void note_first_asked(FilterHandle* filter, MemoryContext from = nullptr);

// Call it for each key that a query gives the filter; note_called() if a function asks, which a
// trigger or another function may call without a query: `from` is the memory of the call.
inline void note_asked(FilterHandle* filter) {
  if (unlikely(filter->last.asked_by != running_query)) note_first_asked(filter);
}
inline void note_called(FilterHandle* filter, MemoryContext from) {
  if (unlikely(filter->last.asked_by != running_query || filter->last.asked_from != from ||
               filter->last.asked_at != trigger_depth()))
    note_first_asked(filter, from);
}

// The outcome for repeats; not for mode off.
inline Outcome of_repeats(const RowJudge* judge) {
  return unlikely(judge->keys.filter->mode == FilterMode::shadow) ? Outcome::would_discard
                                                                  : judge->own.of_repeats;
}

// May the statement yet delete what its repeats repeat? Then call note_dropped() for each repeat of
// a prepared judge: if it does so to one that is not stored, it fails.
bool look_for_deletions(RowJudge* judge);
inline bool notes_dropped(RowJudge* judge) {
  return unlikely(judge->statement.notes_dropped != RowJudge::OfStatement::no) &&
         look_for_deletions(judge);
}
void note_dropped(const RowJudge* judge, const Element& element);

// Counts judged rows for the trigger; the filter has counted their keys.
inline void count_judged(const RowJudge* judge, int rows, int repeats, Outcome of_repeats) {
  TriggerCounts& counts = *counts_to_add_to(judge->found.counts);
  counts[TriggerCount::rows] += static_cast<uint64>(rows);
  counts[kTriggerCountOf[static_cast<int>(of_repeats)]] += static_cast<uint64>(repeats);
}

// Is the passing row to be skipped because a unique index has its key? Counts it then.
bool skip_conflicting(const RowJudge* judge, TupleTableSlot* row);
inline bool is_skipped(const RowJudge* judge, TupleTableSlot* row) {
  return unlikely(judge->found.key_indexes != NIL) && skip_conflicting(judge, row);
}

// The row with its mark; the same tuple if the mark is set already.
HeapTuple set_mark(const RowJudge* judge, TupleTableSlot* row, HeapTuple tuple, bool repeat);

}  // namespace streamfilter::pg
