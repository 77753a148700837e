// Hooks keep a stack of running queries and utility statements (COPY inserts without a query). The
// executor copies a table's triggers for each target of each statement, so the address of the
// firing trigger identifies the target, and the target its ModifyTable node.
#include "pg/server/postgres.hpp"

extern "C" {
#include "access/table.h"
#include "catalog/namespace.h"
#include "catalog/pg_trigger.h"
#include "executor/execdesc.h"
#include "lib/stringinfo.h"
#include "nodes/execnodes.h"
#include "nodes/nodeFuncs.h"
#include "nodes/parsenodes.h"
#include "parser/parsetree.h"
#include "replication/logicalworker.h"
#include "tcop/pquery.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
}

#include "core/kind/kind_registry.hpp"
#include "pg/catalog/lookup.hpp"
#include "pg/handle/judged_report.hpp"
#include "pg/handle/tree.hpp"
#include "pg/server/settings.hpp"
#include "pg/transaction/transaction_changes.hpp"
#include "pg/trigger/row_source.hpp"
#include "pg/trigger/trigger_definition.hpp"

namespace streamfilter::pg {

uint64 running_statement = 0;
uint64 running_query = 0;

namespace {

// ---- keys that leave ----------------------------------------------------------------------------

// Deleted rows leave their keys in the filter unless a trigger forgets them, so the same rows are
// discarded when they return. A NOTICE says so once per session and filter.

// Filters that this session has been told about, and tables whose rows have left.
List* told = NIL;

void note_told(Oid table, Oid filter) {
  const MemoryContext caller = MemoryContextSwitchTo(TopMemoryContext);
  told = list_append_unique_oid(list_append_unique_oid(told, table), filter);
  MemoryContextSwitchTo(caller);
}

bool drops_repeats(TriggerKind kind) {
  return kind == TriggerKind::discard || kind == TriggerKind::divert;
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
    if (drops_repeats(kind)) found = trigger;
  }
  return found;
}

// Arguments of streamfilter_forget for the hint.
const char* arguments_of(const Trigger* trigger) {
  StringInfoData list;
  initStringInfo(&list);
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
const char* remedy(const Trigger* trigger, const TriggerOrigin* origin, int16 event) {
  const Oid filter = origin->binding.filter;
  if (event == TRIGGER_TYPE_TRUNCATE) return psprintf(": TRUNCATE %s;", qualified_name(filter));
  Fault fault;
  const FilterRelation* relation = show_filter_relation(filter, fault);
  if (relation == nullptr || find_ops(relation->definition.parameters.kind)->erase == nullptr)
    return "";
  return psprintf(
      ": CREATE TRIGGER forget AFTER DELETE OR UPDATE ON %s FOR EACH ROW EXECUTE FUNCTION "
      "streamfilter_forget(%s);",
      origin->table_name, arguments_of(trigger));
}

void hint(Relation table, int16 event, const List* truncated) {
  if (table->trigdesc == nullptr || !table->trigdesc->trig_insert_before_row ||
      list_member_oid(told, RelationGetRelid(table)))
    return;
  const TriggerDesc* triggers = CopyTriggerDesc(table->trigdesc);
  const Trigger* trigger = find_unfollowed(triggers, event);
  if (trigger == nullptr) return;
  const TriggerOrigin origin = find_origin(trigger, table);
  const Oid filter = origin.binding.filter;
  if (get_rel_name(filter) == nullptr || list_member_oid(truncated, filter)) return;
  const bool is_told = list_member_oid(told, filter);
  note_told(RelationGetRelid(table), filter);
  if (!is_told)
    ereport(NOTICE, errmsg("filter \"%s\" still knows the rows that have left table \"%s\"%s",
                           get_rel_name(filter), RelationGetRelationName(table),
                           remedy(trigger, &origin, event)));
}

// Call after a query, and after a TRUNCATE.
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

// ---- where rows come from -----------------------------------------------------------------------

const Frame* top = nullptr;
uint64 statements = 0, queries = 0;

// The query that ran last. Its finish phase still belongs to the same statement.
Frame last = {};

// The statement that rules have rewritten to several queries, and how many have run.
struct {
  Portal portal;
  const List* queries;
  TimestampTz start;
  int place;
  uint64 number;
} multiplied = {};

int place_in_portal(const QueryDesc* query) {
  if (ActivePortal == nullptr || ActivePortal->strategy != PORTAL_MULTI_QUERY) return -1;
  for (int i = 0; i < list_length(ActivePortal->stmts); ++i)
    if (list_nth(ActivePortal->stmts, i) == query->plannedstmt) return i;
  return -1;
}

uint64 statement_number(const QueryDesc* query) {
  const int place = place_in_portal(query);
  if (place < 0) return ++statements;
  // The queries run in order, so the first query of another run is not mistaken for the next one of
  // this run.
  const bool goes_on = multiplied.portal == ActivePortal &&
                       multiplied.queries == ActivePortal->stmts &&
                       multiplied.start == ActivePortal->creation_time && place > multiplied.place;
  multiplied = {ActivePortal, ActivePortal->stmts, ActivePortal->creation_time, place,
                goes_on ? multiplied.number : ++statements};
  return multiplied.number;
}

// Not inlined: otherwise compilers warn about variables of PG_TRY.
pg_noinline void push(const Frame* frame) {
  top = frame;
  running_statement = frame->number;
  running_query = frame->query_number;
}

pg_noinline void pop(const Frame& frame) {
  last = frame;
  top = frame.below;
  running_statement = top == nullptr ? 0 : top->number;
  running_query = top == nullptr ? 0 : top->query_number;
}

// Runs no other statement, and fires no trigger.
bool is_plain(const Node* statement) {
  return IsA(statement, TransactionStmt) || IsA(statement, VariableSetStmt) ||
         IsA(statement, VariableShowStmt);
}

// ---- what streamfilter.report says after a top-level statement

void begin_statement_report() {
  if (likely(!report && !collects_judged_rows)) return;
  flush_counters();  // counts of earlier statements
  collect_judged_rows(report);
}

// May raise what sending a message can raise.
void end_statement_report() {
  if (likely(!collects_judged_rows)) return;
  // COMMIT judges nothing, and leaves no transaction for name look-ups.
  if (IsTransactionState()) {
    flush_counters();
    for (int i = 0; i < judged_filters(); ++i) {
      const JudgedRows& rows = judged_by(i);
      const char* name = get_rel_name(rows.filter);
      if (const char* text = describe_judged_rows(rows); text != nullptr && name != nullptr)
        ereport(NOTICE, errmsg("filter \"%s\": %s", name, text));
    }
  }
  collect_judged_rows(false);
}

// Runs the statement with its frame on the stack.
template <typename Call>
void go_on_in(const Frame& frame, Call* call) {
  if (top == nullptr) begin_statement_report();
  push(&frame);
  PG_TRY();
  { call->go_on(); }
  PG_FINALLY();
  { pop(frame); }
  PG_END_TRY();
  publish_counts();
}

}  // namespace

void track_run(RunCall* call) {
  auto* query = call->get<QueryDesc*>();
  const Frame frame = {query, T_Query, nullptr, statement_number(query), ++queries, top};
  go_on_in(frame, call);
  hint_after_delete(query);
  if (top == nullptr) end_statement_report();
}

// Data-modifying CTEs whose output nobody reads run here.
void track_finish(FinishCall* call) {
  auto* query = call->get<QueryDesc*>();
  const bool goes_on = query == last.query;
  const Frame frame = {query,
                       T_Query,
                       nullptr,
                       goes_on ? last.number : ++statements,
                       goes_on ? last.query_number : ++queries,
                       top};
  go_on_in(frame, call);
  last = {};  // another query may get the same address
  if (top == nullptr) end_statement_report();
}

void track_utility(UtilityCall* call) {
  Node* statement = statement_of(call);
  if (is_plain(statement)) return call->go_on();
  const auto* truncate = IsA(statement, TruncateStmt) ? castNode(TruncateStmt, statement) : nullptr;
  Copied copied = {};
  copied.command = GetCurrentCommandId(false);
  if (const auto* copy = IsA(statement, CopyStmt) ? castNode(CopyStmt, statement) : nullptr) {
    copied.pauses = copy->filename == nullptr || copy->is_program;
    copied.chooses = copy->whereClause != nullptr;
  }
  const Frame frame = {
      nullptr,      nodeTag(statement), IsA(statement, CopyStmt) ? &copied : nullptr,
      ++statements, ++queries,          top};
  go_on_in(frame, call);
  if (auto* completion = call->get<QueryCompletion*>()) completion->nprocessed += copied.rows;
  if (truncate != nullptr) hint_after_truncate(truncate);
  if (top == nullptr) end_statement_report();
}

// ---- which node inserts ------------------------------------------------------------------------

namespace {

bool has_trigger(const ResultRelInfo* target, const Trigger* trigger) {
  if (target == nullptr || target->ri_TrigDesc == nullptr) return false;
  const auto first = reinterpret_cast<uintptr_t>(target->ri_TrigDesc->triggers);
  const auto address = reinterpret_cast<uintptr_t>(trigger);
  return address >= first && address < first + sizeof(Trigger) * target->ri_TrigDesc->numtriggers;
}

// The target, by tuple routing, that owns this copy of the trigger; nullptr if none does.
const ResultRelInfo* find_routed(const EState* estate, const Trigger* trigger) {
  const List* routed = estate->es_tuple_routing_result_relations;
  for (int i = list_length(routed) - 1; i >= 0; --i) {  // the newest target is the likeliest
    const auto* target = static_cast<const ResultRelInfo*>(list_nth(routed, i));
    if (has_trigger(target, trigger)) return target;
  }
  return nullptr;
}

struct TargetSearch {
  const Trigger* trigger;       // nullptr: any node that does more than a plain INSERT
  const ResultRelInfo* routed;  // where the trigger was found, if in a routed target
  const ModifyTableState* found;
};

bool is_plain_insert(const ModifyTableState* node) {
  return node->operation == CMD_INSERT &&
         reinterpret_cast<const ModifyTable*>(node->ps.plan)->onConflictAction == ONCONFLICT_NONE;
}

bool fits(const TargetSearch* search, const ModifyTableState* node) {
  if (search->trigger == nullptr) return node->operation != CMD_DELETE && !is_plain_insert(node);
  if (search->routed != nullptr && search->routed->ri_RootResultRelInfo == node->rootResultRelInfo)
    return true;
  if (has_trigger(node->rootResultRelInfo, search->trigger)) return true;
  for (int i = 0; i < node->mt_nrels; ++i)
    if (has_trigger(&node->resultRelInfo[i], search->trigger)) return true;
  return false;
}

bool search_tree(PlanState* state, void* context) {
  auto* search = static_cast<TargetSearch*>(context);
  if (state == nullptr) return false;
  if (IsA(state, ModifyTableState)) {
    const auto* node = reinterpret_cast<const ModifyTableState*>(state);
    if (fits(search, node)) {
      search->found = node;
      return true;
    }
  }
  return SF_WALK_PLANSTATE(state, search_tree, context);
}

// Usually the root of the plan is the node, sometimes below a CustomScan; CTEs are listed.
const ModifyTableState* search_query(const QueryDesc* query, TargetSearch* search) {
  if (query->estate == nullptr || query->planstate == nullptr) return nullptr;
  if (search->trigger != nullptr) search->routed = find_routed(query->estate, search->trigger);
  if (IsA(query->planstate, ModifyTableState)) {
    const auto* node = reinterpret_cast<const ModifyTableState*>(query->planstate);
    if (fits(search, node)) return node;
  }
  const List* others = query->estate->es_auxmodifytables;
  for (int i = 0; i < list_length(others); ++i) {
    const auto* node = static_cast<const ModifyTableState*>(list_nth(others, i));
    if (fits(search, node)) return node;
  }
  search->found = nullptr;
  search_tree(query->planstate, search);
  return search->found;
}

// The node's target that owns this copy of the trigger; nullptr if it has none.
const ResultRelInfo* target_with(const ModifyTableState* node, const TargetSearch* search) {
  if (search->routed != nullptr) return search->routed;
  if (has_trigger(node->rootResultRelInfo, search->trigger)) return node->rootResultRelInfo;
  for (int i = 0; i < node->mt_nrels; ++i)
    if (has_trigger(&node->resultRelInfo[i], search->trigger)) return &node->resultRelInfo[i];
  return nullptr;
}

RowSource source_of_insert(const ModifyTableState* node, uint64 statement,
                           const TargetSearch* search) {
  const ResultRelInfo* target = target_with(node, search);
  switch (reinterpret_cast<const ModifyTable*>(node->ps.plan)->onConflictAction) {
    case ONCONFLICT_NONE: return {InsertCause::inserted, statement, nullptr, false, target};
    case ONCONFLICT_NOTHING:
      if (target != nullptr)
        return {InsertCause::unless_conflict, statement, nullptr, false, target};
      break;
    default: break;
  }
  return {InsertCause::on_conflict, statement, nullptr};
}

RowSource source_of_node(const ModifyTableState* node, uint64 statement,
                         const TargetSearch* search) {
  switch (node->operation) {
    case CMD_INSERT: return source_of_insert(node, statement, search);
    case CMD_UPDATE: return {InsertCause::moved, statement, nullptr};
    case CMD_MERGE: break;
    default: return {InsertCause::unclear_executor, statement, nullptr};
  }
  if (!(node->mt_merge_subcommands & MERGE_UPDATE) || !is_partitioned(node->rootResultRelInfo))
    return {InsertCause::inserted, statement, nullptr};
  if (!(node->mt_merge_subcommands & MERGE_INSERT)) return {InsertCause::moved, statement, nullptr};
  return {InsertCause::unclear_executor, statement, node};
}

}  // namespace

const Frame* innermost_frame() { return top; }

bool is_within_statement() { return top != nullptr && top->below != nullptr; }

RowSource find_row_source(const TriggerData* call) {
  TargetSearch search = {call->tg_trigger, nullptr, nullptr};
  for (const Frame* frame = top; frame != nullptr; frame = frame->below) {
    if (frame->query == nullptr) continue;
    if (const ModifyTableState* node = search_query(frame->query, &search))
      return source_of_node(node, frame->number, &search);
  }
  // COPY, replication and other extensions keep their targets to themselves.
  if (top != nullptr && top->copy != nullptr)
    return {InsertCause::inserted, running_statement, nullptr, true};
  if (top != nullptr && top->query != nullptr) {
    TargetSearch suspect = {nullptr, nullptr, nullptr};
    const bool plain = search_query(top->query, &suspect) == nullptr;
    return {plain ? InsertCause::inserted : InsertCause::unclear_executor, running_statement,
            nullptr, true};
  }
  // Only rows of partitions can move.
  if (!call->tg_relation->rd_rel->relispartition)
    return {InsertCause::inserted, running_statement, nullptr};
  return {top == nullptr && IsLogicalWorker() ? InsertCause::unclear_replication
                                              : InsertCause::unclear_executor,
          running_statement, nullptr};
}

namespace {

bool is_moved(const ModifyTableState* node) {
  if (node->operation == CMD_UPDATE) return true;
  return node->operation == CMD_MERGE && (node->mt_merge_subcommands & MERGE_UPDATE) &&
         !(node->mt_merge_subcommands & MERGE_DELETE);
}

bool is_updated(ResultRelInfo* target, EState* estate, const KeyInput* key, int count) {
  const Bitmapset* columns = ExecGetUpdatedCols(target, estate);
  for (int i = 0; i < count; ++i)
    if (key[i].column->role == Role::key &&
        bms_is_member(key[i].source + 1 - FirstLowInvalidHeapAttributeNumber, columns))
      return true;
  return false;
}

// The node's target for the relation; nullptr if there is none.
ResultRelInfo* target_of(const ModifyTableState* node, Oid relation) {
  for (int i = 0; i < node->mt_nrels; ++i)
    if (RelationGetRelid(node->resultRelInfo[i].ri_RelationDesc) == relation)
      return &node->resultRelInfo[i];
  return nullptr;
}

// Effect of a node on rows of a relation.
enum class Effect : uint8 { none, moves, deletes };

Effect effect_of(const ModifyTableState* node, Oid relation, const KeyInput* key, int count) {
  ResultRelInfo* target = target_of(node, relation);
  if (target == nullptr || node->operation == CMD_INSERT) return Effect::none;
  return is_moved(node) && !is_updated(target, node->ps.state, key, count) ? Effect::moves
                                                                           : Effect::deletes;
}

// Effect of a query: moves, if all of its nodes only move rows; otherwise deletes.
Effect effect_of(const QueryDesc* query, Oid relation, const KeyInput* key, int count) {
  if (query->estate == nullptr || query->planstate == nullptr) return Effect::none;
  Effect effect = Effect::none;
  if (IsA(query->planstate, ModifyTableState))
    effect = effect_of(reinterpret_cast<const ModifyTableState*>(query->planstate), relation, key,
                       count);
  const List* others = query->estate->es_auxmodifytables;
  for (int i = 0; i < list_length(others); ++i)
    effect = Max(effect, effect_of(static_cast<const ModifyTableState*>(list_nth(others, i)),
                                   relation, key, count));
  return effect;
}

}  // namespace

// Looks up by relation: an AFTER trigger need not be the target's own copy.
DeleteCause find_delete_cause(const TriggerData* call, const KeyInput* key, int count) {
  if (!call->tg_relation->rd_rel->relispartition) return DeleteCause::deleted;
  const Oid relation = RelationGetRelid(call->tg_relation);
  for (const Frame* frame = top; frame != nullptr; frame = frame->below) {
    if (frame->query == nullptr) continue;
    const Effect effect = effect_of(frame->query, relation, key, count);
    if (effect != Effect::none)
      return effect == Effect::moves ? DeleteCause::moved : DeleteCause::deleted;
  }
  return DeleteCause::deleted;
}

void** kept_for_copy() {
  return top == nullptr || top->copy == nullptr ? nullptr : &top->copy->kept;
}

CommandId command_of_copy() { return top->copy->command; }

void copy_never_pauses() { top->copy->pauses = false; }

void count_copied(uint64 rows) { top->copy->rows += rows; }

}  // namespace streamfilter::pg
