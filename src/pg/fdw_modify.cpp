// INSERT, COPY and TRUNCATE, and what UPDATE and DELETE are told. The executor has checked the
// rights.
#include "streamfilter/pg/pg.hpp"

extern "C" {
#include "executor/executor.h"
#include "nodes/execnodes.h"
#include "nodes/pathnodes.h"
#include "nodes/plannodes.h"
#include "parser/parsetree.h"
#include "utils/rel.h"
}

#include "streamfilter/pg/element.hpp"
#include "streamfilter/pg/fdw.hpp"
#include "streamfilter/pg/named_filter.hpp"

namespace streamfilter::pg {
namespace {

struct InsertState {
  NamedFilter* filter;
  MemoryContext row_memory;
};

[[noreturn]] void raise_update(const FilterRelation* relation) {
  ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
          errmsg("filter \"%s\" cannot be updated", relation->name),
          errdetail("A filter remembers keys, not rows."), errhint("INSERT the new key."));
  pg_unreachable();
}

// Once a kind has `erase`, DELETE needs, for that kind, the key columns as row identity
// (AddForeignUpdateTargets) and ExecForeignDelete; the look-up by key is already there.
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
  pg_unreachable();
}

// Remembers the key of a row; false if it was there before. A row without a key (it has a NULL) is
// new every time.
bool remember_row(const InsertState* state, TupleTableSlot* row) {
  NamedFilter* filter = state->filter;
  use_filter(filter, Use::judge);
  const FilterRelation* relation = filter->relation;
  slot_getallattrs(row);
  auto* values = static_cast<Datum*>(palloc(sizeof(Datum) * relation->key_count));
  auto* isnull = static_cast<bool*>(palloc(sizeof(bool) * relation->key_count));
  int count = 0;
  Element element = new_element(relation->definition.parameters);
  for (int i = 0; i < relation->column_count; ++i) {
    const FilterColumn* column = &relation->columns[i];
    const Datum value = row->tts_values[column->attnum - 1];
    const bool null = row->tts_isnull[column->attnum - 1];
    if (column->role == Role::key) {
      values[count] = value;
      isnull[count++] = null;
    } else {
      set_role(&element, column, relation, value, null);
    }
  }
  return !hash_filter_key(filter, values, isnull, &element.hash) || !remember_key(filter, element);
}

}  // namespace

int is_foreign_rel_updatable(Relation) { return 1 << CMD_INSERT; }

List* plan_foreign_modify(PlannerInfo* root, ModifyTable* plan, Index target, int) {
  if (plan->operation == CMD_INSERT) return NIL;
  NamedFilter* filter = named_filter(planner_rt_fetch(target, root)->relid);
  use_filter(filter, Use::define);
  if (plan->operation == CMD_DELETE) raise_delete(filter->relation);
  raise_update(filter->relation);
}

void begin_foreign_modify(ModifyTableState* state, ResultRelInfo* target, List*, int, int flags) {
  if (!(flags & EXEC_FLAG_EXPLAIN_ONLY)) begin_foreign_insert(state, target);
}

void begin_foreign_insert(ModifyTableState*, ResultRelInfo* target) {
  auto* state = static_cast<InsertState*>(palloc(sizeof(InsertState)));
  state->filter = named_filter(RelationGetRelid(target->ri_RelationDesc));
  use_filter(state->filter, Use::judge);  // says now what is wrong, if anything is
  state->row_memory =
      AllocSetContextCreate(CurrentMemoryContext, "streamfilter row", ALLOCSET_SMALL_SIZES);
  target->ri_FdwState = state;
}

TupleTableSlot* exec_foreign_insert(EState*, ResultRelInfo* target, TupleTableSlot* slot,
                                    TupleTableSlot*) {
  auto* state = static_cast<InsertState*>(target->ri_FdwState);
  MemoryContext caller = MemoryContextSwitchTo(state->row_memory);
  const bool is_new = remember_row(state, slot);
  MemoryContextSwitchTo(caller);
  MemoryContextReset(state->row_memory);
  return is_new ? slot : nullptr;
}

void end_foreign_modify(EState*, ResultRelInfo* target) {
  auto* state = static_cast<InsertState*>(target->ri_FdwState);
  if (state != nullptr) MemoryContextDelete(state->row_memory);
}

void exec_foreign_truncate(List* relations, DropBehavior, bool) {
  ListCell* cell;
  foreach (cell, relations) {
    NamedFilter* filter = named_filter(RelationGetRelid(static_cast<Relation>(lfirst(cell))));
    use_filter(filter, Use::define);
    require_shared_state();
    if (peek_slot(filter->relation) == nullptr) continue;  // nothing to forget
    use_filter(filter, Use::judge);
    reset_filter(filter);
  }
}

}  // namespace streamfilter::pg
