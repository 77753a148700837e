#include "pg/server/postgres.hpp"

extern "C" {
#include "catalog/catalog.h"
#include "catalog/pg_constraint.h"
#include "utils/rls.h"
}

#include <algorithm>

#include "pg/catalog/lookup.hpp"
#include "pg/citus/citus_tables.hpp"
#include "pg/handle/filter_keys.hpp"
#include "pg/server/citus.hpp"
#include "pg/settle/settle_task.hpp"
#include "pg/storage/state_heaps.hpp"
#include "pg/trigger/divert.hpp"

namespace streamfilter::pg {
namespace {

// ---- the two tables ----------------------------------------------------------------------------

void check_is_table(Oid relation) {
  const char* name = get_rel_name(relation);
  if (name == nullptr) raise_gone(relation);
  const char kind = get_rel_relkind(relation);
  const bool is_table = kind == RELKIND_RELATION || kind == RELKIND_PARTITIONED_TABLE;
  if (!is_table || IsCatalogRelationOid(relation) || is_state_table(relation))
    ereport(ERROR, errcode(ERRCODE_WRONG_OBJECT_TYPE), errmsg("cannot settle rows of \"%s\"", name),
            is_table ? errdetail("It is a table of the system.")
                     : errdetail_relkind_not_supported(kind),
            errhint("Name the table that repeats are diverted to, and the one that they come "
                    "from."));
}

// Row-level security that the role meets, or the owner, in whose name rows are read.
void check_no_row_security(Oid table) {
  for (const Oid role : {GetUserId(), owner_of(table)})
    if (check_enable_rls(table, role, true) == RLS_ENABLED)
      ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
              errmsg("cannot settle rows of table \"%s\" under row-level security",
                     get_rel_name(table)),
              errdetail("Rows that are hidden would be taken for missing ones."),
              errhint("Call streamfilter_settle() as a role that sees all rows."));
}

// They have places of their own. The table must be locked: one that is dropped meanwhile has none.
void check_no_foreign_parts(Oid table) {
  for (const Oid child : each_oid(find_all_inheritors(table, NoLock, nullptr)))
    if (get_rel_relkind(child) == RELKIND_FOREIGN_TABLE)
      ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
              errmsg("cannot settle rows of table \"%s\", which has a foreign partition",
                     get_rel_name(table)),
              errdetail("Its rows are also in foreign table \"%s\".", get_rel_name(child)),
              errhint("Detach it, or call streamfilter_settle() where its rows are."));
}

void check_table_rights(Oid table, AclMode rights) {
  if (pg_class_aclmask(table, GetUserId(), rights, ACLMASK_ALL) != rights)
    aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_TABLE, get_rel_name(table));
  check_no_row_security(table);
}

// LOCK TABLE asks for the same: a call keeps others from settling or even from writing.
void check_may_lock(Oid table) {
  constexpr AclMode kRights = ACL_DELETE | ACL_UPDATE | ACL_TRUNCATE;
  if (is_owner(table, GetUserId()) ||
      pg_class_aclmask(table, GetUserId(), kRights, ACLMASK_ANY) != 0)
    return;
  ereport(ERROR, errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
          errmsg("permission denied for table %s", get_rel_name(table)),
          errdetail("A call locks the table, which INSERT alone does not allow."),
          errhint("GRANT DELETE, UPDATE or TRUNCATE on it, too."));
}

void lock_table(Oid table) {
  const char* name = get_rel_name(table);
  LockRelationOid(table, RowExclusiveLock);
  if (is_in_catalog(RELOID, ObjectIdGetDatum(table))) return;
  if (name == nullptr) raise_gone(table);
  ereport(ERROR, errcode(ERRCODE_UNDEFINED_TABLE),
          errmsg("table \"%s\" does not exist any more", name));
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

void check_tables(Oid diverted, Oid target, bool removes) {
  check_is_table(diverted);
  check_is_table(target);
  check_table_rights(diverted, ACL_SELECT | ACL_DELETE);
  check_table_rights(target, ACL_SELECT | ACL_INSERT | (removes ? ACL_DELETE : 0));
  check_may_lock(target);
  for (const Oid table : {diverted, target}) check_is_here(table, diverted, target);
  if (topmost_table(diverted) == topmost_table(target))
    ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
            errmsg("cannot settle rows of table \"%s\" into itself", get_rel_name(target)),
            errhint("Name the table that repeats are diverted to, and the one that they come "
                    "from."));
}

