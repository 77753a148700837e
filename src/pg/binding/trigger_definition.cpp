#include "pg/server/postgres.hpp"

extern "C" {
#include "catalog/pg_namespace.h"
#include "utils/varlena.h"
}

#include "pg/binding/trigger_definition.hpp"
#include "pg/catalog/lookup.hpp"

namespace streamfilter::pg {
namespace {

// ---- where the trigger comes from --------------------------------------------------------------

// A statement goes on firing its copy of a trigger that code within it has dropped. Where the copy
// has no OID of a filter, only the name is left, which may mean another filter by now.
[[noreturn]] void raise_dropped(const Trigger* trigger, Relation table) {
  ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
          errmsg("trigger \"%s\" of table \"%s\" was dropped by the statement that fires it",
                 trigger->tgname, RelationGetRelationName(table)),
          errdetail("Which filter it used is not known any more."),
          errhint("Drop the trigger before the statement or after it."));
}

// ---- which filter ------------------------------------------------------------------------------

void parse_filter_name(const Trigger* trigger, TriggerKind kind, char** schema, char** name) {
  parse_name(trigger->tgargs[0], "a filter",
             psprintf("%s('my_schema.\"My Filter\"')", function_name(kind)), schema, name);
}

// Looks up by fixed schemas, never by search_path, and without the inserting user's rights on them.
Oid look_up_filter(const char* schema, const char* name, const DeclaredTrigger* declared) {
  if (schema != nullptr) {
    const Oid space = LookupNamespaceNoError(schema);
    return OidIsValid(space) ? get_relname_relid(name, space) : InvalidOid;
  }
  const Oid relid = get_relname_relid(name, declared->schema);
  return OidIsValid(relid) ? relid : get_relname_relid(name, declared->function_schema);
}

[[noreturn]] void raise_no_filter(const char* schema, const char* name, const char* text,
                                  const DeclaredTrigger* declared) {
  const bool unquoted = OidIsValid(look_up_filter(schema, text, declared));
  ereport(
      ERROR, errcode(ERRCODE_UNDEFINED_TABLE),
      schema ? errmsg("filter \"%s.%s\" does not exist", schema, name)
             : errmsg("filter \"%s\" does not exist", name),
      schema ? 0
      : declared->schema == declared->function_schema
          ? errdetail("It was looked up in schema \"%s\".", get_namespace_name(declared->schema))
          : errdetail("It was looked up in schemas \"%s\" and \"%s\".",
                      get_namespace_name(declared->schema),
                      get_namespace_name(declared->function_schema)),
      unquoted
          ? errhint("There is \"%s\": put the name in double quotes, as in '\"%s\"'.", text, text)
          : errhint("Create it, or give its name with its schema."));
}

// False if a right is missing, which is reported at that level.
bool check_filter(Oid relid, const DeclaredTrigger* declared, AclMode rights, int missing_right) {
  const char* name = get_rel_name(relid);
  if (name == nullptr)
    ereport(ERROR, errcode(ERRCODE_UNDEFINED_TABLE),
            errmsg("the filter of a trigger of table %s does not exist", declared->table_name),
            errhint("CREATE OR REPLACE the trigger for another filter."));
  if (!is_filter(relid))
    ereport(ERROR, errcode(ERRCODE_WRONG_OBJECT_TYPE), errmsg("\"%s\" is not a filter", name),
            errhint("Create one with CREATE FOREIGN TABLE ... SERVER streamfilter."));
  return check_rights(relid, {declared->owner, declared->table_name}, rights, missing_right);
}

Oid look_up_argument(const Trigger* trigger, TriggerKind kind, const DeclaredTrigger* declared) {
  if (trigger->tgnargs < 1) return InvalidOid;
  char* schema;
  char* name;
  parse_filter_name(trigger, kind, &schema, &name);
  return look_up_filter(schema, name, declared);
}

// The filter that the first argument names, for a trigger that is not bound yet.
Oid lock_named_filter(const Trigger* trigger, TriggerKind kind, const DeclaredTrigger* declared,
                      LOCKMODE lockmode, int missing_right) {
  const char* function = function_name(kind);
  if (trigger->tgnargs < 1)
    ereport(ERROR, errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
            errmsg("trigger \"%s\" does not say which filter to use", trigger->tgname),
            errhint("Name it in the first argument: %s('filter').", function));
  char* schema;
  char* name;
  parse_filter_name(trigger, kind, &schema, &name);
  // While we wait for the lock, the name may come to mean another relation.
  Oid locked = InvalidOid;
  for (;;) {
    const Oid relid = look_up_filter(schema, name, declared);
    if (!OidIsValid(relid)) raise_no_filter(schema, name, trigger->tgargs[0], declared);
    if (relid == locked) return relid;
    if (OidIsValid(locked)) UnlockRelationOid(locked, lockmode);
    // Before locking: without rights, nobody may lock the relation.
    if (!check_filter(relid, declared, needed_rights(trigger->tgtype, kind), missing_right))
      return InvalidOid;
    LockRelationOid(relid, lockmode);
    locked = relid;
  }
}

// ---- which columns -----------------------------------------------------------------------------

// By its exact name, otherwise as SQL reads the text ('Url' and '"url"' are url).
AttrNumber find_column(Relation table, const char* text) {
  const AttrNumber exact = find_exactly(table, text);
  if (exact != InvalidAttrNumber) return exact;
  List* parts = NIL;
  if (!SplitIdentifierString(pstrdup(text), '.', &parts) || list_length(parts) != 1)
    return InvalidAttrNumber;
  return find_exactly(table, static_cast<char*>(linitial(parts)));
}

const char* nearest_column(Relation table, const char* name) {
  NearestName nearest(name);
  for (int i = 0; i < RelationGetNumberOfAttributes(table); ++i) {
    const Form_pg_attribute attribute = TupleDescAttr(RelationGetDescr(table), i);
    if (!attribute->attisdropped) nearest.consider(NameStr(attribute->attname));
  }
  return nearest.name();
}

AttrNumber named_column(const Trigger* trigger, int argument, Relation table) {
  const char* name = trigger->tgargs[argument];
  const AttrNumber attnum = find_column(table, name);
  if (attnum != InvalidAttrNumber) return attnum;
  const char* nearest = nearest_column(table, name);
  ereport(
      ERROR, errcode(ERRCODE_UNDEFINED_COLUMN),
      errmsg("column \"%s\" of table \"%s\" does not exist", name, RelationGetRelationName(table)),
      errdetail("Trigger \"%s\" names it in argument %d.", trigger->tgname, argument + 1),
      nearest ? errhint("Perhaps you meant \"%s\".", nearest)
              : errhint("Name a column of the table."));
}

AttrNumber namesake(const FilterColumn* column, Relation table, const FilterRelation* filter) {
  const AttrNumber attnum = find_exactly(table, column->name);
  if (attnum != InvalidAttrNumber) return attnum;
  const char* nearest = nearest_column(table, column->name);
  const char* advice =
      "name the table's columns in further arguments of the trigger, in the order of the filter's";
  ereport(ERROR, errcode(ERRCODE_UNDEFINED_COLUMN),
          errmsg("table \"%s\" has no column \"%s\", as filter \"%s\" has",
                 RelationGetRelationName(table), column->name, filter->name),
          nearest ? errhint("If its column \"%s\" is meant, %s.", nearest, advice)
                  : errhint("If another column is meant, %s.", advice));
}

// A BEFORE trigger sees generated columns as NULL.
void check_not_generated(const Form_pg_attribute attribute, Relation table, bool key) {
  if (attribute->attgenerated == '\0') return;
  ereport(
      ERROR, errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
      errmsg("generated column \"%s\" of table \"%s\" cannot be %s", NameStr(attribute->attname),
             RelationGetRelationName(table), key ? "part of a key" : "the mark"),
      errdetail("Generated columns are computed after BEFORE triggers have fired."),
      key ? errhint("Use the columns that it is generated from.") : 0);
}

AttrNumber mark_column(const Trigger* trigger, Relation table) {
  if (trigger->tgnargs < 2)
    ereport(ERROR, errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
            errmsg("trigger \"%s\" does not say which column to mark", trigger->tgname),
            errhint("Give a boolean column of the table: streamfilter_mark('filter', 'column')."));
  const AttrNumber attnum = named_column(trigger, 1, table);
  const Form_pg_attribute attribute = TupleDescAttr(RelationGetDescr(table), attnum - 1);
  if (attribute->atttypid != BOOLOID)
    ereport(ERROR, errcode(ERRCODE_DATATYPE_MISMATCH),
            errmsg("column \"%s\" of table \"%s\" is of type %s, but the mark is a boolean",
                   NameStr(attribute->attname), RelationGetRelationName(table),
                   format_type_be(attribute->atttypid)),
            errhint("Give a boolean column of the table: streamfilter_mark('filter', 'column')."));
  check_not_generated(attribute, table, false);
  return attnum;
}

// One or two last arguments may name the handling of rows that a unique index refuses.
bool is_skip(const char* text) {
  const char* const kName = "conflicting";
  if (pg_strncasecmp(text, kName, strlen(kName)) != 0) return false;
  text += strlen(kName);
  text += strspn(text, " ='");
  const size_t length = strcspn(text, "' ");
  return length == 4 && pg_strncasecmp(text, "skip", 4) == 0;
}

// The number of such arguments; `first` is that of the first column. A column with such a name is a
// column.
int count_of_skip(const Trigger* trigger, int first, Relation table) {
  const int last = trigger->tgnargs - 1;
  if (last < first || find_exactly(table, trigger->tgargs[last]) != InvalidAttrNumber) return 0;
  if (is_skip(trigger->tgargs[last])) return 1;
  return last > first && strcmp(trigger->tgargs[last - 1], "conflicting") == 0 &&
                 strcmp(trigger->tgargs[last], "skip") == 0
             ? 2
             : 0;
}

// The first argument that names a column of the key.
int first_column_argument(TriggerKind kind) {
  return kind == TriggerKind::mark || kind == TriggerKind::divert ? 2 : 1;
}

// Did the text name the column of the table before it was renamed? As find_column() reads it.
bool named_formerly(const char* text, Relation table, NewName column) {
  if (strcmp(text, column.former) == 0) return true;
  List* parts = NIL;
  return (strcmp(text, column.name) == 0 || find_exactly(table, text) == InvalidAttrNumber) &&
         SplitIdentifierString(pstrdup(text), '.', &parts) && list_length(parts) == 1 &&
         strcmp(static_cast<char*>(linitial(parts)), column.former) == 0;
}

char* list_columns(const FilterRelation* filter) {
  TextBuffer list;
  for (int i = 0; i < filter->column_count; ++i)
    appendStringInfo(&list, "%s%s", i ? ", " : "", filter->columns[i].name);
  return list.data;
}

}  // namespace

