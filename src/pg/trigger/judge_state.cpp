// Finds what judging rows of a table takes, once for a table of a statement. Rows are judged in
// judge_row.cpp, many of them in pg/ingest.
#include "pg/server/postgres.hpp"

extern "C" {
#include "access/relation.h"
#include "catalog/indexing.h"
#include "catalog/pg_inherits.h"
}

#include "pg/citus/shard_triggers.hpp"
#include "pg/server/citus.hpp"
#include "pg/server/syscache.hpp"
#include "pg/trigger/divert.hpp"
#include "pg/trigger/judge_state.hpp"
#include "pg/trigger/key_indexes.hpp"

namespace streamfilter::pg {
namespace {

TriggerBinding lock_both(const RowJudge* judge, const DeclaredTrigger* declared) {
  const Oid filter = lock_filter(judge->trigger, judge->kind, declared, RowExclusiveLock, ERROR);
  return {filter, judge->kind == TriggerKind::divert
                      ? lock_target(judge->trigger, declared, RowExclusiveLock, ERROR)
                      : InvalidOid};
}

// Locks the filter and the table for repeats, and binds the trigger to them.
TriggerBinding bind_and_lock(const RowJudge* judge, DeclaredTrigger* declared) {
  const TriggerBinding binding = lock_both(judge, declared);
  if (OidIsValid(declared->binding.filter)) return binding;
  declared->binding = bind_when_fired(declared->trigger, declared->table, binding);
  return lock_both(judge, declared);
}

// The parent's trigger of this name, if it has the same filter; InvalidOid if there is none.
Oid find_in_parent(const RowJudge* judge, TriggerBinding binding, Relation parent) {
  const Oid oid = get_trigger_oid(RelationGetRelid(parent), judge->trigger->tgname, true);
  const TriggerDesc* triggers = CopyTriggerDesc(parent->trigdesc);
  for (int i = 0; triggers != nullptr && i < triggers->numtriggers; ++i) {
    const Trigger* trigger = &triggers->triggers[i];
    if (trigger->tgoid != oid || trigger->tgfoid != judge->trigger->tgfoid) continue;
    const DeclaredTrigger declared = find_declared(trigger, parent);
    if (find_filter(trigger, judge->kind, &declared) != binding.filter) continue;
    if (!OidIsValid(declared.binding.filter)) bind_when_fired(oid, declared.table, binding);
    return oid;
  }
  return InvalidOid;
}

// A table may have several parents, and the first may have been detached.
List* parents_of(Oid table) {
  List* parents = NIL;
  scan_catalog<FormData_pg_inherits>(InheritsRelationId, InheritsRelidSeqnoIndexId,
                                     {{Anum_pg_inherits_inhrelid, table}},
                                     [&](const FormData_pg_inherits& row, HeapTuple, TupleDesc) {
                                       parents = lappend_oid(parents, row.inhparent);
                                     });
  return parents;
}

// A chunk of TimescaleDB has an unmarked copy of its parent's trigger, and rows of one statement go
// to several chunks. No event trigger sees such a copy, so it may not be bound yet.
Oid find_parent_trigger(const RowJudge* judge, const DeclaredTrigger* declared,
                        TriggerBinding binding) {
  if (!judge->outside || judge->trigger->tgisclone) return declared->trigger;
  ListCell* cell;
  foreach (cell, parents_of(RelationGetRelid(judge->table))) {
    Relation parent = try_relation_open(lfirst_oid(cell), AccessShareLock);
    if (parent == nullptr) continue;
    const Oid trigger = find_in_parent(judge, binding, parent);
    table_close(parent, NoLock);
    if (OidIsValid(trigger)) return trigger;
  }
  return declared->trigger;
}

// The table for repeats may have anything that waits.
KeyRoute route_of_keys(const RowJudge* judge) {
  if (OidIsValid(judge->target) || needs_each_row(&judge->keys)) return {};
  return {KeyRoute::trigger, RelationGetRelid(judge->table)};
}

// Kept results must depend only on table and filter, whose changes we notice: not on casts, columns
// of indexes, a looked-up name, or tables of other extensions.
bool lasts(const RowJudge* judge, const DeclaredTrigger& declared) {
  return OidIsValid(declared.binding.filter) && judge->keys.plain && !judge->outside &&
         !OidIsValid(judge->target) && judge->key_indexes == NIL && !is_citus_loaded();
}

}  // namespace

void set_kind(RowJudge* judge, TriggerKind kind) {
  judge->kind = kind;
  judge->of_repeats = kind == TriggerKind::discard  ? Outcome::discarded
                      : kind == TriggerKind::divert ? Outcome::diverted
                                                    : Outcome::marked;
}

void init_row_judge(RowJudge* judge, TriggerKind kind, uint64 statement, MemoryContext parent) {
  set_kind(judge, kind);
  judge->statement = statement;
  judge->context = AllocSetContextCreate(parent, "streamfilter trigger", ALLOCSET_SMALL_SIZES);
}

void resolve_judge(RowJudge* judge) {
  judge->keys.filter = nullptr;
  judge->lasts = false;
  MemoryContextReset(judge->context);
  MemoryContext caller = MemoryContextSwitchTo(judge->context);
  // Count first: a change during the look-up then forces another look for the next row.
  judge->watch = watch_table(RelationGetRelid(judge->table));
  judge->table_changes = judge->watch->changes;
  DeclaredTrigger declared = find_declared(judge->trigger, judge->table);
  judge->declared = watch_table(declared.table);
  judge->origin_changes = judge->declared->changes;
  judge->replication_role = SessionReplicationRole;
  judge->resolved = judge->trigger->tgoid;
  judge->owner = declared.owner;

  check_is_last(judge->trigger, triggers_of(judge), judge->table, ERROR);
  const TriggerBinding binding = bind_and_lock(judge, &declared);
  judge->created = is_on_shard(judge->trigger, &declared)
                       ? binding.filter
                       : find_parent_trigger(judge, &declared, binding);
  judge->target = binding.target;
  FilterHandle* filter = filter_handle(binding.filter);
  // The last call before the row is judged: a further one might replace what the plan refers to.
  use_filter(filter, Use::judge_granted);
  judge->pending_counts = pending_trigger_counts(judge->trigger->tgoid, filter->relid);
  judge->plan = make_plan(judge->trigger, judge->kind, judge->table, filter->relation);
  judge->key_indexes =
      judge->plan->skips_conflicts ? find_key_indexes(judge->table, judge->plan) : NIL;
  judge->keys = make_key_builder(filter, judge->plan->inputs, judge->plan->count);
  judge->keys_from = route_of_keys(judge);
  judge->lasts = lasts(judge, declared);
  MemoryContextSwitchTo(caller);
}

void check_conflicts(RowJudge* judge, const ResultRelInfo* target) {
  if (judge->checked_version == judge->keys.version &&
      judge->checked_changes == judge->table_changes + 1)
    return;
  check_conflict_target(target, judge->trigger, judge->plan);
  judge->checked_version = judge->keys.version;
  judge->checked_changes = judge->table_changes + 1;
}

bool skip_conflicting(const RowJudge* judge, TupleTableSlot* row) {
  if (!is_in_indexes(judge->key_indexes, judge->table, row)) return false;
  ++(*counts_to_add_to(judge->pending_counts))[TriggerCount::discarded];
  return true;
}

HeapTuple set_mark(const RowJudge* judge, TupleTableSlot* row, HeapTuple tuple, bool repeat) {
  bool isnull;
  const Datum old = slot_getattr(row, judge->plan->mark, &isnull);
  if (!isnull && DatumGetBool(old) == repeat) return tuple;
  int number = judge->plan->mark;
  Datum value = BoolGetDatum(repeat);
  bool null = false;
  return heap_modify_tuple_by_cols(tuple, RelationGetDescr(judge->table), 1, &number, &value,
                                   &null);
}

}  // namespace streamfilter::pg
