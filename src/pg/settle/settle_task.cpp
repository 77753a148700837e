#include "pg/server/postgres.hpp"

extern "C" {
#include "access/relation.h"
#include "catalog/catalog.h"
#include "catalog/pg_class.h"
#include "storage/lmgr.h"
#include "utils/rls.h"
#include "utils/typcache.h"
}

#include "pg/catalog/lookup.hpp"
#include "pg/citus/citus_tables.hpp"
#include "pg/handle/filter_keys.hpp"
#include "pg/server/citus.hpp"
#include "pg/server/syscache.hpp"
#include "pg/settle/settle_task.hpp"
#include "pg/storage/state_heaps.hpp"
#include "pg/trigger/divert.hpp"

namespace streamfilter::pg {
namespace {

// ---- the two tables ----------------------------------------------------------------------------

void check_is_table(Oid relation) {
  const char* name = get_rel_name(relation);
  if (name == nullptr)
    ereport(ERROR, errcode(ERRCODE_UNDEFINED_TABLE),
            errmsg("relation with OID %u does not exist", relation));
  const char kind = get_rel_relkind(relation);
  const bool is_table = kind == RELKIND_RELATION || kind == RELKIND_PARTITIONED_TABLE;
  if (!is_table || IsCatalogRelationOid(relation) || is_state_table(relation))
    ereport(ERROR, errcode(ERRCODE_WRONG_OBJECT_TYPE), errmsg("cannot settle rows of \"%s\"", name),
            is_table ? errdetail("It is a table of the system.")
                     : errdetail_relkind_not_supported(kind),
            errhint("Name the table that repeats are diverted to, and the one that they come "
                    "from."));
}

void check_table_rights(Oid table, AclMode rights) {
  if (pg_class_aclmask(table, GetUserId(), rights, ACLMASK_ALL) != rights)
    aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_TABLE, get_rel_name(table));
  if (check_enable_rls(table, InvalidOid, true) == RLS_ENABLED)
    ereport(
        ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
        errmsg("cannot settle rows of table \"%s\" under row-level security", get_rel_name(table)),
        errdetail("Rows that are hidden would be taken for missing ones."),
        errhint("Call streamfilter_settle() as a role that sees all rows."));
}

void lock_table(Oid table) {
  const char* name = get_rel_name(table);
  LockRelationOid(table, RowExclusiveLock);
  if (is_in_catalog(RELOID, ObjectIdGetDatum(table))) return;
  ereport(ERROR, errcode(ERRCODE_UNDEFINED_TABLE),
          name != nullptr ? errmsg("table \"%s\" does not exist any more", name)
                          : errmsg("relation with OID %u does not exist", table));
}

// Admits one call at a time to rows of the table, otherwise two could restore one key. Take this
// lock first: a call that has it may need the table exclusively.
void lock_tables(Oid diverted, Oid target) {
  LockDatabaseObject(RelationRelationId, topmost_table(target), 0, ExclusiveLock);
  lock_table(diverted);
  lock_table(target);
}

// Each node's rows are judged by a filter of its own, and have the same places.
void check_is_here(Oid table, Oid diverted, Oid target) {
  if (likely(!is_citus_loaded()) || !is_distributed(table)) return;
  const char *from = qualified_name(diverted), *to = qualified_name(target);
  ereport(
      ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
      errmsg("cannot settle rows of table \"%s\", which Citus distributes", get_rel_name(table)),
      errhint("Type, in one transaction: SET LOCAL citus.propagate_set_commands = 'local'; "
              "SET LOCAL streamfilter.mode = 'shadow'; LOCK TABLE %s IN SHARE ROW EXCLUSIVE MODE; "
              "INSERT INTO %s SELECT DISTINCT ON (key) ... FROM %s AS d WHERE NOT EXISTS (SELECT "
              "FROM %s AS t WHERE t.key = d.key); DELETE FROM %s.",
              to, to, from, to, from));
}

void check_tables(Oid diverted, Oid target) {
  check_is_table(diverted);
  check_is_table(target);
  check_table_rights(diverted, ACL_SELECT | ACL_DELETE);
  check_table_rights(target, ACL_SELECT | ACL_INSERT);
  for (const Oid table : {diverted, target}) check_is_here(table, diverted, target);
  if (topmost_table(diverted) == topmost_table(target))
    ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
            errmsg("cannot settle rows of table \"%s\" into itself", get_rel_name(target)),
            errhint("Name the table that repeats are diverted to, and the one that they come "
                    "from."));
}

// ---- the filter between them -------------------------------------------------------------------