void parse_name(const char* text, const char* what, const char* example, char** schema,
                char** name) {
  List* parts = NIL;
  List* strings = NIL;
  if (!SplitIdentifierString(pstrdup(text), '.', &parts) || parts == NIL)
    ereport(ERROR, errcode(ERRCODE_INVALID_NAME),
            errmsg("\"%s\" is not the name of %s", text, what),
            errhint("Write it as in SQL, with double quotes where needed: %s.", example));
  for (auto* part : each<char>(parts)) strings = lappend(strings, makeString(part));
  DeconstructQualifiedName(strings, schema, name);
}

AttrNumber find_exactly(Relation table, const char* name) {
  for (int i = 0; i < RelationGetNumberOfAttributes(table); ++i) {
    const Form_pg_attribute attribute = TupleDescAttr(RelationGetDescr(table), i);
    if (!attribute->attisdropped && strcmp(NameStr(attribute->attname), name) == 0)
      return attribute->attnum;
  }
  return InvalidAttrNumber;
}

void raise_wrong_event(const Trigger* trigger, TriggerKind kind, Relation table) {
  ereport(
      ERROR, errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
      errmsg("trigger \"%s\" of table \"%s\" must be BEFORE INSERT FOR EACH ROW, and nothing else",
             trigger->tgname, RelationGetRelationName(table)),
      errdetail("%s judges rows one by one, before they are inserted.", function_name(kind)),
      errhint("CREATE TRIGGER zz_... BEFORE INSERT ON %s FOR EACH ROW EXECUTE FUNCTION %s(...);",
              quote_identifier(RelationGetRelationName(table)), function_name(kind)));
}

