// INSERT, COPY, DELETE and TRUNCATE, and the error of UPDATE. The executor has checked the rights.
//
// DELETE looks a key up like SELECT, and forgets it. A filter knows keys by their fingerprints:
// another key with an equal fingerprint is forgotten with it; and a key that only seems to be there
// is deleted, and counted, in place of that other key.
#include "pg/server/postgres.hpp"

extern "C" {
#include "nodes/pathnodes.h"
#include "optimizer/appendinfo.h"
}

#include "pg/catalog/lookup.hpp"
#include "pg/citus/citus_nodes.hpp"
#include "pg/ddl/ddl_checks.hpp"
#include "pg/fdw/fdw_handler.hpp"
#include "pg/fdw/fdw_modify.hpp"
#include "pg/handle/filter_keys.hpp"
#include "pg/storage/image.hpp"
#include "pg/trigger/judge_row.hpp"

namespace streamfilter::pg {
namespace {

// The junk column in which the plan of a DELETE passes the row that it has found.
constexpr char kRow[] = "wholerow";

// Rows of an INSERT that are tested together: some are prefetched while others are tested, or as
// many are sent to another server at once.
constexpr int kBatch = 256;
constexpr int kRemoteBatch = 512;
constexpr int kMaxBatch = kRemoteBatch;

struct ModifyState {
  MemoryContext row_memory;
  MemoryContext key_memory;  // context of the builder
  AttrNumber row;            // column of kRow in the plan of a DELETE
  KeyBuilder keys;
  KeyRoute::Way way;
  bool one_by_one;  // the query might notice batches
  TupleTableSlot* kept[kMaxBatch];
};

bool can_erase(const FilterRelation* relation) {
  return find_ops(relation->definition.parameters.kind)->erase != nullptr;
}

[[noreturn]] void raise_update(const FilterRelation* relation) {
  ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
          errmsg("filter \"%s\" cannot be updated", relation->name),
          errdetail("A filter remembers keys, not rows."), errhint("INSERT the new key."));
}

[[noreturn]] void raise_delete(const FilterRelation* relation) {
  const FilterOps* ops = find_ops(relation->definition.parameters.kind);
  char kinds[256];
  const bool some = list_kinds([](const FilterOps& other) { return other.erase != nullptr; }, kinds,
                               sizeof kinds) > 0;
  ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
          errmsg("filter \"%s\" cannot forget single keys", relation->name),
          some ? errdetail("Its kind, %s, cannot; these kinds can: %s.", ops->name, kinds)
               : errdetail("Its kind, %s, cannot, nor can any other kind.", ops->name),
          errhint("TRUNCATE forgets all keys."));
}

// The executor has converted the values to the filter's columns.
KeyBuilder read_rows_of(FilterHandle* filter) {
  const FilterRelation* relation = filter->relation;
  auto* inputs = allocate<KeyInput>(relation->column_count);
  for (int i = 0; i < relation->column_count; ++i)
    inputs[i] = {relation->columns[i].attnum - 1, &relation->columns[i], nullptr};
  return make_key_builder(filter, inputs, relation->column_count);
}

// The filter and the builder of its keys, ready for the next rows.
FilterHandle* prepare_filter(ModifyState* state, Use use) {
  FilterHandle* filter = state->keys.filter;
  use_filter(filter, use);
  filter->route = {filter->hashes_specially ? KeyRoute::unknown : state->way, InvalidOid};
  if (likely(is_current(&state->keys))) return filter;
  MemoryContextReset(state->key_memory);
  const InContext context(state->key_memory);
  state->keys = read_rows_of(filter);
  return filter;
}

// Forgets the key of the row that the plan has found, and puts that row into `slot`, in the current
// memory context; false if the key was not there, or no longer.
bool forget_row(ModifyState* state, TupleTableSlot* slot, TupleTableSlot* plan_slot) {
  FilterHandle* filter = prepare_filter(state, Use::erase);
  bool missing;
  const Datum row = ExecGetJunkAttribute(plan_slot, state->row, &missing);
  if (missing) elog(ERROR, "%s of filter \"%s\" is NULL", kRow, filter->relation->name);
  HeapTupleData tuple{};
  tuple.t_data = DatumGetHeapTupleHeader(row);
  tuple.t_len = HeapTupleHeaderGetDatumLength(tuple.t_data);
  ExecClearTuple(slot);
  heap_deform_tuple(&tuple, slot->tts_tupleDescriptor, slot->tts_values, slot->tts_isnull);
  ExecStoreVirtualTuple(slot);
  Element element;
  return build_element(&state->keys, slot, &element) &&
         judge_key(filter, element, Intent::erase) != Verdict::fresh;
}