// Deferred checks would raise at COMMIT, when no row can be refused any more; and no trigger can be
// deferred by what runs as the tables' owners.
List* add_deferrable(Oid table, List* constraints) {
  for (const Oid child : each_oid(find_all_inheritors(table, NoLock, nullptr)))
    scan_catalog<FormData_pg_trigger>(
        TriggerRelationId, TriggerRelidNameIndexId, {{Anum_pg_trigger_tgrelid, child}},
        [&](const FormData_pg_trigger& trigger, HeapTuple, TupleDesc) {
          if (!trigger.tgdeferrable || !OidIsValid(trigger.tgconstraint)) return;
          read_catalog<FormData_pg_constraint>(
              CONSTROID, trigger.tgconstraint,
              [&](const FormData_pg_constraint& constraint, HeapTuple) {
                constraints =
                    lappend(constraints, makeRangeVar(get_namespace_name(constraint.connamespace),
                                                      pstrdup(NameStr(constraint.conname)), -1));
              });
        });
  return constraints;
}

void check_constraints_at_once(Oid diverted, Oid target) {
  auto* command = makeNode(ConstraintsSetStmt);
  command->constraints = add_deferrable(target, add_deferrable(diverted, NIL));
  if (command->constraints != NIL) AfterTriggerSetState(command);
}

// ---- the filter between them -------------------------------------------------------------------

void check_not_swapped(Oid diverted, Oid target) {
  const char *from = get_rel_name(diverted), *to = get_rel_name(target);
  for (const auto* row : each<TriggerRow>(find_diverting_triggers(target)))
    if (topmost_table(row->table) == topmost_table(diverted))
      ereport(
          ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
          errmsg("the arguments of %s are swapped", "streamfilter_settle"),
          errdetail("A trigger of table \"%s\" diverts rows to table \"%s\".", from, to),
          errhint("Type streamfilter_settle(%s, %s).", quote_literal_cstr(qualified_name(target)),
                  quote_literal_cstr(qualified_name(diverted))));
}

// Rows that come back pass the triggers: only by what the owner has set up, or
void check_may_pass(const Trigger* judging, const SettleTask* task) {
  if (judging == nullptr || is_owner(task->target, GetUserId())) return;
  ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
          errmsg("trigger \"%s\" of table \"%s\" does not divert rows to table \"%s\"",
                 judging->tgname, get_rel_name(task->target), get_rel_name(task->diverted)),
          errdetail("Rows that come back are not judged again, so that only the table's owner may "
                    "bring any others."),
          errhint("Name the table that repeats are diverted to, or call streamfilter_settle() as "
                  "the owner."));
}

// Does a trigger or rule of this state fire in this session? The letters are the same for both.
bool fires(char enabled) {
  const bool replica = SessionReplicationRole == SESSION_REPLICATION_ROLE_REPLICA;
  return enabled != TRIGGER_DISABLED &&
         enabled != (replica ? TRIGGER_FIRES_ON_ORIGIN : TRIGGER_FIRES_ON_REPLICA);
}

// The table's judging triggers that divert rows there; if there are none, any one, or NIL.
List* find_judges(const SettleTask* task, Relation target) {
  const Trigger *judge = nullptr, *judging = nullptr;
  List* diverting = NIL;
  visit_own_triggers(target, [&](const Trigger* trigger, TriggerKind kind) {
    if (!judges(kind)) return;
    judge = trigger;
    if (fires(trigger->tgenabled)) judging = trigger;
    const DeclaredTrigger origin = find_declared(trigger, target);
    if (kind == TriggerKind::divert && find_target(trigger, &origin) == task->diverted)
      diverting = lappend(diverting, const_cast<Trigger*>(trigger));
  });
  if (diverting != NIL) return diverting;
  check_not_swapped(task->diverted, task->target);
  check_may_pass(judging, task);
  return judge == nullptr ? NIL : list_make1(const_cast<Trigger*>(judge));
}

// Rules would put rows elsewhere, or keep them.
void check_rules(Relation table, CmdType command) {
  const RuleLock* rules = table->rd_rules;
  for (int i = 0; rules != nullptr && i < rules->numLocks; ++i)
    if (rules->rules[i]->event == command && fires(rules->rules[i]->enabled))
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

bool is_oid_type(Oid type) { return type == REGCLASSOID || type == OIDOID; }

// Rows of other tables must not come into this one; those of another filter of the table may: they
// are its filter's to judge.
void check_others(SettleTask* task, Relation diverted, Relation target) {
  for (const auto* row : each<TriggerRow>(find_diverting_triggers(task->diverted))) {
    const bool differs = task->filter != nullptr && row->binding.filter != task->filter->relid;
    const bool here = row->table == task->target;
    if (here && !differs) continue;
    const bool told = differs && has_own_column(diverted, target, "filter") &&
                      is_oid_type(find_attribute(diverted, "filter")->atttypid);
    task->others_divert |= told;
    if (told || here) continue;
    ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
            errmsg("cannot tell which rows of table \"%s\" are those of table \"%s\"",
                   get_rel_name(task->diverted), get_rel_name(task->target)),
            errdetail("Table \"%s\" diverts repeats there, too.", get_rel_name(row->table)),
            errhint("Divert the repeats of each table to one of its own, or, where their filters "
                    "differ, to one that has a column \"filter\" of type regclass."));
  }
}