DeclaredTrigger find_declared(const Trigger* trigger, Relation table) {
  DeclaredTrigger declared = {};
  declared.trigger = trigger->tgoid;
  declared.table = RelationGetRelid(table);
  declared.binding = {trigger->tgconstrrelid, trigger->tgconstrindid};
  if (trigger->tgisclone || !OidIsValid(declared.binding.filter))
    for (TriggerRow row = {};; declared.trigger = row.parent) {
      if (!read_trigger_row(declared.trigger, &row)) raise_dropped(trigger, table);
      declared.table = row.table;
      declared.binding = row.binding;
      if (!OidIsValid(row.parent)) break;
    }
  const auto read = [&](const FormData_pg_class& row, HeapTuple) {
    declared.schema = row.relnamespace;
    declared.owner = row.relowner;
    declared.table_name =
        quote_qualified_identifier(get_namespace_name(row.relnamespace), NameStr(row.relname));
  };
  if (!read_catalog<FormData_pg_class>(RELOID, declared.table, read))
    ereport(ERROR, errcode(ERRCODE_UNDEFINED_TABLE),
            errmsg("the table of trigger \"%s\" does not exist", trigger->tgname));
  declared.function_schema =
      read_field(PROCOID, trigger->tgfoid, &FormData_pg_proc::pronamespace, InvalidOid);
  return declared;
}

