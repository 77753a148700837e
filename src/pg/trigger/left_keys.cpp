#include "pg/server/postgres.hpp"

extern "C" {
#include "access/table.h"
#include "catalog/namespace.h"
#include "catalog/pg_trigger.h"
#include "nodes/execnodes.h"
#include "parser/parsetree.h"
}

#include "pg/trigger/left_keys.hpp"
#include "pg/trigger/trigger_definition.hpp"

namespace streamfilter::pg {
namespace {

bool is_told = false;

bool drops_repeats(TriggerKind kind) {
  return kind == TriggerKind::discard || kind == TriggerKind::divert;
}

// A trigger that drops rows by a filter; nullptr: none, or another one forgets.
const Trigger* find_unfollowed(const TriggerDesc* triggers, int16 event) {
  const Trigger* found = nullptr;
  for (int i = 0; i < triggers->numtriggers; ++i) {
    const Trigger* trigger = &triggers->triggers[i];
    TriggerKind kind;
    if (trigger->tgenabled == TRIGGER_DISABLED || !find_kind(trigger->tgfoid, &kind)) continue;
    if (kind == TriggerKind::forget && (trigger->tgtype & event) != 0) return nullptr;
    if (drops_repeats(kind)) found = trigger;
  }
  return found;
}

void hint(Relation table, int16 event, const List* truncated) {
  if (is_told || table->trigdesc == nullptr || !table->trigdesc->trig_insert_before_row) return;
  const TriggerDesc* triggers = CopyTriggerDesc(table->trigdesc);
  const Trigger* trigger = find_unfollowed(triggers, event);
  if (trigger == nullptr) return;
  const TriggerOrigin origin = find_origin(trigger, table);
  const char* filter = get_rel_name(origin.binding.filter);
  if (filter == nullptr || list_member_oid(truncated, origin.binding.filter)) return;
  is_told = true;
  ereport(
      NOTICE,
      errmsg("filter \"%s\" still knows the rows that have left table \"%s\"", filter,
             RelationGetRelationName(table)),
      errdetail("If they come again, trigger \"%s\" takes them for repeats.", trigger->tgname),
      event == TRIGGER_TYPE_TRUNCATE
          ? errhint("TRUNCATE the filter, too, or let a trigger do it: CREATE TRIGGER ... AFTER "
                    "TRUNCATE ON %s FOR EACH STATEMENT EXECUTE FUNCTION "
                    "streamfilter_forget(...).",
                    origin.table_name)
          : errhint("If the filter shall forget them: CREATE TRIGGER ... AFTER DELETE OR UPDATE "
                    "ON %s FOR EACH ROW EXECUTE FUNCTION streamfilter_forget(...).",
                    origin.table_name));
}

}  // namespace

void hint_after_delete(const QueryDesc* query) {
  if (likely(is_told || query->operation != CMD_DELETE) || query->estate->es_processed == 0) return;
  for (int i = -1; (i = SF_NEXT_RESULT_RELATION(query->plannedstmt, i)) > 0;) {
    const RangeTblEntry* entry = rt_fetch(i, query->plannedstmt->rtable);
    Relation table = table_open(entry->relid, AccessShareLock);  // pruned ones have none
    hint(table, TRIGGER_TYPE_DELETE, NIL);
    table_close(table, NoLock);
  }
}

void hint_after_truncate(const TruncateStmt* statement) {
  if (is_told) return;
  List* relids = NIL;
  ListCell* cell;
  foreach (cell, statement->relations)
    relids = lappend_oid(relids, RangeVarGetRelid(lfirst_node(RangeVar, cell), NoLock, true));
  foreach (cell, relids) {
    Relation table = OidIsValid(lfirst_oid(cell)) ? table_open(lfirst_oid(cell), NoLock) : nullptr;
    if (table == nullptr) continue;
    hint(table, TRIGGER_TYPE_TRUNCATE, relids);
    table_close(table, NoLock);
  }
}

}  // namespace streamfilter::pg
