// Deleted rows leave their keys in the filter unless a trigger forgets them, so the same rows are
// discarded when they return. A NOTICE says so once per session and filter.
#include "pg/server/postgres.hpp"

extern "C" {
#include "executor/execdesc.h"
}

#include "pg/binding/trigger_definition.hpp"
#include "pg/catalog/lookup.hpp"
#include "pg/citus/citus_nodes.hpp"
#include "pg/handle/asked_runs.hpp"
#include "pg/handle/client_pauses.hpp"
#include "pg/handle/filter_handle.hpp"
#include "pg/handle/statement.hpp"
#include "pg/handle/tree.hpp"
#include "pg/trigger/left_keys.hpp"

namespace streamfilter::pg {
namespace {

// Filters that this session has been told about, and tables whose rows have left.
List* told = NIL;

void note_told(Oid table, Oid filter) {
  const InContext context(TopMemoryContext);
  told = list_append_unique_oid(list_append_unique_oid(told, table), filter);
}

// A trigger that discards rows by a filter without a trigger that forgets; nullptr if there is
// none.
const Trigger* find_unfollowed(const TriggerDesc* triggers, int16 event) {
  const Trigger* found = nullptr;
  for (int i = 0; i < triggers->numtriggers; ++i) {
    const Trigger* trigger = &triggers->triggers[i];
    TriggerKind kind;
    if (trigger->tgenabled == TRIGGER_DISABLED || !find_kind(trigger->tgfoid, &kind)) continue;
    if (kind == TriggerKind::forget && (trigger->tgtype & event) != 0) return nullptr;
    if (kind == TriggerKind::discard || kind == TriggerKind::divert) found = trigger;
  }
  return found;
}

// Arguments of streamfilter_forget for the hint.
const char* arguments_of(const Trigger* trigger) {
  TextBuffer list;
  for (int i = 0; i < trigger->tgnargs; ++i) {
    TriggerKind kind;
    const bool is_target =
        i == 1 && find_kind(trigger->tgfoid, &kind) && kind == TriggerKind::divert;
    if (is_target || strncmp(trigger->tgargs[i], "conflicting", 11) == 0) continue;
    if (i > 0 && strcmp(trigger->tgargs[i - 1], "conflicting") == 0) continue;
    appendStringInfo(&list, "%s%s", i ? ", " : "", quote_literal_cstr(trigger->tgargs[i]));
  }
  return list.data;
}

// The statement to type; "" if none helps.
const char* remedy(const Trigger* trigger, const DeclaredTrigger* declared, int16 event) {
  const Oid filter = declared->binding.filter;
  if (event == TRIGGER_TYPE_TRUNCATE) return psprintf(": TRUNCATE %s;", qualified_name(filter));
  Fault fault;
  const FilterRelation* relation = show_filter_relation(filter, fault);
  if (relation == nullptr || find_ops(relation->definition.parameters.kind)->erase == nullptr)
    return "";
  return psprintf(
      ": CREATE TRIGGER forget AFTER DELETE OR UPDATE ON %s FOR EACH ROW EXECUTE FUNCTION "
      "streamfilter_forget(%s);",
      declared->table_name, arguments_of(trigger));
}

void hint(Relation table, int16 event, const List* truncated) {
  if (table->trigdesc == nullptr || !table->trigdesc->trig_insert_before_row ||
      list_member_oid(told, RelationGetRelid(table)))
    return;
  const TriggerDesc* triggers = CopyTriggerDesc(table->trigdesc);
  const Trigger* trigger = find_unfollowed(triggers, event);
  if (trigger == nullptr) return;
  const DeclaredTrigger declared = find_declared(trigger, table);
  const Oid filter = declared.binding.filter;
  if (get_rel_name(filter) == nullptr || list_member_oid(truncated, filter) ||
      has_truncated(filter_handle(filter)))
    return;
  const bool is_told = list_member_oid(told, filter);
  note_told(RelationGetRelid(table), filter);
  if (!is_told)
    ereport(NOTICE, errmsg("filter \"%s\" still knows the rows that have left table \"%s\"%s",
                           get_rel_name(filter), RelationGetRelationName(table),
                           remedy(trigger, &declared, event)));
}

void hint_after_delete(const QueryDesc* query) {
  if (likely(query->operation != CMD_DELETE) || query->estate->es_processed == 0) return;
  for (int i = -1; (i = SF_NEXT_RESULT_RELATION(query->plannedstmt, i)) > 0;) {
    const RangeTblEntry* entry = rt_fetch(i, query->plannedstmt->rtable);
    Relation table = try_table_open(entry->relid, AccessShareLock);
    if (table == nullptr) continue;  // pruned, not locked, and dropped since
    hint(table, TRIGGER_TYPE_DELETE, NIL);
    table_close(table, NoLock);
  }
}

void hint_after_truncate(const TruncateStmt* statement) {
  List* relids = NIL;
  for (auto* name : each<RangeVar>(statement->relations))
    relids = lappend_oid(relids, RangeVarGetRelid(name, NoLock, true));
  for (const Oid relid : each_oid(relids)) {
    Relation table = OidIsValid(relid) ? table_open(relid, NoLock) : nullptr;
    if (table == nullptr) continue;
    hint(table, TRIGGER_TYPE_TRUNCATE, relids);
    table_close(table, NoLock);
  }
}

}  // namespace

void run_query(RunCall* call) {
  prepare_to_write(call->get<QueryDesc*>());
  run_asker(call);
  hint_after_delete(call->get<QueryDesc*>());
  hand_over_behind_statement();
  end_tracked();
}

void run_utility(UtilityCall* call) {
  Node* statement = statement_of(call);
  track_utility(call);
  if (unlikely(IsA(statement, TruncateStmt)))
    hint_after_truncate(castNode(TruncateStmt, statement));
  hand_over_behind_statement();
  end_tracked();
}

}  // namespace streamfilter::pg