Oid lock_filter(const Trigger* trigger, TriggerKind kind, const DeclaredTrigger* declared,
                LOCKMODE lockmode, int missing_right) {
  if (!OidIsValid(declared->binding.filter))
    return lock_named_filter(trigger, kind, declared, lockmode, missing_right);
  if (!check_filter(declared->binding.filter, declared, needed_rights(trigger->tgtype, kind),
                    missing_right))
    return InvalidOid;
  LockRelationOid(declared->binding.filter, lockmode);
  return declared->binding.filter;
}

Oid find_filter(const Trigger* trigger, TriggerKind kind, const DeclaredTrigger* declared) {
  const Oid relid = OidIsValid(declared->binding.filter)
                        ? declared->binding.filter
                        : look_up_argument(trigger, kind, declared);
  return OidIsValid(relid) && is_filter(relid) ? relid : InvalidOid;
}

TriggerPlan* make_plan(const Trigger* trigger, TriggerKind kind, Relation table,
                       const FilterRelation* filter) {
  auto* plan = allocate_zeros<TriggerPlan>();
  if (kind == TriggerKind::mark) plan->mark = mark_column(trigger, table);
  const int first = first_column_argument(kind);
  const int skip = judges(kind) ? count_of_skip(trigger, first, table) : 0;
  const int given = Max(trigger->tgnargs - first - skip, 0);
  plan->skips_conflicts = skip > 0;
  if (given != 0 && given != filter->column_count)
    ereport(ERROR, errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
            errmsg("trigger \"%s\" names %d %s for the %d of filter \"%s\"", trigger->tgname, given,
                   given == 1 ? "column" : "columns", filter->column_count, filter->name),
            errdetail("The columns of the filter are: %s.", list_columns(filter)),
            errhint("Name a column of table \"%s\" for each of them, or none if they have the same "
                    "names.",
                    RelationGetRelationName(table)));
  plan->count = filter->column_count;
  plan->inputs = allocate_zeros<KeyInput>(plan->count);
  for (int i = 0; i < plan->count; ++i) {
    KeyInput* input = &plan->inputs[i];
    input->column = &filter->columns[i];
    const AttrNumber attnum =
        given ? named_column(trigger, first + i, table) : namesake(input->column, table, filter);
    input->source = attnum - 1;
    const Form_pg_attribute attribute = TupleDescAttr(RelationGetDescr(table), attnum - 1);
    // An AFTER trigger sees what is stored.
    if (judges(kind) || attribute->attgenerated != ATTRIBUTE_GENERATED_STORED)
      check_not_generated(attribute, table, true);
    if (attnum == plan->mark)
      ereport(ERROR, errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
              errmsg("column \"%s\" of table \"%s\" cannot be part of the key and its mark",
                     NameStr(attribute->attname), RelationGetRelationName(table)),
              errhint("Mark another column, or leave this one out of the key."));
    input->coercion =
        make_coercion(attribute->atttypid, input->column, filter,
                      psprintf("column \"%s\" of table \"%s\"", NameStr(attribute->attname),
                               RelationGetRelationName(table)),
                      attribute->atttypmod);
  }
  return plan;
}

List* arguments_with_column(const Trigger* trigger, TriggerKind kind, Relation table,
                            const FilterRelation* filter, NewName column) {
  const int first = first_column_argument(kind);
  const int skip = judges(kind) ? count_of_skip(trigger, first, table) : 0;
  const int given = Max(trigger->tgnargs - first - skip, 0);
  if (trigger->tgnargs < first || (given != 0 && given != filter->column_count)) return NIL;
  bool differs = false, namesakes = true;
  const auto follow = [&](const char* text, bool named) {
    differs |= named;
    return const_cast<char*>(named ? column.name : text);
  };
  const auto argument = [&](int i) {
    return follow(trigger->tgargs[i], named_formerly(trigger->tgargs[i], table, column));
  };
  List *arguments = NIL, *columns = NIL;
  for (int i = 0; i < first; ++i)
    arguments =
        lappend(arguments, kind == TriggerKind::mark && i > 0 ? argument(i) : trigger->tgargs[i]);
  for (int i = 0; i < filter->column_count; ++i) {
    const char* its_name = filter->columns[i].name;
    columns = lappend(columns, given ? argument(first + i)
                                     : follow(its_name, strcmp(its_name, column.former) == 0));
    namesakes &= strcmp(static_cast<char*>(llast(columns)), its_name) == 0;
  }
  if (!differs) return NIL;
  if (!namesakes) arguments = list_concat(arguments, columns);
  for (int i = first + given; i < trigger->tgnargs; ++i)
    arguments = lappend(arguments, trigger->tgargs[i]);
  return arguments;
}