// The table's judging trigger: the one that diverts rows there, otherwise any.
const Trigger* find_judge(Relation target, Oid diverted) {
  const Trigger *judge = nullptr, *diverting = nullptr;
  visit_own_triggers(target, [&](const Trigger* trigger, TriggerKind kind) {
    if (!judges(kind)) return;
    judge = trigger;
    const DeclaredTrigger origin = find_declared(trigger, target);
    if (diverting == nullptr && kind == TriggerKind::divert &&
        find_target(trigger, &origin) == diverted)
      diverting = trigger;
  });
  return diverting != nullptr ? diverting : judge;
}

// Rules would put rows elsewhere, or keep them; and a statement in WITH allows none.
void check_rules(Relation table, CmdType command) {
  const RuleLock* rules = table->rd_rules;
  for (int i = 0; rules != nullptr && i < rules->numLocks; ++i)
    if (rules->rules[i]->event == command)
      ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
              errmsg("cannot settle rows of table \"%s\", which has a rule for %s",
                     RelationGetRelationName(table), command == CMD_INSERT ? "INSERT" : "DELETE"),
              errhint("Drop the rule, or write a trigger that does the same."));
}

// Rows of other partitions would be taken for rows of this one.
void check_is_origin(const DeclaredTrigger* origin, Oid target) {
  if (origin->table == target) return;
  ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
          errmsg("cannot settle rows of partition \"%s\" alone", get_rel_name(target)),
          errdetail("Its trigger is that of table %s.", origin->table_name),
          errhint("Name %s.", origin->table_name));
}

bool has_own_column(Relation table, Relation other, const char* name) {
  return find_exactly(table, name) != InvalidAttrNumber &&
         find_exactly(other, name) == InvalidAttrNumber;
}

// Rows of other tables must not come into this one.
void check_others(SettleTask* task, Relation diverted, Relation target) {
  ListCell* cell;
  foreach (cell, find_diverting_triggers(task->diverted)) {
    const auto* row = static_cast<const TriggerRow*>(lfirst(cell));
    if (row->table == task->target) continue;
    task->others_divert = true;
    if (task->filter != nullptr && row->binding.filter != task->filter->relid &&
        has_own_column(diverted, target, "filter"))
      continue;
    ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
            errmsg("cannot tell which rows of table \"%s\" are those of table \"%s\"",
                   get_rel_name(task->diverted), get_rel_name(task->target)),
            errdetail("Table \"%s\" diverts repeats there, too.", get_rel_name(row->table)),
            errhint("Divert the repeats of each table to one of its own, or, where their filters "
                    "differ, to one that has a column \"filter\" of type regclass."));
  }
}

// ---- columns -----------------------------------------------------------------------------------

Form_pg_attribute find_attribute(Relation table, const char* name) {
  const AttrNumber number = find_exactly(table, name);
  if (number == InvalidAttrNumber)
    ereport(ERROR, errcode(ERRCODE_UNDEFINED_COLUMN),
            errmsg("column \"%s\" of relation \"%s\" does not exist", name,
                   RelationGetRelationName(table)),
            errdetail("It is part of the key by which rows are settled."),
            errhint("Name the columns of the key, which both tables have, in the third argument."));
  return TupleDescAttr(RelationGetDescr(table), number - 1);
}

// The value that the filter compares; nullptr: the value itself. Integers of any width are equal if
// their values are, so that an index of the table can be used.
void fill_column(SettleColumn* column, const char* name, const FilterColumn* as, Relation diverted,
                 Relation target) {
  const Form_pg_attribute here = find_attribute(target, name);
  const Form_pg_attribute there = find_attribute(diverted, name);
  column->name = pstrdup(NameStr(here->attname));
  column->type = here->atttypid;
  column->typmod = here->atttypmod;
  column->type_there = there->atttypid;
  column->typmod_there = there->atttypmod;
  column->is_key = as == nullptr || as->role == Role::key;
  column->is_time = as != nullptr && as->role == Role::time;
  column->compared_as = here->atttypid;
  column->compared_typmod = -1;
  column->collation = here->attcollation;
  if (as == nullptr || (is_integer(as->type) && is_integer(here->atttypid))) return;
  column->compared_as = as->type;
  column->compared_typmod = as->typmod;
  column->collation = as->collation;
}

void check_count(int given, const FilterRelation* filter) {
  if (filter == nullptr && given == 0)
    ereport(ERROR, errcode(ERRCODE_INVALID_COLUMN_REFERENCE),
            errmsg("argument \"columns\" of %s must not be empty", "streamfilter_settle"),
            errhint("Name the table's columns that make the key."));
  const int wanted = filter == nullptr ? given : filter->column_count;
  if (given == wanted) return;
  ereport(ERROR, errcode(ERRCODE_INVALID_COLUMN_REFERENCE),
          errmsg("%s needs %d %s for filter \"%s\", not %d", "streamfilter_settle", wanted,
                 wanted == 1 ? "column" : "columns", filter->name, given),
          errhint("Name the table's columns in the order of the filter's."));
}

