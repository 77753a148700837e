#include "pg/server/postgres.hpp"

extern "C" {
#include "catalog/pg_depend.h"
#include "catalog/pg_extension.h"
#include "commands/alter.h"
#include "commands/extension.h"
}

#include "pg/ddl/own_objects.hpp"
#include "pg/storage/state_heaps.hpp"

namespace streamfilter::pg {
namespace {

constexpr char kExtension[] = "streamfilter";

bool moves_extension(const Node* statement) {
  if (!IsA(statement, AlterObjectSchemaStmt)) return false;
  const auto* move = reinterpret_cast<const AlterObjectSchemaStmt*>(statement);
  // PostgreSQL refuses others.
  return move->objectType == OBJECT_EXTENSION && strcmp(strVal(move->object), kExtension) == 0 &&
         superuser();
}

Oid schema_of_member(const FormData_pg_depend* member) {
  if (member->deptype != DEPENDENCY_EXTENSION) return InvalidOid;
  if (member->classid == ProcedureRelationId) return get_func_namespace(member->objid);
  if (member->classid == RelationRelationId) return get_rel_namespace(member->objid);
  return InvalidOid;
}

// The internals are in the handler's schema.
struct Members {
  Oid internal_schema;
  Oid schema;       // of the others; InvalidOid: there are none
  List* functions;  // of the internals
  List* relations;
};

void take_member(Members* members, const FormData_pg_depend* member) {
  const Oid schema = schema_of_member(member);
  if (!OidIsValid(schema)) return;
  if (schema != members->internal_schema)
    members->schema = schema;
  else if (member->classid == ProcedureRelationId)
    members->functions = lappend_oid(members->functions, member->objid);
  else
    members->relations = lappend_oid(members->relations, member->objid);
}

void find_members(Members* members) {
  scan_catalog<FormData_pg_depend>(
      DependRelationId, DependReferenceIndexId,
      {{Anum_pg_depend_refclassid, ExtensionRelationId},
       {Anum_pg_depend_refobjid, get_extension_oid(kExtension, true)}},
      [=](const FormData_pg_depend& row, HeapTuple, TupleDesc) { take_member(members, &row); });
}

void move_internals(const Members* members, Oid schema) {
  ObjectAddresses* moved = new_object_addresses();
  for (const Oid function : each_oid(members->functions))
    AlterObjectNamespace_oid(ProcedureRelationId, function, schema, moved);
  for (const Oid relation : each_oid(members->relations))
    AlterObjectNamespace_oid(RelationRelationId, relation, schema, moved);
  free_object_addresses(moved);
  CommandCounterIncrement();
}

}  // namespace

void move_extension(UtilityCall* call) {
  Members members = {};
  if (moves_extension(statement_of(call))) {
    members.internal_schema = schema_of_internals();
    find_members(&members);
  }
  if (!OidIsValid(members.schema)) {
    call->go_on();
    return;
  }
  move_internals(&members, members.schema);
  call->go_on();
  CommandCounterIncrement();
  move_internals(&members, members.internal_schema);
}

// ---- heaps of saved state -----------------------------------------------------------------------

namespace {

// Effect of a statement on a relation; nullptr: none that matters here.
struct Intent {
  const RangeVar* relation;
  const char* what;  // a message with the relation's name
};

constexpr char kMove[] = gettext_noop("cannot rename or move \"%s\"");
constexpr char kAlter[] = gettext_noop("cannot alter \"%s\"");

// Is the ALTER of a materialized view harmless? Rows and columns must stay as they are.
bool is_harmless(const AlterTableCmd* command) {
  switch (command->subtype) {
    case AT_ChangeOwner:
    case AT_SetTableSpace:
    case AT_SetRelOptions:
    case AT_ResetRelOptions:
    case AT_ReplaceRelOptions:
    case AT_SetStatistics: return true;
    default: return false;
  }
}

bool is_harmless(const AlterTableStmt* statement) {
  for (auto* command : each<AlterTableCmd>(statement->cmds))
    if (!is_harmless(command)) return false;
  return true;
}

// After ALTER EXTENSION … DROP MATERIALIZED VIEW it could be dropped.
Intent intent_of(const AlterExtensionContentsStmt* statement) {
  if (statement->action > 0 || statement->objtype != OBJECT_MATVIEW) return {};
  return {makeRangeVarFromNameList(castNode(List, statement->object)),
          gettext_noop("cannot remove \"%s\" from its extension")};
}

Intent intent_of(Node* node) {
  switch (nodeTag(node)) {
    case T_RenameStmt: return {castNode(RenameStmt, node)->relation, kMove};
    case T_AlterObjectSchemaStmt: return {castNode(AlterObjectSchemaStmt, node)->relation, kMove};
    case T_AlterObjectDependsStmt:
      return {castNode(AlterObjectDependsStmt, node)->relation, kAlter};
    case T_AlterExtensionContentsStmt: return intent_of(castNode(AlterExtensionContentsStmt, node));
    case T_RefreshMatViewStmt:
      return {castNode(RefreshMatViewStmt, node)->relation, gettext_noop("cannot refresh \"%s\"")};
    case SF_CLUSTER_TAG:
      return {SF_CLUSTERED_RELATION(node), gettext_noop("cannot cluster \"%s\"")};
    // Rows are written without the executor, which would fill the index.
    case T_IndexStmt:
      return {castNode(IndexStmt, node)->relation,
              gettext_noop("cannot create an index on \"%s\"")};
    case T_RuleStmt:
      return {castNode(RuleStmt, node)->relation, gettext_noop("cannot create a rule on \"%s\"")};
    case T_AlterTableStmt: {
      const auto* statement = castNode(AlterTableStmt, node);
      if (is_harmless(statement)) return {};
      return {statement->relation, kAlter};
    }
    default: return {};
  }
}

// The extension's scripts and pg_upgrade make the heaps.
bool may_do_anything() { return creating_extension || IsBinaryUpgrade; }

}  // namespace

void guard_state_heaps(Node* statement) {
  const Intent intent = intent_of(statement);
  if (intent.relation == nullptr || may_do_anything()) return;
  const Oid relid = RangeVarGetRelid(intent.relation, NoLock, true);
  if (!OidIsValid(relid) || !is_state_table(relid)) return;
  ereport(
      ERROR, errcode(ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST),
      errmsg(intent.what, get_rel_name(relid)),
      errdetail("It holds what is saved of filters, and is found by its name."),
      intent.what == kMove
          ? errhint(
                "ALTER EXTENSION streamfilter SET SCHEMA ... moves what users call; this stays.")
          : errhint("streamfilter_forget_saved(filter) deletes what is saved of a filter; "
                    "VACUUM FULL gives its room back."));
}

}  // namespace streamfilter::pg