void begin_modify(ResultRelInfo* target, Use use, AttrNumber row) {
  auto* state = allocate_zeros<ModifyState>();
  state->row_memory = make_small_context("streamfilter row");
  state->key_memory = make_small_context("streamfilter keys");
  state->row = row;
  // A partition is locked at its first row.
  state->way = target->ri_RootResultRelInfo == nullptr ? KeyRoute::insert : KeyRoute::unknown;
  state->keys.filter = filter_handle(RelationGetRelid(target->ri_RelationDesc));
  prepare_filter(state, use);  // raises errors now
  target->ri_FdwState = state;
}

// PostgreSQL's own functions know no filters.
bool may_ask_filter(Oid function, void*) {
  return function >= FirstNormalObjectId &&
         (func_volatile(function) == PROVOLATILE_VOLATILE || asks_in_secret(function));
}

bool calls_what_may_ask(Node* node, void* context) {
  if (node == nullptr) return false;
  if (IsA(node, Query))
    return SF_WALK_QUERY(reinterpret_cast<Query*>(node), calls_what_may_ask, context, 0);
  return check_functions_in_node(node, may_ask_filter, context) ||
         SF_WALK_EXPRESSION(node, calls_what_may_ask, context);
}

// Does the query ask a filter for a row? The filter may have keys of rows before it.
bool is_query_asking(const PlannerInfo* root) {
  if (calls_what_may_ask(reinterpret_cast<Node*>(root->parse), nullptr)) return true;
  for (auto* planner : each<PlannerInfo>(root->glob->subroots))
    if (calls_what_may_ask(reinterpret_cast<Node*>(planner->parse), nullptr)) return true;
  return false;
}

}  // namespace

int is_foreign_rel_updatable(Relation relation) {
  FilterHandle* filter = filter_for_use(RelationGetRelid(relation), Use::define);
  return 1 << CMD_INSERT | (can_erase(filter->relation) ? 1 << CMD_DELETE : 0);
}

// The same column, by type and name, that the planner adds for row triggers.
void add_foreign_update_targets(PlannerInfo* root, Index target, RangeTblEntry*, Relation) {
  Var* row = makeVar(static_cast<int>(target), InvalidAttrNumber, RECORDOID, -1, InvalidOid, 0);
  add_row_identity_var(root, row, target, kRow);
}

List* plan_foreign_modify(PlannerInfo* root, ModifyTable* plan, Index target, int) {
  if (plan->operation == CMD_INSERT)
    return is_query_asking(root) ? list_make1(makeInteger(true)) : NIL;
  FilterHandle* filter = filter_for_use(planner_rt_fetch(target, root)->relid, Use::define);
  if (plan->operation != CMD_DELETE) raise_update(filter->relation);
  if (!can_erase(filter->relation)) raise_delete(filter->relation);
  return NIL;
}

void begin_foreign_modify(ModifyTableState* state, ResultRelInfo* target, List* plan, int,
                          int flags) {
  if (flags & EXEC_FLAG_EXPLAIN_ONLY) return;
  if (state->operation != CMD_DELETE) {
    begin_foreign_insert(state, target);
    static_cast<ModifyState*>(target->ri_FdwState)->one_by_one = plan != NIL;
    return;
  }
  require_one_node(RelationGetRelid(target->ri_RelationDesc), "DELETE",
                   "run_command_on_all_nodes($$DELETE FROM ...$$)", false);
  const AttrNumber row =
      ExecFindJunkAttributeInTlist(outerPlanState(state)->plan->targetlist, kRow);
  if (!AttributeNumberIsValid(row)) elog(ERROR, "could not find junk column %s", kRow);
  begin_modify(target, Use::erase, row);
}

void begin_foreign_insert(ModifyTableState*, ResultRelInfo* target) {
  require_one_node(RelationGetRelid(target->ri_RelationDesc), "INSERT",
                   "run_command_on_all_nodes($$INSERT INTO ...$$)", true);
  begin_modify(target, Use::insert_granted, InvalidAttrNumber);
}

TupleTableSlot* exec_foreign_insert(EState*, ResultRelInfo* target, TupleTableSlot* slot,
                                    TupleTableSlot*) {
  auto* state = static_cast<ModifyState*>(target->ri_FdwState);
  FilterHandle* filter = prepare_filter(state, Use::insert_granted);
  note_asked(filter);
  MemoryContext caller = MemoryContextSwitchTo(state->row_memory);
  Element element;
  const bool has_key = build_element(&state->keys, slot, &element);
  MemoryContextSwitchTo(caller);
  MemoryContextReset(state->row_memory);
  if (!has_key) {
    count_row(filter, RowCount::null_keys);
    return slot;
  }
  bound_time(filter, &element);
  return judge_key(filter, element, Intent::insert) == Verdict::fresh ? slot : nullptr;
}