// ---- columns -----------------------------------------------------------------------------------

void fill_column(SettleColumn* column, const char* name, bool is_key, Relation diverted,
                 Relation target) {
  const Form_pg_attribute here = find_attribute(target, name);
  const Form_pg_attribute there = find_attribute(diverted, name);
  *column = {pstrdup(NameStr(here->attname)),
             here->atttypid,
             here->atttypmod,
             here->attcollation,
             there->atttypid,
             there->atttypmod,
             is_key};
}

// Columns that rows keep which come back. INSERT checks lengths, and domains where types differ.
void fill_moved(SettleTask* task, Relation diverted, Relation target) {
  const int count = RelationGetNumberOfAttributes(target);
  task->moved = allocate_zeros<SettleColumn>(count);
  for (int i = 0; i < count; ++i) {
    const Form_pg_attribute to = TupleDescAttr(RelationGetDescr(target), i);
    if (to->attisdropped || to->attgenerated != '\0') continue;
    const AttrNumber from = find_exactly(diverted, NameStr(to->attname));
    if (from == InvalidAttrNumber ||
        TupleDescAttr(RelationGetDescr(diverted), from - 1)->attgenerated != '\0')
      continue;
    SettleColumn* column = &task->moved[task->moved_count++];
    fill_column(column, NameStr(to->attname), false, diverted, target);
    if (column->type != column->type_there) column->type = getBaseType(column->type);
    column->typmod = column->typmod_there = -1;
  }
  if (task->moved_count == 0)
    ereport(ERROR, errcode(ERRCODE_UNDEFINED_COLUMN),
            errmsg("tables \"%s\" and \"%s\" have no column of the same name",
                   RelationGetRelationName(diverted), RelationGetRelationName(target)),
            errdetail("Generated columns do not count."),
            errhint("Name the table that repeats are diverted to, and the one that they come "
                    "from."));
}

// Columns of the trigger.
const char** names_of(const TriggerPlan* plan, Relation target) {
  auto* names = allocate<const char*>(plan->count);
  for (int i = 0; i < plan->count; ++i)
    names[i] = NameStr(TupleDescAttr(RelationGetDescr(target), plan->inputs[i].source)->attname);
  return names;
}

void fill_columns(SettleTask* task, const char** names, Relation diverted, Relation target) {
  const FilterRelation* filter = task->filter == nullptr ? nullptr : task->filter->relation;
  if (filter != nullptr) check_column_count(filter, task->count, "streamfilter_settle");
  if (task->count == 0)
    ereport(ERROR, errcode(ERRCODE_INVALID_COLUMN_REFERENCE),
            errmsg("argument \"columns\" of %s must not be empty", "streamfilter_settle"),
            errhint("Name the table's columns that make the key."));
  task->columns = allocate_zeros<SettleColumn>(task->count);
  for (int i = 0; i < task->count; ++i)
    fill_column(&task->columns[i], names[i],
                filter == nullptr || filter->columns[i].role == Role::key, diverted, target);
}

// The filter as its trigger would use it, and the trigger's columns; none if it does not fire.
const char** use_judge(SettleTask* task, const Trigger* judge, Relation target, bool given) {
  const DeclaredTrigger origin = find_declared(judge, target);
  check_is_origin(&origin, task->target);
  TriggerKind kind;
  find_kind(judge->tgfoid, &kind);
  task->filter = filter_for_use(lock_filter(judge, kind, &origin, RowExclusiveLock, ERROR),
                                Use::insert_granted);
  if (given && !fires(judge->tgenabled)) return nullptr;
  const TriggerPlan* plan = make_plan(judge, kind, target, task->filter->relation);
  task->count = plan->count;
  return names_of(plan, target);
}

// Rows pass the trigger that they are settled by: it must judge them by the same columns.
const char** use_given(SettleTask* task, const char** names, int count, const Trigger* judge,
                       const char** judged) {
  const int wanted = task->count;
  task->count = count;
  if (judged == nullptr) return names;
  check_column_count(task->filter->relation, count, "streamfilter_settle");
  for (int i = 0; i < wanted; ++i)
    if (strcmp(names[i], judged[i]) != 0)
      ereport(ERROR, errcode(ERRCODE_INVALID_COLUMN_REFERENCE),
              errmsg("argument \"columns\" of %s names other columns than the trigger",
                     "streamfilter_settle"),
              errdetail("Trigger \"%s\" judges rows by column \"%s\", not \"%s\".", judge->tgname,
                        judged[i], names[i]),
              errhint("Leave out \"columns\"."));
  return names;
}

