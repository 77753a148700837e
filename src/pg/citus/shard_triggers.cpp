// Citus moves and splits a shard by copying its rows first and creating its triggers afterwards;
// create_distributed_table creates the triggers first. A non-blocking move also replicates rows
// after it has created the triggers. CREATE TRIGGER waits for writers and blocks new ones, so the
// rows that it finds are exactly those that no trigger has seen.
#include "pg/server/postgres.hpp"

#include "pg/citus/shard_triggers.hpp"
#include "pg/handle/filter_keys.hpp"
#include "pg/server/citus.hpp"

namespace streamfilter::pg {
namespace {

// ---- shards that Citus has set up in this transaction -------------------------------------------

struct NewShard {
  Oid table;
  uint64 statement;  // the first statement with rows; 0: none yet
};

List* new_shards = NIL;  // of NewShard*, in TopTransactionContext

void forget_new_shards(void*) { new_shards = NIL; }

NewShard* find_new_shard(Oid table) {
  for (auto* shard : each<NewShard>(new_shards))
    if (shard->table == table) return shard;
  return nullptr;
}

void note_new_shard(Relation table) {
  if (table->rd_createSubid == InvalidSubTransactionId ||
      find_new_shard(RelationGetRelid(table)) != nullptr)
    return;
  const InContext context(TopTransactionContext);
  if (new_shards == NIL) call_on_reset(TopTransactionContext, forget_new_shards, nullptr);
  auto* shard = allocate<NewShard>();
  *shard = {RelationGetRelid(table), 0};
  new_shards = lappend(new_shards, shard);
}

// ---- learning -----------------------------------------------------------------------------------

// State for learning keys, made ready at the first row.
struct Learner {
  const Trigger* trigger;
  TriggerKind kind;
  Relation table;
  KeyBuilder keys;
};

// False if the filter is not to be asked.
bool begin_learning(Learner* learner) {
  const DeclaredTrigger declared = find_declared(learner->trigger, learner->table);
  FilterHandle* filter = filter_for_use(
      lock_filter(learner->trigger, learner->kind, &declared, RowExclusiveLock, ERROR),
      Use::judge_granted);
  if (filter->mode == FilterMode::off) return false;
  const TriggerPlan* plan =
      make_plan(learner->trigger, learner->kind, learner->table, filter->relation);
  learner->keys = make_key_builder(filter, plan->inputs, plan->count);
  return true;
}

void learn_row(const Learner* learner, TupleTableSlot* row) {
  FilterHandle* filter = learner->keys.filter;
  Element element;
  if (!build_element(&learner->keys, row, &element)) return;
  bound_time(filter, &element);
  judge_key(filter, element, Intent::learn);
}

void learn_rows(Learner* learner) {
  require_shared_state();
  Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
  TupleTableSlot* row = table_slot_create(learner->table, nullptr);
  TableScanDesc scan = SF_TABLE_BEGINSCAN(learner->table, snapshot);
  MemoryContext per_row = make_small_context("streamfilter learning");
  bool ready = false;
  while (table_scan_getnextslot(scan, ForwardScanDirection, row)) {
    CHECK_FOR_INTERRUPTS();
    if (!ready && !begin_learning(learner)) break;
    ready = true;
    MemoryContext caller = MemoryContextSwitchTo(per_row);
    learn_row(learner, row);
    MemoryContextSwitchTo(caller);
    MemoryContextReset(per_row);
  }
  MemoryContextDelete(per_row);
  table_endscan(scan);
  ExecDropSingleTupleTableSlot(row);
  UnregisterSnapshot(snapshot);
}

void learn_table(const Trigger* trigger, TriggerKind kind, Relation table) {
  if (!judges(kind) || trigger->tgenabled == TRIGGER_DISABLED ||
      !RELKIND_HAS_TABLE_AM(table->rd_rel->relkind))
    return;
  Learner learner = {trigger, kind, table, {}};
  learn_rows(&learner);
}

// ---- of a table and its partitions --------------------------------------------------------------

template <typename Visit>
void for_each_trigger_of(Oid relid, Visit visit) {
  Relation table = try_relation_open(relid, AccessShareLock);
  if (table == nullptr) return;
  visit_own_triggers(
      table, [&](const Trigger* trigger, TriggerKind kind) { visit(trigger, kind, table); });
  relation_close(table, NoLock);
}

void fire_always(const Trigger* trigger) {
  if (trigger->tgenabled == TRIGGER_FIRES_ON_ORIGIN) enable_always(trigger->tgoid);
}

void adopt_enabled(Oid relid, const char* name) {
  for_each_trigger_of(relid, [=](const Trigger* trigger, TriggerKind kind, Relation table) {
    const DeclaredTrigger declared = find_declared(trigger, table);
    if (name != nullptr && strcmp(trigger->tgname, name) != 0) return;
    if (trigger->tgisclone || !is_on_shard(trigger, &declared)) return;
    fire_always(trigger);
    if (judges(kind)) note_new_shard(table);
  });
}

void adopt_attached(Oid relid) {
  for (const Oid child : each_oid(find_all_inheritors(relid, NoLock, nullptr)))
    for_each_trigger_of(child, [](const Trigger* trigger, TriggerKind kind, Relation table) {
      const DeclaredTrigger declared = find_declared(trigger, table);
      const bool shard = is_on_shard(trigger, &declared);
      if (!trigger->tgisclone || !(shard || is_made_by_citus(table))) return;
      if (shard && judges(kind)) note_new_shard(table);
      learn_table(trigger, kind, table);
    });
}

}  // namespace

bool is_made_by_citus(Relation table) {
  return table->rd_createSubid != InvalidSubTransactionId && is_within_statement() &&
         is_citus_loaded();
}

bool is_on_shard(const Trigger* trigger, const DeclaredTrigger* declared) {
  const uint64 shard = shard_in_name(trigger->tgname);
  return shard != 0 && shard == shard_in_name(get_rel_name(declared->table)) && is_citus_loaded();
}

bool exist_already(const TriggerData* call, uint64 statement, bool outside) {
  if (unlikely(SessionReplicationRole == SESSION_REPLICATION_ROLE_REPLICA)) {
    const DeclaredTrigger declared = find_declared(call->tg_trigger, call->tg_relation);
    return is_on_shard(call->tg_trigger, &declared);
  }
  if (likely(call->tg_relation->rd_createSubid == InvalidSubTransactionId)) return false;
  NewShard* shard = find_new_shard(RelationGetRelid(call->tg_relation));
  if (shard == nullptr) return false;
  if (shard->statement == 0) shard->statement = outside ? statement : kNoStatement;
  return outside && shard->statement == statement;
}

bool may_be_copied(Relation table) {
  return (unlikely(SessionReplicationRole == SESSION_REPLICATION_ROLE_REPLICA) ||
          unlikely(new_shards != NIL && find_new_shard(RelationGetRelid(table)) != nullptr)) &&
         is_citus_loaded();
}

void adopt_created(const Trigger* trigger, TriggerKind kind, Relation table) {
  const DeclaredTrigger declared = find_declared(trigger, table);
  const bool shard = is_on_shard(trigger, &declared);
  if (!shard && !is_made_by_citus(table)) return;
  if (shard) fire_always(trigger);
  learn_table(trigger, kind, table);
}

void adopt_altered(const AlterTableStmt* statement) {
  const Oid relid = RangeVarGetRelid(statement->relation, NoLock, true);
  if (!OidIsValid(relid) || !is_citus_loaded()) return;
  for (const auto* command : each<AlterTableCmd>(statement->cmds)) {
    switch (command->subtype) {
      case AT_EnableTrig: adopt_enabled(relid, command->name); break;
      case AT_EnableTrigAll:
      case AT_EnableTrigUser: adopt_enabled(relid, nullptr); break;
      case AT_AttachPartition:
        adopt_attached(RangeVarGetRelid(castNode(PartitionCmd, command->def)->name, NoLock, true));
        break;
      default: break;
    }
  }
}

}  // namespace streamfilter::pg
