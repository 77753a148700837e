// The INSERT is planned once for each trigger and kept, as those of foreign keys are.
#include "pg/server/postgres.hpp"

extern "C" {
#include "catalog/catalog.h"
#include "catalog/partition.h"
}

#include "pg/catalog/lookup.hpp"
#include "pg/trigger/divert.hpp"

namespace streamfilter::pg {

// A row that is being diverted: triggers of the target may divert it further.
struct Diversion {
  const FilterHandle* filter;
  Oid trigger;
  const Diversion* outer;
};

const Diversion* running_diversion = nullptr;

namespace {

// ---- which table -------------------------------------------------------------------------------

// Unlike a filter, it is nowhere but in the schema of the table.
Oid look_up_target(const char* schema, const char* name, const DeclaredTrigger* declared) {
  const Oid space = schema == nullptr ? declared->schema : LookupNamespaceNoError(schema);
  return OidIsValid(space) ? get_relname_relid(name, space) : InvalidOid;
}

Oid look_up_argument(const Trigger* trigger, const DeclaredTrigger* declared) {
  char* schema;
  char* name;
  parse_name(trigger->tgargs[1], "a table", "streamfilter_divert('filter', 'my_schema.my_table')",
             &schema, &name);
  return look_up_target(schema, name, declared);
}

void check_is_table(Oid target) {
  const char kind = get_rel_relkind(target);
  if ((kind == RELKIND_RELATION || kind == RELKIND_PARTITIONED_TABLE) &&
      !IsCatalogRelationOid(target))
    return;
  ereport(ERROR, errcode(ERRCODE_WRONG_OBJECT_TYPE),
          errmsg("cannot divert repeats to \"%s\"", get_rel_name(target)),
          errdetail("It is not a table of this database's users."),
          errhint("Divert them to a table, for example one made by CREATE TABLE ... (LIKE ..., "
                  "diverted_at timestamptz, filter regclass)."));
}

// A diverted row must not come to the same trigger again, nor go when the session ends.
void check_is_another(Oid target, const DeclaredTrigger* declared) {
  if (topmost_table(target) == topmost_table(declared->table))
    ereport(ERROR, errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
            errmsg("cannot divert repeats of table %s to \"%s\"", declared->table_name,
                   get_rel_name(target)),
            errdetail("They are one table, or partitions of one."),
            errhint("Divert them to another table."));
  if (get_rel_persistence(target) == RELPERSISTENCE_TEMP &&
      get_rel_persistence(declared->table) != RELPERSISTENCE_TEMP)
    ereport(ERROR, errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
            errmsg("cannot divert repeats of table %s to temporary table \"%s\"",
                   declared->table_name, get_rel_name(target)),
            errdetail("Only one session can insert into it."),
            errhint("Divert them to a permanent table."));
}

// False: a right is missing, which was reported at that level.
bool check_target(Oid target, const DeclaredTrigger* declared, int missing_right) {
  if (get_rel_name(target) == nullptr)
    ereport(
        ERROR, errcode(ERRCODE_UNDEFINED_TABLE),
        errmsg("the table that repeats of %s are diverted to does not exist", declared->table_name),
        errhint("CREATE OR REPLACE the trigger for another table."));
  check_is_table(target);
  check_is_another(target, declared);
  return check_rights(target, {declared->owner, declared->table_name}, ACL_INSERT, missing_right);
}

[[noreturn]] void raise_no_table(const Trigger* trigger, const DeclaredTrigger* declared) {
  ereport(ERROR, errcode(ERRCODE_UNDEFINED_TABLE),
          errmsg("table \"%s\" does not exist", trigger->tgargs[1]),
          errdetail("Trigger \"%s\" names it in argument 2; without a schema it is looked up in "
                    "schema \"%s\".",
                    trigger->tgname, get_namespace_name(declared->schema)),
          errhint("Create it, or give its name with its schema."));
}

// ---- which columns -----------------------------------------------------------------------------

Form_pg_attribute column(Relation table, int attnum) {
  return TupleDescAttr(RelationGetDescr(table), attnum - 1);
}

void check_assignable(Relation table, Relation target, const Form_pg_attribute to, int source) {
  Oid type = type_of(table, source);
  Oid target_type = to->atttypid;
  if (can_coerce_type(1, &type, &target_type, COERCION_ASSIGNMENT)) return;
  ereport(
      ERROR, errcode(ERRCODE_DATATYPE_MISMATCH),
      errmsg(
          "column \"%s\" of table \"%s\" is of type %s, but the value diverted to it is of type %s",
          NameStr(to->attname), RelationGetRelationName(target), format_type_be(target_type),
          format_type_be(type)),
      errhint("Give it the type of the column of the same name, or another name."));
}

// Columns whose values have nowhere to go.
const char* list_missing(Relation table, Relation target) {
  TextBuffer list;
  for (int i = 1; i <= RelationGetNumberOfAttributes(table); ++i) {
    const Form_pg_attribute from = column(table, i);
    if (from->attisdropped || from->attgenerated != '\0') continue;
    const AttrNumber to = find_exactly(target, NameStr(from->attname));
    if (to == InvalidAttrNumber || column(target, to)->attgenerated != '\0')
      appendStringInfo(&list, "%s%s", list.len ? ", " : "", NameStr(from->attname));
  }
  return list.data;
}

// ---- the INSERT --------------------------------------------------------------------------------

struct InsertPlan {
  Oid trigger;  // the key
  Oid target;
  SPIPlanPtr plan;       // nullptr: not made yet
  MemoryContext memory;  // of what follows
  const char* name;      // of the target, as the plan has it
  const TableWatch* table_watch;
  const TableWatch* target_watch;
  uint64 table_changes, target_changes;
  int count;
  int* sources;
  Oid* types;
};

HTAB* plans = nullptr;

InsertPlan* find_plan(Oid trigger) {
  if (plans == nullptr) plans = make_hash_table<Oid, InsertPlan>("streamfilter diversions", 16);
  bool found;
  auto* plan = static_cast<InsertPlan*>(hash_search(plans, &trigger, HASH_ENTER, &found));
  if (found) return plan;
  *plan = InsertPlan{};
  plan->trigger = trigger;
  plan->memory = make_small_context("streamfilter diversion", CacheMemoryContext);
  return plan;
}

bool is_current_plan(const InsertPlan* plan, Oid target) {
  return plan->plan != nullptr && plan->target == target &&
         plan->table_changes == plan->table_watch->changes &&
         plan->target_changes == plan->target_watch->changes &&
         strcmp(plan->name, qualified_name(target)) == 0;
}

void forget(InsertPlan* plan) {
  SPIPlanPtr old = plan->plan;
  plan->plan = nullptr;
  if (old != nullptr) SPI_freeplan(old);
  MemoryContextReset(plan->memory);
}

// The columns that are given, in the order of the target's; the others have their defaults.
void choose_columns(InsertPlan* plan, Relation table, Relation target, StringInfo names) {
  const int most = RelationGetNumberOfAttributes(target);
  plan->sources = allocate<int>(most + 1, plan->memory);
  plan->types = allocate<Oid>(most + 1, plan->memory);
  plan->count = 0;
  for (int i = 1; i <= most; ++i) {
    const int source = source_of(table, column(target, i));
    if (source == kNothing) continue;
    plan->sources[plan->count] = source;
    plan->types[plan->count] = type_of(table, source);
    appendStringInfo(names, "%s%s", plan->count++ ? ", " : "",
                     quote_identifier(NameStr(column(target, i)->attname)));
  }
}

// Identity columns get what the row has: it is kept as it came.
const char* insert_text(InsertPlan* plan, Relation table, Relation target) {
  TextBuffer text;
  appendStringInfo(&text, "INSERT INTO %s (", plan->name);
  choose_columns(plan, table, target, &text);
  appendStringInfoString(&text, ") OVERRIDING SYSTEM VALUE VALUES (");
  for (int i = 1; i <= plan->count; ++i) appendStringInfo(&text, "%s$%d", i > 1 ? ", " : "", i);
  appendStringInfoChar(&text, ')');
  return text.data;
}

// Unless it is kept, the plan ends with SPI_finish().
void make_insert_plan(InsertPlan* plan, Relation table, Oid target_id, bool keep) {
  Relation target = relation_open(target_id, NoLock);
  plan->target = target_id;
  plan->table_watch = watch_table(RelationGetRelid(table));
  plan->target_watch = watch_table(target_id);
  // Counts first: what changes meanwhile makes the next row look again.
  plan->table_changes = plan->table_watch->changes;
  plan->target_changes = plan->target_watch->changes;
  plan->name = MemoryContextStrdup(plan->memory, qualified_name(target_id));
  const char* text = insert_text(plan, table, target);
  relation_close(target, NoLock);
  SPIPlanPtr prepared = SPI_prepare(text, plan->count, plan->types);
  if (prepared == nullptr || (keep && SPI_keepplan(prepared) != 0))
    elog(ERROR, "could not plan %s: %s", text, SPI_result_code_string(SPI_result));
  plan->plan = prepared;
}

// Has the kept plan of the trigger led here, and goes on afterwards?
bool is_plan_running(Oid trigger) {
  for (const Diversion* diversion = running_diversion->outer; diversion != nullptr;
       diversion = diversion->outer)
    if (diversion->trigger == trigger) return true;
  return false;
}

Datum value_for(int source, TupleTableSlot* row, const FilterHandle* filter, char* null) {
  *null = ' ';
  if (source == kDivertedAt) return TimestampTzGetDatum(GetCurrentTransactionStartTimestamp());
  if (source == kFilter) return ObjectIdGetDatum(filter->relid);
  if (row->tts_isnull[source - 1]) *null = 'n';
  return row->tts_values[source - 1];
}

[[noreturn]] void raise_not_stored(const TriggerData* call, Oid target) {
  ereport(ERROR, errcode(ERRCODE_TRIGGERED_ACTION_EXCEPTION),
          errmsg("a repeat of table \"%s\" was not stored in table \"%s\"",
                 RelationGetRelationName(call->tg_relation), get_rel_name(target)),
          errdetail("A trigger or a rule of the latter has discarded it or put it elsewhere."),
          errhint("Divert repeats to a table that keeps them."));
}

void insert_diverted(const TriggerData* call, Oid target, const FilterHandle* filter) {
  SPI_connect();
  const Oid trigger = call->tg_trigger->tgoid;
  InsertPlan* plan = find_plan(trigger);
  InsertPlan once = {};
  if (!is_current_plan(plan, target)) {
    const bool keep = !is_plan_running(trigger);
    once.memory = CurrentMemoryContext;
    if (keep)
      forget(plan);
    else
      plan = &once;
    make_insert_plan(plan, call->tg_relation, target, keep);
  }
  auto* values = allocate<Datum>(plan->count + 1);
  auto* nulls = allocate<char>(plan->count + 1);
  slot_getallattrs(call->tg_trigslot);
  for (int i = 0; i < plan->count; ++i)
    values[i] = value_for(plan->sources[i], call->tg_trigslot, filter, &nulls[i]);
  const int result = SPI_execute_plan(plan->plan, values, nulls, false, 0);
  if (result != SPI_OK_INSERT || SPI_processed != 1) raise_not_stored(call, target);
  SPI_finish();
}

pg_noinline void set_running(const Diversion* diversion) { running_diversion = diversion; }

}  // namespace

// Generated columns of the table are not known yet, those of the target are computed there.
int source_of(Relation table, const Form_pg_attribute target) {
  if (target->attisdropped || target->attgenerated != '\0') return kNothing;
  const char* name = NameStr(target->attname);
  const AttrNumber namesake = find_exactly(table, name);
  if (namesake != InvalidAttrNumber)
    return column(table, namesake)->attgenerated == '\0' ? namesake : kNothing;
  if (strcmp(name, "diverted_at") == 0) return kDivertedAt;
  return strcmp(name, "filter") == 0 ? kFilter : kNothing;
}

Oid type_of(Relation table, int source) {
  if (source == kDivertedAt) return TIMESTAMPTZOID;
  return source == kFilter ? REGCLASSOID : column(table, source)->atttypid;
}

Oid topmost_table(Oid relation) {
  return get_rel_relispartition(relation) ? llast_oid(get_partition_ancestors(relation)) : relation;
}

bool diverts(const FilterHandle* filter) {
  for (const Diversion* diversion = running_diversion; diversion != nullptr;
       diversion = diversion->outer)
    if (diversion->filter == filter) return true;
  return false;
}

Oid find_target(const Trigger* trigger, const DeclaredTrigger* declared) {
  if (OidIsValid(declared->binding.target)) return declared->binding.target;
  return trigger->tgnargs < 2 ? InvalidOid : look_up_argument(trigger, declared);
}

Oid lock_target(const Trigger* trigger, const DeclaredTrigger* declared, LOCKMODE lockmode,
                int missing_right) {
  if (trigger->tgnargs < 2)
    ereport(ERROR, errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
            errmsg("trigger \"%s\" does not say which table to divert repeats to", trigger->tgname),
            errhint("Name it in the second argument: streamfilter_divert('filter', 'table')."));
  // The name may come to mean another table while we wait for the lock.
  Oid locked = InvalidOid;
  for (;;) {
    const Oid target = find_target(trigger, declared);
    if (!OidIsValid(target)) raise_no_table(trigger, declared);
    if (target == locked) return target;
    if (OidIsValid(locked)) UnlockRelationOid(locked, lockmode);
    if (!check_target(target, declared, missing_right)) return InvalidOid;
    LockRelationOid(target, lockmode);
    locked = target;
  }
}

void check_columns(Relation table, Oid target_id, bool warn) {
  Relation target = relation_open(target_id, AccessShareLock);
  int from_table = 0;
  for (int i = 1; i <= RelationGetNumberOfAttributes(target); ++i) {
    const int source = source_of(table, column(target, i));
    if (source == kNothing) continue;
    check_assignable(table, target, column(target, i), source);
    from_table += source > 0;
  }
  if (from_table == 0)
    ereport(
        ERROR, errcode(ERRCODE_UNDEFINED_COLUMN),
        errmsg("tables \"%s\" and \"%s\" have no column of the same name",
               RelationGetRelationName(table), RelationGetRelationName(target)),
        errdetail("Columns of diverted rows go to those of the same names."),
        errhint("Add the columns that are to be kept to \"%s\".", RelationGetRelationName(target)));
  const char* missing = list_missing(table, target);
  if (warn && missing[0] != '\0')
    ereport(WARNING,
            errmsg("table \"%s\" lacks columns of the rows diverted to it",
                   RelationGetRelationName(target)),
            errdetail("It has no columns for those of table \"%s\": %s.",
                      RelationGetRelationName(table), missing),
            errhint("Add those that are to be kept with ALTER TABLE."));
  relation_close(target, NoLock);
}

void divert_row(const TriggerData* call, Oid target, Oid owner, const FilterHandle* filter) {
  // A savepoint may have given the lock back.
  LockRelationOid(target, RowExclusiveLock);
  if (get_rel_name(target) == nullptr)
    ereport(ERROR, errcode(ERRCODE_UNDEFINED_TABLE),
            errmsg("the table that repeats are diverted to does not exist"),
            errhint("Create it and the trigger anew."));
  const Diversion diversion = {filter, call->tg_trigger->tgoid, running_diversion};
  set_running(&diversion);
  PG_TRY();
  {
    const Caller caller = become_owner(target, owner);
    insert_diverted(call, target, filter);
    return_to(caller);
  }
  PG_FINALLY();
  { set_running(diversion.outer); }
  PG_END_TRY();
}

}  // namespace streamfilter::pg