bool are_equal(const char** names, const char** others, int count) {
  return std::equal(names, names + count, others,
                    [](const char* a, const char* b) { return strcmp(a, b) == 0; });
}

// Of several triggers that divert rows there, the first one, or the first that judges by `columns`.
void find_columns(SettleTask* task, ArrayType* columns, Relation diverted, Relation target) {
  int given = 0;
  const char** wanted =
      columns == nullptr ? nullptr : names_in(columns, &given, "streamfilter_settle");
  const char** names = nullptr;
  const List* judges = find_judges(task, target);
  const Trigger* judge = nullptr;
  for (int i = 0; i < list_length(judges); ++i) {
    judge = static_cast<const Trigger*>(list_nth(judges, i));
    names = use_judge(task, judge, target, wanted != nullptr);
    if (wanted == nullptr ||
        (names != nullptr && given == task->count && are_equal(wanted, names, given)))
      break;
  }
  if (wanted != nullptr) names = use_given(task, wanted, given, judge, names);
  if (names == nullptr)
    ereport(ERROR, errcode(ERRCODE_UNDEFINED_OBJECT),
            errmsg("no trigger judges the rows of table \"%s\"", get_rel_name(task->target)),
            errhint("Name the columns of the key in the third argument of streamfilter_settle()."));
  fill_columns(task, names, diverted, target);
}

}  // namespace

void check_column_count(const FilterRelation* filter, int given, const char* function) {
  const int wanted = filter->column_count;
  if (given == wanted) return;
  ereport(ERROR, errcode(ERRCODE_INVALID_COLUMN_REFERENCE),
          errmsg("%s needs %d %s for filter \"%s\", not %d", function, wanted,
                 wanted == 1 ? "column" : "columns", filter->name, given),
          errhint("Name the table's columns in the order of the filter's."));
}

const char** names_in(ArrayType* given, int* count, const char* function) {
  Datum* elements;
  bool* isnull;
  deconstruct_array(given, TEXTOID, -1, false, TYPALIGN_INT, &elements, &isnull, count);
  auto* names = allocate<const char*>(*count);
  for (int i = 0; i < *count; ++i) {
    if (isnull[i])
      ereport(ERROR, errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
              errmsg("a column of %s must not be null", function));
    names[i] = TextDatumGetCString(elements[i]);
  }
  return names;
}

SettleTask begin_settling(Oid diverted_id, Oid target_id, ArrayType* columns, bool since, bool keep,
                          bool removes) {
  check_tables(diverted_id, target_id, removes);
  lock_tables(diverted_id, target_id);
  check_tables(diverted_id, target_id, removes);  // while it waited, rights and policies may go
  for (const Oid table : {diverted_id, target_id}) check_no_foreign_parts(table);
  SettleTask task = {};
  task.diverted = diverted_id;
  task.target = target_id;
  task.diverted_owner = owner_of(diverted_id);
  task.target_owner = owner_of(target_id);
  task.keep = keep;
  Relation diverted = relation_open(diverted_id, NoLock);
  Relation target = relation_open(target_id, NoLock);
  check_rules(diverted, CMD_DELETE);
  check_rules(target, CMD_INSERT);
  if (removes) check_rules(target, CMD_DELETE);
  find_columns(&task, columns, diverted, target);
  fill_moved(&task, diverted, target);
  check_others(&task, diverted, target);
  task.has_time = has_own_column(diverted, target, "diverted_at") &&
                  find_attribute(diverted, "diverted_at")->atttypid == TIMESTAMPTZOID;
  if (since && !task.has_time)
    ereport(ERROR, errcode(ERRCODE_UNDEFINED_COLUMN),
            errmsg("table \"%s\" does not say when its rows were diverted",
                   RelationGetRelationName(diverted)),
            errdetail("Argument \"since\" needs its column diverted_at, of type timestamptz."),
            errhint("Leave \"since\" out, or add the column: ALTER TABLE ... ADD diverted_at "
                    "timestamptz."));
  relation_close(target, NoLock);
  relation_close(diverted, NoLock);
  check_constraints_at_once(diverted_id, target_id);
  if (task.filter == nullptr || !can_take_keys(task.filter))
    LockRelationOid(target_id, ShareRowExclusiveLock);
  return task;
}

}  // namespace streamfilter::pg
