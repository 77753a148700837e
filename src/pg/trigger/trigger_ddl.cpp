#include "pg/server/postgres.hpp"

extern "C" {
#include "rewrite/rewriteHandler.h"
}

#include "pg/catalog/lookup.hpp"
#include "pg/catalog/option_list.hpp"
#include "pg/citus/citus_tables.hpp"
#include "pg/citus/shard_triggers.hpp"
#include "pg/handle/tree.hpp"
#include "pg/trigger/divert.hpp"
#include "pg/trigger/forget_trigger.hpp"
#include "pg/trigger/forgetful_filters.hpp"
#include "pg/trigger/key_indexes.hpp"
#include "pg/trigger/trigger_ddl.hpp"

namespace streamfilter::pg {
namespace {

const Trigger* find_by_name(const TriggerDesc* triggers, const char* name) {
  for (int i = 0; triggers != nullptr && i < triggers->numtriggers; ++i)
    if (strcmp(triggers->triggers[i].tgname, name) == 0) return &triggers->triggers[i];
  return nullptr;
}

bool has_triggers(Oid table) {
  return read_field(RELOID, table, &FormData_pg_class::relhastriggers, false);
}

// False, without waiting, if another session has locked the relation.
bool lock_unless_busy(Oid relation) {
  return ConditionalLockRelationOid(relation, AccessShareLock);
}

// Calls visit(trigger, table) for each of our triggers that may fire, of the table and of its
// partitions and children. Without `wait`, skips tables that other sessions have locked.
template <typename Visit>
void for_each_trigger(Oid root, Visit visit, bool wait = true) {
  for (const Oid child : each_oid(find_all_inheritors(root, NoLock, nullptr))) {
    if (!has_triggers(child) || (!wait && !lock_unless_busy(child))) continue;
    Relation table = try_relation_open(child, AccessShareLock);
    if (table == nullptr) continue;
    visit_own_triggers(table, [&](const Trigger* trigger, TriggerKind kind) {
      if (trigger->tgenabled != TRIGGER_DISABLED) visit(trigger, kind, table);
    });
    relation_close(table, NoLock);
  }
}

// ---- CREATE TRIGGER ----------------------------------------------------------------------------

// The same for all filters of a tree; a circle of parents is reported elsewhere.
Oid root_of(Oid filter) {
  for (int level = 0; level < static_cast<int>(kMaxTreeLevels); ++level) {
    const Oid parent = is_filter(filter) ? find_parent(filter) : InvalidOid;
    if (!OidIsValid(parent)) break;
    filter = parent;
  }
  return filter;
}

// Two triggers with one filter, or with filters of one tree, would see a repeat in every row.
void check_sole_judge(Oid created, Oid table, Oid filter) {
  for_each_trigger(table, [=](const Trigger* other, TriggerKind kind, Relation holder) {
    const DeclaredTrigger declared = find_declared(other, holder);
    const Oid used = declared.binding.filter;
    if (!judges(kind) || declared.trigger == created || !OidIsValid(used) ||
        root_of(used) != root_of(filter))
      return;
    ereport(ERROR, errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
            errmsg("trigger \"%s\" judges the rows of table \"%s\" by filter \"%s\" already",
                   other->tgname, RelationGetRelationName(holder), get_rel_name(used)),
            used != filter
                ? errdetail("It is of the same tree as filter \"%s\": the second of two "
                            "triggers would take every row for a repeat.",
                            get_rel_name(filter))
                : errdetail("The second of two triggers would take every row for a repeat."),
            errhint("Drop or disable one of them."));
  });
}

// Rows diverted to the table are repeats for that filter.
void check_not_diverted_here(Oid table, Oid filter) {
  for (const auto* row : each<TriggerRow>(find_diverting_triggers(table))) {
    if (row->binding.filter != filter) continue;
    ereport(
        ERROR, errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
        errmsg(
            "rows that table \"%s\" diverts to table \"%s\" were judged by filter \"%s\" already",
            get_rel_name(row->table), get_rel_name(table), get_rel_name(filter)),
        errdetail("The trigger would take every such row for a repeat."),
        errhint("Use another filter."));
  }
}

// The table that the trigger diverts to, checked; InvalidOid if it diverts nothing.
Oid check_diversion(const Trigger* trigger, TriggerKind kind, Relation table,
                    const DeclaredTrigger* declared, int missing_right) {
  if (kind != TriggerKind::divert) return InvalidOid;
  const Oid target = lock_target(trigger, declared, AccessShareLock, missing_right);
  if (OidIsValid(target)) check_columns(table, target, declared->table == RelationGetRelid(table));
  return target;
}

void warn_if_less_durable(Oid table, Oid target) {
  if (get_rel_persistence(table) == RELPERSISTENCE_PERMANENT &&
      get_rel_persistence(target) == RELPERSISTENCE_UNLOGGED)
    ereport(WARNING, errmsg("repeats are diverted to unlogged table \"%s\"", get_rel_name(target)),
            errdetail("It is empty after a crash."),
            errhint("ALTER TABLE ... SET LOGGED makes it outlive one."));
}

// A dump grants rights after it has created triggers: a trigger whose owner lacks one is bound when
// it first fires.
int level_of_missing_right() { return is_restoring() ? WARNING : ERROR; }

void bind_forgetting(const Trigger* trigger, Relation table) {
  check_forget_event(trigger, table);
  const DeclaredTrigger declared = find_declared(trigger, table);
  const Oid filter = lock_filter(trigger, TriggerKind::forget, &declared, AccessShareLock,
                                 level_of_missing_right());
  if (!OidIsValid(filter)) return;
  plan_forgetting(trigger, table, load_filter_relation(filter));
  bind_trigger(trigger->tgoid, {filter, InvalidOid});
}

void check_crash_safety(const Trigger* trigger, TriggerKind kind, Relation table) {
  const DeclaredTrigger declared = find_declared(trigger, table);
  const Oid filter = find_filter(trigger, kind, &declared);
  if (OidIsValid(filter)) warn_of_crash(table, load_filter_relation(filter));
}

// A number or time of its own makes each row another one.
void notice_own_values(const Trigger* trigger, Relation table, const TriggerPlan* plan,
                       const FilterRelation* filter) {
  for (int i = 0; i < plan->count && !trigger->tgisclone && !is_restoring(); ++i) {
    const KeyInput* input = &plan->inputs[i];
    if (input->column->role != Role::key) continue;
    const FormData_pg_attribute* column = TupleDescAttr(RelationGetDescr(table), input->source);
    if (!contain_mutable_functions(build_column_default(table, column->attnum))) continue;
    ereport(NOTICE,
            errmsg("column \"%s\" of table \"%s\" has a default that gives each row another key",
                   NameStr(column->attname), RelationGetRelationName(table)),
            errdetail("A row that comes without this column is never a repeat."),
            errhint("Leave column \"%s\" out of filter \"%s\", unless all rows bring a value.",
                    input->column->name, filter->name));
  }
}

void bind_created(const Trigger* trigger, TriggerKind kind, Relation table) {
  const DeclaredTrigger named = find_declared(trigger, table);
  import_filter(trigger, kind, &named);
  check_distribution(trigger, kind, table);
  if (!judges(kind)) return bind_forgetting(trigger, table);
  const int16 type = trigger->tgtype;
  if (!TRIGGER_FOR_ROW(type) || !TRIGGER_FOR_BEFORE(type) || !TRIGGER_FOR_INSERT(type) ||
      TRIGGER_FOR_UPDATE(type) || TRIGGER_FOR_DELETE(type))
    raise_wrong_event(trigger, kind, table);
  const DeclaredTrigger declared = find_declared(trigger, table);
  const int missing_right = level_of_missing_right();
  const Oid filter = lock_filter(trigger, kind, &declared, AccessShareLock, missing_right);
  if (!OidIsValid(filter)) return;
  const FilterRelation* relation = load_filter_relation(filter);
  const TriggerPlan* plan = make_plan(trigger, kind, table, relation);
  check_sole_judge(trigger->tgoid, RelationGetRelid(table), filter);
  check_not_diverted_here(RelationGetRelid(table), filter);
  const Oid target = check_diversion(trigger, kind, table, &declared, missing_right);
  if (kind == TriggerKind::divert && !OidIsValid(target)) return;
  if (OidIsValid(target)) {
    check_sole_judge(trigger->tgoid, target, filter);
    warn_if_less_durable(declared.table, target);
  }
  bind_trigger(trigger->tgoid, {filter, target});
  check_key_indexes(trigger, kind, table, plan, relation);
  notice_own_values(trigger, table, plan, relation);
  if (!is_made_by_citus(table)) hint_to_fill(trigger, table, plan, relation, false);
}

// `schema` is that of CREATE SCHEMA, whose elements do not name it since PostgreSQL 19.
void check_created(const CreateTrigStmt* statement, char* schema) {
  RangeVar named = *statement->relation;
  if (named.schemaname == nullptr) named.schemaname = schema;
  const Oid relid = RangeVarGetRelid(&named, NoLock, true);
  if (!OidIsValid(relid)) return;
  Relation table = try_relation_open(relid, AccessShareLock);
  if (table == nullptr) return;
  const TriggerDesc* triggers = CopyTriggerDesc(table->trigdesc);
  const Trigger* created = find_by_name(triggers, statement->trigname);
  TriggerKind kind;
  if (created != nullptr && find_kind(created->tgfoid, &kind)) bind_created(created, kind, table);
  for_each_trigger(relid, [created](const Trigger* trigger, TriggerKind its_kind, Relation holder) {
    if (!judges(its_kind)) return;
    const bool is_created =
        created != nullptr && find_declared(trigger, holder).trigger == created->tgoid;
    if (is_created) check_crash_safety(trigger, its_kind, holder);
  });
  if (created != nullptr && find_kind(created->tgfoid, &kind)) adopt_created(created, kind, table);
  relation_close(table, NoLock);
}

// For CREATE SCHEMA ... CREATE TRIGGER ...
void check_created_with_schema(const CreateSchemaStmt* statement) {
  char* schema =
      statement->schemaname ? statement->schemaname : get_rolespec_name(statement->authrole);
  for (auto* element : each<Node>(statement->schemaElts))
    if (IsA(element, CreateTrigStmt)) check_created(castNode(CreateTrigStmt, element), schema);
}

// ---- ALTER -------------------------------------------------------------------------------------

struct Checked {
  const Trigger* trigger;
  Relation table;
};

void say_what_is_checked(void* context) {
  const auto* checked = static_cast<const Checked*>(context);
  errcontext("trigger \"%s\" of table \"%s\", which would fail for every row",
             checked->trigger->tgname, RelationGetRelationName(checked->table));
}

// Without its rights the trigger fails anyway, so it blocks nobody's ALTER.
bool fails_anyway(const Trigger* trigger, TriggerKind kind, const DeclaredTrigger* declared) {
  const auto is_denied = [declared](Oid relid, AclMode rights) {
    return OidIsValid(relid) && !has_rights(relid, declared->owner, rights);
  };
  return is_denied(find_filter(trigger, kind, declared), needed_rights(trigger->tgtype, kind)) ||
         (kind == TriggerKind::divert && is_denied(find_target(trigger, declared), ACL_INSERT));
}

// Are the relations that the trigger uses free, or locked by this transaction?
bool is_free(const Trigger* trigger, TriggerKind kind, const DeclaredTrigger* declared) {
  const Oid filter = find_filter(trigger, kind, declared);
  const Oid target = kind == TriggerKind::divert ? find_target(trigger, declared) : InvalidOid;
  return (!OidIsValid(filter) || lock_unless_busy(filter)) &&
         (!OidIsValid(target) || lock_unless_busy(target));
}

// How to check a table.
struct CheckRule {
  int missing_right;  // level at which a missing right is reported
  bool wait;          // for locks of other sessions
};

// Raises an error that the trigger would raise for every row.
void check_trigger(const Trigger* trigger, TriggerKind kind, Relation table, CheckRule rule) {
  Checked checked = {trigger, table};
  ErrorContextCallback context = {error_context_stack, say_what_is_checked, &checked};
  const DeclaredTrigger declared = find_declared(trigger, table);
  if (rule.missing_right < ERROR && fails_anyway(trigger, kind, &declared)) return;
  if (!rule.wait && !is_free(trigger, kind, &declared)) return;
  error_context_stack = &context;
  const Oid filter = lock_filter(trigger, kind, &declared, AccessShareLock, rule.missing_right);
  if (OidIsValid(filter)) {
    if (judges(kind)) {
      make_plan(trigger, kind, table, load_filter_relation(filter));
      check_sole_judge(declared.trigger, RelationGetRelid(table), filter);
    } else {
      plan_forgetting(trigger, table, load_filter_relation(filter));
    }
    check_diversion(trigger, kind, table, &declared, rule.missing_right);
  }
  error_context_stack = context.previous;
}

void check_triggers_of_table(Oid relid, CheckRule rule) {
  for_each_trigger(
      relid,
      [=](const Trigger* trigger, TriggerKind kind, Relation table) {
        check_trigger(trigger, kind, table, rule);
      },
      rule.wait);
}

// Cancellation, lack of memory, shutdown and internal errors still end the statement.
bool concerns_the_statement(int sqlstate) {
  const int category = ERRCODE_TO_CATEGORY(sqlstate);
  return category == ERRCODE_TO_CATEGORY(ERRCODE_OPERATOR_INTERVENTION) ||
         category == ERRCODE_TO_CATEGORY(ERRCODE_INSUFFICIENT_RESOURCES) ||
         category == ERRCODE_TO_CATEGORY(ERRCODE_INTERNAL_ERROR);
}

// DDL on a filter neither waits for tables with other owners nor fails because of them.
void check_others_table(Oid table) {
  ErrorData* error = error_in_savepoint([table] {
    check_triggers_of_table(table, {WARNING, false});
  });
  if (error == nullptr) return;
  if (concerns_the_statement(error->sqlerrcode)) ReThrowError(error);
  error->elevel = WARNING;
  ThrowErrorData(error);
}

// Checks the triggers that use the relation as filter or as table for repeats.
void check_triggers_using(Oid relid) {
  for (auto* row : each<TriggerRow>(find_triggers_using(relid))) {
    TriggerKind kind;
    if (!find_kind(row->function, &kind) || !has_all_rights(row, kind)) continue;
    if (owns_both(relid, row->table))
      check_triggers_of_table(row->table, {WARNING, true});
    else
      check_others_table(row->table);
  }
}

void check_altered(const RangeVar* name, int missing_right) {
  const Oid relid = RangeVarGetRelid(name, NoLock, true);
  if (!OidIsValid(relid)) return;
  check_triggers_of_table(relid, {missing_right, true});
  check_triggers_using(relid);
}

// Does the statement change what survives a crash, of the rows or of the filter?
bool alters_persistence(const AlterTableStmt* statement) {
  for (const auto* command : each<AlterTableCmd>(statement->cmds)) {
    const AlterTableType type = command->subtype;
    if (type == AT_SetLogged || type == AT_SetUnLogged || type == AT_AttachPartition ||
        (type == AT_GenericOptions &&
         find_option(castNode(List, command->def), "persistence") != nullptr))
      return true;
  }
  return false;
}

void warn_of_crash_of_table(Oid relid) {
  for_each_trigger(relid, [](const Trigger* trigger, TriggerKind kind, Relation table) {
    if (judges(kind)) check_crash_safety(trigger, kind, table);
  });
}

void warn_of_crash_of(const RangeVar* name) {
  const Oid relid = RangeVarGetRelid(name, NoLock, true);
  if (!OidIsValid(relid)) return;
  if (!is_filter(relid)) return warn_of_crash_of_table(relid);
  for (const auto* row : each<TriggerRow>(find_triggers_using(relid))) {
    if (owns_both(relid, row->table)) warn_of_crash_of_table(row->table);
  }
}

// The rows of a partition that is attached have not come through the trigger.
void hint_to_fill_attached(const AlterTableStmt* statement) {
  for (const auto* command : each<AlterTableCmd>(statement->cmds)) {
    if (command->subtype != AT_AttachPartition) continue;
    const Oid relid = RangeVarGetRelid(castNode(PartitionCmd, command->def)->name, NoLock, true);
    Relation table = OidIsValid(relid) ? try_relation_open(relid, AccessShareLock) : nullptr;
    if (table == nullptr) continue;
    visit_own_triggers(table, [table](const Trigger* trigger, TriggerKind kind) {
      const DeclaredTrigger declared = find_declared(trigger, table);
      const Oid filter = find_filter(trigger, kind, &declared);
      if (!judges(kind) || !trigger->tgisclone || !OidIsValid(filter)) return;
      const FilterRelation* relation = load_filter_relation(filter);
      hint_to_fill(trigger, table, make_plan(trigger, kind, table, relation), relation, true);
    });
    relation_close(table, NoLock);
  }
}

// A new owner must have the rights at once. Rights of others may be granted later, as dumps do it.
int level_after(const AlterTableStmt* statement) {
  for (auto* command : each<AlterTableCmd>(statement->cmds))
    if (command->subtype == AT_ChangeOwner) return ERROR;
  return WARNING;
}

// ---- RENAME and SET SCHEMA ---------------------------------------------------------------------

void warn_of_former_name(const TriggerRow* row, const char* why) {
  const char* table = get_rel_name(row->table);
  if (table == nullptr) return;
  ereport(WARNING, errcode(ERRCODE_LOCK_NOT_AVAILABLE),
          errmsg("a trigger of table \"%s\" keeps the former name in its arguments", table),
          errdetail("%s The trigger still works, but a dump would contain the former name.", why),
          errhint("SELECT streamfilter_adopt_triggers(); writes the names anew."));
}

// Is the owner of what the trigger uses also the owner of the trigger's table?
bool is_of_one_owner(const TriggerRow* row) {
  return owns_both(row->binding.filter, row->table) ||
         (OidIsValid(row->binding.target) && owns_both(row->binding.target, row->table));
}

// A session that ends releases the table before the trigger: it gets a moment.
bool lock_trigger_soon(Oid trigger) {
  bool locked = false;
  for (int i = 0; i < 20 && !(locked = lock_trigger_if_free(trigger)); ++i) pg_usleep(1000);
  return locked;
}

// Only dumps read the arguments; the trigger itself goes by OIDs. DROP TRIGGER locks the trigger,
// reads its row, then waits for the table. If we waited for the trigger here, that would be a
// deadlock; if we wrote the row meanwhile, DROP would fail.
bool lock_to_rename(const TriggerRow* row) {
  const bool waits = is_of_one_owner(row);
  if (waits) LockRelationOid(row->table, ShareUpdateExclusiveLock);
  const char* why = nullptr;
  if (!waits && !ConditionalLockRelationOid(row->table, ShareUpdateExclusiveLock))
    why = "Another session has the table locked.";
  else if (!lock_trigger_soon(row->trigger))
    why = "Another session is about to drop the trigger.";
  if (why != nullptr) warn_of_former_name(row, why);
  return why == nullptr;
}

// Updates names in triggers after a relation was renamed, or a schema (InvalidOid).
void follow_names(Oid relation) {
  for (const auto* row :
       each<TriggerRow>(OidIsValid(relation) ? find_triggers_using(relation) : find_triggers())) {
    if (!has_former_names(row) || !lock_to_rename(row)) continue;
    TriggerRow now;  // while we waited for the lock, the trigger may have been dropped
    if (read_trigger_row(row->trigger, &now) && now.binding.filter == row->binding.filter &&
        now.binding.target == row->binding.target)
      bind_trigger(now.trigger, now.binding);
  }
}

// Updates the names after a RENAME to `name`. Without a schema, checks each relation that the
// search path may mean: another one of the name may come before it.
void follow_name_of(const char* schema, const char* name) {
  const List* path =
      schema != nullptr ? list_make1_oid(get_namespace_oid(schema, true)) : fetch_search_path(true);
  for (const Oid space : each_oid(path))
    if (const Oid relid = get_relname_relid(name, space); OidIsValid(relid)) follow_names(relid);
}

// The trigger goes on with the same columns, as an index does: their new names are written into its
// arguments, which a dump contains.
void follow_column(const Trigger* trigger, TriggerKind kind, Relation table,
                   const RenameStmt* renamed) {
  const DeclaredTrigger declared = find_declared(trigger, table);
  const Oid filter = find_filter(trigger, kind, &declared);
  if (!OidIsValid(filter)) return;
  const List* arguments = arguments_with_column(trigger, kind, table, load_filter_relation(filter),
                                                {renamed->subname, renamed->newname});
  if (arguments != NIL) write_arguments(trigger->tgoid, arguments);
}

void follow_column_of_table(const RenameStmt* renamed) {
  const Oid relid = RangeVarGetRelid(renamed->relation, NoLock, true);
  if (!OidIsValid(relid)) return;
  for (const Oid child : each_oid(find_all_inheritors(relid, AccessShareLock, nullptr))) {
    if (!has_triggers(child)) continue;
    Relation table = relation_open(child, NoLock);
    visit_own_triggers(table, [=](const Trigger* trigger, TriggerKind kind) {
      follow_column(trigger, kind, table, renamed);
    });
    relation_close(table, NoLock);
  }
}

void check_renamed(const RenameStmt* statement) {
  if (statement->renameType == OBJECT_COLUMN && statement->relationType == OBJECT_TABLE)
    follow_column_of_table(statement);
  if (statement->relation != nullptr && statement->subname != nullptr)
    check_altered(statement->relation, WARNING);  // a column or a trigger
  else if (statement->relation != nullptr)
    follow_name_of(statement->relation->schemaname, statement->newname);
  else if (statement->renameType == OBJECT_SCHEMA)
    follow_names(InvalidOid);
}

void check_moved(const AlterObjectSchemaStmt* statement) {
  if (statement->relation != nullptr)
    follow_name_of(statement->newschema, statement->relation->relname);
  else if (statement->objectType == OBJECT_EXTENSION)
    follow_names(InvalidOid);
}

// ---- DROP --------------------------------------------------------------------------------------

List* relations_of(const DropStmt* statement) {
  List* relations = NIL;
  for (auto* part : each<List>(statement->objects)) {
    const Oid relid = RangeVarGetRelid(makeRangeVarFromNameList(part), NoLock, true);
    if (OidIsValid(relid)) relations = lappend_oid(relations, relid);
  }
  return relations;
}

// Triggers of tables whose owners have no right any more keep nobody from dropping it, nor do such
// filters below it.
void unbind_strangers(Oid relid) {
  for (const Oid child : each_oid(lasting_children(relid))) {
    if (!is_filter(child) || has_rights_on_parent(child, relid)) continue;
    depend_no_more_on(child, RelationRelationId, relid);
    CommandCounterIncrement();
  }
  for (const auto* row : each<TriggerRow>(find_triggers_using(relid))) {
    TriggerKind kind;
    if (find_kind(row->function, &kind) && !has_all_rights(row, kind)) unbind_trigger(row);
  }
}

// The relation that the statement alters, renames or moves; nullptr if none.
const RangeVar* relation_of(Node* statement) {
  if (IsA(statement, AlterTableStmt)) return castNode(AlterTableStmt, statement)->relation;
  if (IsA(statement, RenameStmt)) return castNode(RenameStmt, statement)->relation;
  if (IsA(statement, AlterObjectSchemaStmt))
    return castNode(AlterObjectSchemaStmt, statement)->relation;
  return nullptr;
}

}  // namespace

void lock_tables_of_triggers(Node* statement) {
  const RangeVar* name = relation_of(statement);
  const Oid relid = name != nullptr ? RangeVarGetRelid(name, NoLock, true) : InvalidOid;
  if (!OidIsValid(relid) || !is_owner(relid, GetUserId())) return;
  const LOCKMODE mode = IsA(statement, AlterTableStmt) ? AccessShareLock : ShareUpdateExclusiveLock;
  for (const auto* row : each<TriggerRow>(find_triggers_using(relid)))
    if (is_of_one_owner(row)) LockRelationOid(row->table, mode);
}

void check_dropped(Node* node) {
  if (!IsA(node, DropStmt)) return;
  const auto* statement = castNode(DropStmt, node);
  if (statement->behavior == DROP_CASCADE ||
      (statement->removeType != OBJECT_FOREIGN_TABLE && statement->removeType != OBJECT_TABLE))
    return;
  const List* dropped = relations_of(statement);
  for (const Oid relid : each_oid(dropped)) {
    unbind_strangers(relid);
    check_droppable(relid, dropped);
  }
}

void check_triggers(Node* statement) {
  if (IsA(statement, CreateTrigStmt)) {
    check_created(castNode(CreateTrigStmt, statement), nullptr);
  } else if (IsA(statement, CreateSchemaStmt)) {
    check_created_with_schema(castNode(CreateSchemaStmt, statement));
  } else if (IsA(statement, AlterTableStmt)) {
    const auto* alter = castNode(AlterTableStmt, statement);
    check_altered(alter->relation, level_after(alter));
    if (alters_persistence(alter)) warn_of_crash_of(alter->relation);
    hint_to_fill_attached(alter);
    adopt_altered(alter);
  } else if (IsA(statement, RenameStmt)) {
    check_renamed(castNode(RenameStmt, statement));
  } else if (IsA(statement, AlterObjectSchemaStmt)) {
    check_moved(castNode(AlterObjectSchemaStmt, statement));
  }
}

// streamfilter_adopt_triggers() → bigint: binds triggers that were created before triggers were
// bound, or where no event trigger could see it, to the filters that their arguments name. Returns
// their number. Also updates the names in triggers that are bound.
SF_FUNCTION(streamfilter_adopt_triggers) {
  int64 adopted = 0;
  for (const auto* row : each<TriggerRow>(find_triggers())) {
    Relation table = try_relation_open(row->table, ShareUpdateExclusiveLock);
    if (table == nullptr) continue;
    visit_own_triggers(table, [&](const Trigger* trigger, TriggerKind kind) {
      if (trigger->tgoid != row->trigger) return;
      const DeclaredTrigger declared = find_declared(trigger, table);
      const Oid filter = find_filter(trigger, kind, &declared);
      if (!OidIsValid(filter)) return;
      const Oid target = kind == TriggerKind::divert ? find_target(trigger, &declared) : InvalidOid;
      if (kind == TriggerKind::divert && !OidIsValid(target)) return;
      if (fails_anyway(trigger, kind, &declared)) return;
      bind_trigger(trigger->tgoid, {filter, target});
      adopted += !OidIsValid(declared.binding.filter);
    });
    relation_close(table, NoLock);
  }
  PG_RETURN_INT64(adopted);
}

}  // namespace streamfilter::pg
