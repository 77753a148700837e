// The executor copies a table's triggers for each target of each statement, so the address of the
// firing trigger identifies the target, and the target its ModifyTable node.
#include "pg/server/postgres.hpp"

extern "C" {
#include "replication/logicalworker.h"
}

#include "pg/trigger/row_source.hpp"

namespace streamfilter::pg {
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
  for (const auto* node : each<ModifyTableState>(query->estate->es_auxmodifytables))
    if (fits(search, node)) return node;
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
  const bool conflicts = !is_plain_insert(node);
  const ResultRelInfo* target = target_with(node, search);
  const InsertCause cause =
      conflicts && target == nullptr ? InsertCause::unclear_executor : InsertCause::inserted;
  return {cause, statement, nullptr, false, target, conflicts};
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

RowSource find_row_source(const TriggerData* call) {
  const Frame* top = innermost_frame();
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

bool moves_rows(const TriggerData* call) {
  TargetSearch search = {call->tg_trigger, nullptr, nullptr};
  const ModifyTableState* node = nullptr;
  for (const Frame* frame = innermost_frame(); frame != nullptr && node == nullptr;
       frame = frame->below)
    if (frame->query != nullptr) node = search_query(frame->query, &search);
  if (node == nullptr || node->operation != CMD_MERGE)
    return node != nullptr && node->operation == CMD_UPDATE;
  return (node->mt_merge_subcommands & (MERGE_UPDATE | MERGE_DELETE)) == MERGE_UPDATE;
}

}  // namespace streamfilter::pg