// Rows go one by one if something looks at each: RETURNING, triggers, checks of views, or the query
// itself.
int get_foreign_modify_batch_size(ResultRelInfo* target) {
  const TriggerDesc* triggers = target->ri_TrigDesc;
  const bool watched = target->ri_projectReturning != nullptr ||
                       target->ri_WithCheckOptions != NIL ||
                       (triggers != nullptr &&
                        (triggers->trig_insert_before_row || triggers->trig_insert_after_row));
  const auto* state = static_cast<const ModifyState*>(target->ri_FdwState);
  if (watched || (state != nullptr && state->one_by_one)) return 1;
  FilterHandle* filter = filter_for_use(RelationGetRelid(target->ri_RelationDesc), Use::define);
  return is_remote(filter->relation) ? kRemoteBatch : kBatch;
}

namespace {

// Keys of rows that are tested together.
struct KeysToAdd {
  int count = 0;
  Element elements[kMaxBatch];
  bool has_key[kMaxBatch], seen[kMaxBatch];
};

// The current memory context is the row's.
void add_row(const ModifyState* state, TupleTableSlot* row, KeysToAdd* batch) {
  Element* element = &batch->elements[batch->count];
  const bool has_key = build_element(&state->keys, row, element);
  batch->has_key[batch->count++] = has_key;
  if (has_key) bound_time(state->keys.filter, element);
}

void insert_keys(ModifyState* state, KeysToAdd* batch) {
  MemoryContextReset(state->row_memory);
  FilterHandle* filter = state->keys.filter;
  note_asked(filter);
  judge_keys(filter, batch->elements, batch->has_key, batch->count, Outcome::discarded,
             batch->seen);
}

}  // namespace

TupleTableSlot** exec_foreign_batch_insert(EState*, ResultRelInfo* target, TupleTableSlot** slots,
                                           TupleTableSlot**, int* count) {
  auto* state = static_cast<ModifyState*>(target->ri_FdwState);
  prepare_filter(state, Use::insert_granted);
  Assert(*count <= kMaxBatch);
  KeysToAdd batch;
  MemoryContext caller = MemoryContextSwitchTo(state->row_memory);
  for (int i = 0; i < *count; ++i) add_row(state, slots[i], &batch);
  MemoryContextSwitchTo(caller);
  insert_keys(state, &batch);
  int kept = 0;
  for (int i = 0; i < *count; ++i)
    if (!batch.seen[i]) state->kept[kept++] = slots[i];
  *count = kept;
  return state->kept;
}

bool takes_batches(const ResultRelInfo* target) {
  const TupleConstr* constraints = RelationGetDescr(target->ri_RelationDesc)->constr;
  return target->ri_BatchSize > 1 && target->ri_TrigDesc == nullptr &&
         (constraints == nullptr || !constraints->has_generated_stored);
}

KeyCounts insert_keys_of(PlanState* rows, ResultRelInfo* target) {
  auto* state = static_cast<ModifyState*>(target->ri_FdwState);
  KeyCounts counts = {};
  KeysToAdd batch;
  for (bool more = true; more;) {
    TupleTableSlot* row = ExecProcNode(rows);
    more = !TupIsNull(row);
    prepare_filter(state, Use::insert_granted);
    if (more) {
      const InContext context(state->row_memory);
      add_row(state, row, &batch);
    }
    if (batch.count == 0 || (more && batch.count < target->ri_BatchSize)) continue;
    insert_keys(state, &batch);
    for (int i = 0; i < batch.count; ++i) ++(batch.seen[i] ? counts.seen : counts.added);
    ++counts.batches;
    batch.count = 0;
  }
  return counts;
}

TupleTableSlot* exec_foreign_delete(EState*, ResultRelInfo* target, TupleTableSlot* slot,
                                    TupleTableSlot* plan_slot) {
  auto* state = static_cast<ModifyState*>(target->ri_FdwState);
  MemoryContextReset(state->row_memory);  // of the previous row, which RETURNING has used
  const InContext context(state->row_memory);
  return forget_row(state, slot, plan_slot) ? slot : nullptr;
}

void end_foreign_modify(EState*, ResultRelInfo* target) {
  auto* state = static_cast<ModifyState*>(target->ri_FdwState);
  if (state == nullptr) return;
  MemoryContextDelete(state->row_memory);
  MemoryContextDelete(state->key_memory);
}

void exec_foreign_truncate(List* relations, DropBehavior, bool) {
  List* relids = NIL;
  for (auto* relation : each<RelationData>(relations))
    relids = lappend_oid(relids, RelationGetRelid(relation));
  for (const Oid oid : each_oid(relids)) {
    FilterHandle* filter = filter_for_use(oid, Use::define);
    warn_of_remembering_children(filter->relid, relids);
    require_shared_state();
    if (!is_remote(filter->relation) && peek_slot(filter->relation) == nullptr &&
        !is_anything_saved(filter->relid))
      continue;  // nothing to forget
    use_filter(filter, Use::empty);
    reset_filter(filter);
  }
}

}  // namespace streamfilter::pg
