#include "pg/server/postgres.hpp"

extern "C" {
#include "catalog/namespace.h"
#include "commands/extension.h"
#include "nodes/parsenodes.h"
}

#include "pg/ddl/heap_guard.hpp"
#include "pg/storage/state_heaps.hpp"

namespace streamfilter::pg {
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
  ListCell* cell;
  foreach (cell, statement->cmds)
    if (!is_harmless(castNode(AlterTableCmd, lfirst(cell)))) return false;
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
          ? errhint("ALTER EXTENSION streamfilter SET SCHEMA moves what users call; this stays.")
          : errhint("streamfilter_forget_saved(filter) deletes what is saved of a filter; "
                    "VACUUM FULL gives its room back."));
}

}  // namespace streamfilter::pg
