// Between two rows no code may run that could look at the table, because it would see that rows
// come late.
#include "pg/server/postgres.hpp"

extern "C" {
#include "access/sysattr.h"
#include "nodes/bitmapset.h"
#include "partitioning/partdesc.h"
#include "utils/partcache.h"
#include "utils/rls.h"
}

#include "pg/catalog/volatile_code.hpp"
#include "pg/citus/shard_triggers.hpp"
#include "pg/ingest/target_rule.hpp"
#include "pg/server/citus.hpp"

namespace streamfilter::pg {
namespace {

bool is_of_insert(const Trigger* trigger, int16 timing) {
  return TRIGGER_TYPE_MATCHES(trigger->tgtype, TRIGGER_TYPE_ROW, timing, TRIGGER_TYPE_INSERT);
}

bool fires(const Trigger* trigger) {
  const bool replica = SessionReplicationRole == SESSION_REPLICATION_ROLE_REPLICA;
  return trigger->tgenabled != TRIGGER_DISABLED &&
         trigger->tgenabled != (replica ? TRIGGER_FIRES_ON_ORIGIN : TRIGGER_FIRES_ON_REPLICA);
}

// ALTER FUNCTION can give it another role or settings.
bool is_wrapped(Oid function) {
  bool wrapped = true;
  read_catalog<FormData_pg_proc>(PROCOID, function, [&](const auto& row, HeapTuple tuple) {
    wrapped = row.prosecdef || !heap_attisnull(tuple, Anum_pg_proc_proconfig, nullptr);
  });
  return wrapped;
}

const char* obstacle_of(const Trigger* trigger, bool ours) {
  if (!ours) return psprintf("trigger %s fires for each row", quote_identifier(trigger->tgname));
  if (trigger->tgqual != nullptr)
    return psprintf("trigger %s has a WHEN condition", quote_identifier(trigger->tgname));
  if (is_wrapped(trigger->tgfoid))
    return psprintf("the function of trigger %s has a role or settings of its own",
                    quote_identifier(trigger->tgname));
  return nullptr;
}

// A marked row would have to be routed again.
bool marks_partition_key(const Trigger* trigger, Relation table) {
  if (!table->rd_rel->relispartition) return false;
  const AttrNumber mark =
      trigger->tgnargs > 1 ? find_exactly(table, trigger->tgargs[1]) : InvalidAttrNumber;
  if (mark == InvalidAttrNumber) return true;  // the trigger will report its error
  Bitmapset* columns = nullptr;
  pull_varattnos(reinterpret_cast<Node*>(RelationGetPartitionQual(table)), 1, &columns);
  return bms_is_member(mark - FirstLowInvalidHeapAttributeNumber, columns);
}

// Opens a partition for a look; nullptr: it is gone, or locked by a session that changes it.
Relation open_partition(Oid relid) {
  if (!ConditionalLockRelationOid(relid, AccessShareLock)) return nullptr;
  Relation table = try_table_open(relid, NoLock);
  if (table == nullptr) UnlockRelationOid(relid, AccessShareLock);
  return table;
}

bool routes_by_volatile_code(Relation table);

bool routes_by_volatile_code(Oid partition) {
  Relation table = open_partition(partition);
  if (table == nullptr) return true;
  const bool found = routes_by_volatile_code(table);
  table_close(table, AccessShareLock);
  return found;
}

// Rows are routed before waiting rows are judged.
bool routes_by_volatile_code(Relation table) {
  if (table->rd_rel->relkind != RELKIND_PARTITIONED_TABLE) return false;
  bool found = runs_volatile_code(
      reinterpret_cast<Node*>(get_partition_exprs(RelationGetPartitionKey(table))));
  const PartitionDescData* partitions = RelationGetPartitionDesc(table, true);
  for (int i = 0; i < partitions->nparts && !found; ++i)
    found = !partitions->is_leaf[i] && routes_by_volatile_code(partitions->oids[i]);
  return found;
}

// Conditions of AFTER triggers are checked as soon as a row is inserted.
const char* obstacle_of(const TriggerDesc* triggers) {
  for (int i = 0; triggers != nullptr && i < triggers->numtriggers; ++i) {
    const Trigger* trigger = &triggers->triggers[i];
    if (trigger->tgqual != nullptr && is_of_insert(trigger, TRIGGER_TYPE_AFTER) && fires(trigger) &&
        runs_volatile_code(static_cast<Node*>(stringToNode(trigger->tgqual))))
      return psprintf("the WHEN condition of trigger %s calls a volatile function",
                      quote_identifier(trigger->tgname));
  }
  return nullptr;
}

const char* obstacle_of(Relation table) {
  if (has_volatile_column(RelationGetDescr(table))) return "a domain calls a volatile function";
  if (routes_by_volatile_code(table)) return "a partition key calls a volatile function";
  if (table->rd_rel->relkind == RELKIND_PARTITIONED_TABLE) return nullptr;
  if (table->rd_rel->relkind != RELKIND_RELATION) return "the target is not a table";
  if (table->rd_tableam != GetHeapamTableAmRoutine()) return "the table is not a heap";
  if (may_be_copied(table)) return "its rows may be copies";
  if (checks_by_code(table, runs_volatile_code))
    return "a CHECK constraint calls a volatile function";
  if (computes_by_code(table, runs_volatile_code))
    return "a generated column or an index calls a volatile function";
  return nullptr;
}

bool fires_before(const TriggerDesc* triggers) {
  for (int i = 0; triggers != nullptr && i < triggers->numtriggers; ++i)
    if (is_of_insert(&triggers->triggers[i], TRIGGER_TYPE_BEFORE)) return true;
  return false;
}

bool fires_on_insert(const TriggerDesc* triggers) {
  return triggers != nullptr &&
         (triggers->trig_insert_before_row || triggers->trig_insert_after_row ||
          triggers->trig_insert_before_statement || triggers->trig_insert_after_statement);
}

bool has_insert_rule(const RuleLock* rules) {
  for (int i = 0; rules != nullptr && i < rules->numLocks; ++i)
    if (rules->rules[i]->event == CMD_INSERT) return true;
  return false;
}

// Does its own code run for its rows? A partition has its parent's CHECK constraints, or more.
bool runs_code_of_its_own(Relation partition, int checks_of_parent) {
  const FormData_pg_class* form = partition->rd_rel;
  const bool is_local =
      form->relkind == RELKIND_RELATION || form->relkind == RELKIND_PARTITIONED_TABLE;
  // A copy: catalog look-ups may rebuild the cache.
  const TriggerDesc* triggers = CopyTriggerDesc(partition->trigdesc);
  return !is_local || form->relchecks != checks_of_parent || fires_before(triggers) ||
         obstacle_of(triggers) != nullptr || computes_by_code(partition, runs_volatile_code);
}

bool runs_code_of_its_own(Oid partition, int checks_of_parent) {
  Relation table = open_partition(partition);
  if (table == nullptr) return true;
  const bool found = runs_code_of_its_own(table, checks_of_parent);
  table_close(table, AccessShareLock);
  return found;
}

}  // namespace

TargetRule find_trigger_rule(const TriggerDesc* triggers) {
  TargetRule rule = {};
  for (int i = 0; triggers != nullptr && i < triggers->numtriggers; ++i) {
    const Trigger* trigger = &triggers->triggers[i];
    if (!is_of_insert(trigger, TRIGGER_TYPE_BEFORE) || !fires(trigger)) continue;
    TriggerKind kind;
    const bool ours = find_kind(trigger->tgfoid, &kind) && judges(kind);
    rule.watched |= ours;
    const char* obstacle = obstacle_of(trigger, ours);
    if (obstacle == nullptr && rule.judge != nullptr)
      obstacle = psprintf("triggers %s and %s both judge its rows",
                          quote_identifier(rule.judge->tgname), quote_identifier(trigger->tgname));
    if (obstacle != nullptr) {
      if (rule.obstacle == nullptr) rule.obstacle = obstacle;
      continue;
    }
    rule.judge = trigger;
    rule.kind = kind;
  }
  return rule;
}

TargetRule find_rule(const ResultRelInfo* target) {
  Relation table = target->ri_RelationDesc;
  TargetRule rule = find_trigger_rule(target->ri_TrigDesc);
  if (rule.obstacle == nullptr) rule.obstacle = obstacle_of(table);
  if (rule.obstacle == nullptr) rule.obstacle = obstacle_of(target->ri_TrigDesc);
  if (rule.obstacle == nullptr && rule.judge != nullptr && rule.kind == TriggerKind::mark &&
      marks_partition_key(rule.judge, table))
    rule.obstacle = "the mark is part of the partition key";
  return rule;
}

const char* why_diverted_alone(Relation target, Oid owner) {
  const char* reason = nullptr;
  if (target->rd_rel->relkind == RELKIND_PARTITIONED_TABLE)
    reason = "it is partitioned";
  else if (fires_on_insert(target->trigdesc))
    reason = "triggers fire there";
  else if (has_insert_rule(target->rd_rules))
    reason = "rules apply there";
  else if (check_enable_rls(RelationGetRelid(target), owner, true) == RLS_ENABLED)
    reason = "it has row-level security";
  else if (XactReadOnly || is_citus_loaded())
    reason = "only an INSERT of its own may go there";
  else
    reason = obstacle_of(target);
  if (reason == nullptr) return nullptr;
  return psprintf("repeats go to table %s one by one: %s",
                  quote_identifier(RelationGetRelationName(target)), reason);
}

const char* why_row_by_row(const ModifyTableState* node, bool* judged) {
  const ResultRelInfo* target = node->rootResultRelInfo;
  const TargetRule rule = find_rule(target);
  *judged = rule.judge != nullptr;
  if (target->ri_TrigDesc != nullptr && target->ri_TrigDesc->trig_insert_new_table &&
      target->ri_RelationDesc->rd_rel->relkind == RELKIND_PARTITIONED_TABLE)
    return "a trigger has a transition table of rows from partitions";
  return rule.obstacle;
}

bool is_blind_to_filters(const ModifyTableState* node) {
  const ResultRelInfo* target = node->rootResultRelInfo;
  Relation table = target->ri_RelationDesc;
  if (find_rule(target).judge != nullptr || runs_code_for_rows(table, runs_volatile_code))
    return false;
  if (table->rd_rel->relkind != RELKIND_PARTITIONED_TABLE) return true;
  bool blind = true;
  List* partitions = find_all_inheritors(RelationGetRelid(table), NoLock, nullptr);
  for (const Oid relid : each_oid(partitions))
    blind = blind && !runs_code_of_its_own(relid, table->rd_rel->relchecks);
  list_free(partitions);
  return blind;
}

}  // namespace streamfilter::pg