// Columns of the trigger.
const char** names_of(const TriggerPlan* plan, Relation target) {
  auto* names = static_cast<const char**>(palloc(sizeof(char*) * Max(plan->count, 1)));
  for (int i = 0; i < plan->count; ++i)
    names[i] = NameStr(TupleDescAttr(RelationGetDescr(target), plan->inputs[i].source)->attname);
  return names;
}

void fill_columns(SettleTask* task, const char** names, Relation diverted, Relation target) {
  const FilterRelation* filter = task->filter == nullptr ? nullptr : task->filter->relation;
  check_count(task->count, filter);
  task->columns = static_cast<SettleColumn*>(palloc0(sizeof(SettleColumn) * task->count));
  for (int i = 0; i < task->count; ++i)
    fill_column(&task->columns[i], names[i], filter == nullptr ? nullptr : &filter->columns[i],
                diverted, target);
}

// The filter as its trigger would use it, and the trigger's columns.
const char** use_judge(SettleTask* task, const Trigger* judge, Relation target, bool given) {
  const DeclaredTrigger origin = find_declared(judge, target);
  check_is_origin(&origin, task->target);
  TriggerKind kind;
  find_kind(judge->tgfoid, &kind);
  task->filter = filter_handle(lock_filter(judge, kind, &origin, RowExclusiveLock, ERROR));
  use_filter(task->filter, Use::insert_granted);
  task->equal_nulls = task->filter->rule.nulls == Nulls::not_distinct;
  if (given) return nullptr;
  const TriggerPlan* plan = make_plan(judge, kind, target, task->filter->relation);
  task->count = plan->count;
  return names_of(plan, target);
}

void find_columns(SettleTask* task, ArrayType* columns, Relation diverted, Relation target) {
  const Trigger* judge = find_judge(target, task->diverted);
  const char** names = nullptr;
  if (judge != nullptr) names = use_judge(task, judge, target, columns != nullptr);
  if (columns != nullptr) names = names_in(columns, &task->count, "streamfilter_settle");
  if (names == nullptr)
    ereport(ERROR, errcode(ERRCODE_UNDEFINED_OBJECT),
            errmsg("no trigger judges the rows of table \"%s\"", get_rel_name(task->target)),
            errhint("Name the columns of the key in the third argument of streamfilter_settle()."));
  fill_columns(task, names, diverted, target);
}

}  // namespace

const char** names_in(ArrayType* given, int* count, const char* function) {
  Datum* elements;
  bool* isnull;
  deconstruct_array(given, TEXTOID, -1, false, TYPALIGN_INT, &elements, &isnull, count);
  auto* names = static_cast<const char**>(palloc(sizeof(char*) * Max(*count, 1)));
  for (int i = 0; i < *count; ++i) {
    if (isnull[i])
      ereport(ERROR, errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
              errmsg("a column of %s must not be null", function));
    names[i] = TextDatumGetCString(elements[i]);
  }
  return names;
}

SettleTask begin_settling(Oid diverted_id, Oid target_id, ArrayType* columns, bool since,
                          bool keep) {
  check_tables(diverted_id, target_id);
  lock_tables(diverted_id, target_id);
  SettleTask task = {};
  task.diverted = diverted_id;
  task.target = target_id;
  task.keep = keep;
  Relation diverted = relation_open(diverted_id, NoLock);
  Relation target = relation_open(target_id, NoLock);
  check_rules(diverted, CMD_DELETE);
  check_rules(target, CMD_INSERT);
  find_columns(&task, columns, diverted, target);
  check_others(&task, diverted, target);
  task.has_time = has_own_column(diverted, target, "diverted_at");
  if (since && !task.has_time)
    ereport(ERROR, errcode(ERRCODE_UNDEFINED_COLUMN),
            errmsg("table \"%s\" does not say when its rows were diverted",
                   RelationGetRelationName(diverted)),
            errdetail("Argument \"since\" needs its column diverted_at."),
            errhint("Leave \"since\" out, or add the column: ALTER TABLE ... ADD diverted_at "
                    "timestamptz."));
  relation_close(target, NoLock);
  relation_close(diverted, NoLock);
  if (task.filter == nullptr || !can_take_keys(task.filter))
    LockRelationOid(target_id, ShareRowExclusiveLock);
  return task;
}

}  // namespace streamfilter::pg