// ---- rights -------------------------------------------------------------------------------------

namespace {

bool has_usage(Oid relation, Oid owner) {
  const Oid schema = get_rel_namespace(relation);
  return OidIsValid(schema) && SF_SCHEMA_ACLCHECK(schema, owner, ACL_USAGE) == ACLCHECK_OK;
}

bool has_rights_on(Oid relation, Oid owner, AclMode rights) {
  return pg_class_aclmask(relation, owner, rights, ACLMASK_ALL) == rights;
}

const char* list_rights(AclMode rights) {
  if (rights == ACL_TRUNCATE) return "TRUNCATE";
  if (rights == ACL_DELETE) return "DELETE";
  return (rights & ACL_DELETE) != 0 ? "INSERT, DELETE" : "INSERT";
}

void report_missing_usage(Oid relation, TableOwner owner, int level) {
  const char* schema = get_namespace_name(get_rel_namespace(relation));
  const char* role = name_of_role(owner.role);
  if (schema == nullptr) schema = "?";
  ereport(
      level, errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
      errmsg("permission denied for schema \"%s\"", schema),
      errdetail("The owner of table %s, role \"%s\", needs USAGE on the schema of \"%s\".",
                owner.table_name, role, get_rel_name(relation)),
      errhint("GRANT USAGE ON SCHEMA %s TO %s;", quote_identifier(schema), quote_identifier(role)));
}

void report_missing_right(Oid relation, TableOwner owner, AclMode rights, int level) {
  const char* name = get_rel_name(relation);
  const char* role = name_of_role(owner.role);
  const char* needed = list_rights(rights);
  const char* qualified = qualified_name(relation);
  if (is_filter(relation))
    ereport(level, errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
            errmsg("permission denied for filter \"%s\"", name),
            errdetail("The owner of table %s, role \"%s\", needs %s on the filter.",
                      owner.table_name, role, needed),
            errhint("GRANT %s ON %s TO %s;", needed, qualified, quote_identifier(role)));
  else
    ereport(
        level, errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
        errmsg("permission denied for table \"%s\"", name),
        errdetail("The owner of table %s, role \"%s\", needs INSERT on the table that repeats are "
                  "diverted to.",
                  owner.table_name, role),
        errhint("GRANT %s ON %s TO %s;", needed, qualified, quote_identifier(role)));
}

}  // namespace

AclMode needed_rights(int16 type, TriggerKind kind) {
  if (judges(kind)) return ACL_INSERT;
  if (TRIGGER_FOR_TRUNCATE(type)) return ACL_TRUNCATE;
  return TRIGGER_FOR_UPDATE(type) ? ACL_INSERT | ACL_DELETE : ACL_DELETE;
}

bool has_rights(Oid relation, Oid owner, AclMode rights) {
  return has_rights_on(relation, owner, rights) && has_usage(relation, owner);
}

bool check_rights(Oid relation, TableOwner owner, AclMode rights, int level) {
  if (!has_rights_on(relation, owner.role, rights)) {
    report_missing_right(relation, owner, rights, level);
    return false;
  }
  if (has_usage(relation, owner.role)) return true;
  report_missing_usage(relation, owner, level);
  return false;
}

bool has_all_rights(const TriggerRow* row, TriggerKind kind) {
  const Oid owner = owner_of(row->table);
  if (!OidIsValid(owner)) return false;
  const TriggerBinding& binding = row->binding;
  return (!OidIsValid(binding.filter) ||
          has_rights(binding.filter, owner, needed_rights(row->type, kind))) &&
         (!OidIsValid(binding.target) || has_rights(binding.target, owner, ACL_INSERT));
}

bool owns_both(Oid relation, Oid table) {
  const Oid owner = owner_of(relation), other = owner_of(table);
  return OidIsValid(owner) && OidIsValid(other) && is_member_of_role_nosuper(owner, other);
}

}  // namespace streamfilter::pg
