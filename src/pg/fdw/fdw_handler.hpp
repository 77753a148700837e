// The foreign-data wrapper: INSERT, SELECT, DELETE, TRUNCATE and EXPLAIN of filters.
#pragma once

namespace streamfilter::pg {

struct FilterColumn;

// key_qual.cpp: a condition that gives a key column its value, `column = value`.
struct KeyClause {
  RestrictInfo* clause;
  Node* value;    // computable without the filter's row
  Relids relids;  // other relations that it needs
  bool exact;  // holds for the row that a look-up of `value` returns, so need not be tested again
};

// The clause as a KeyClause, in the current memory context; nullptr if it is none for this column.
KeyClause* match_key_clause(PlannerInfo* root, const RelOptInfo* rel, const FilterColumn* column,
                            RestrictInfo* clause);

// KeyClauses from equivalence classes, for joins with other relations.
List* implied_key_clauses(PlannerInfo* root, RelOptInfo* rel, const FilterColumn* column);

// fdw_plan.cpp
void get_foreign_rel_size(PlannerInfo* root, RelOptInfo* rel, Oid relid);
void get_foreign_paths(PlannerInfo* root, RelOptInfo* rel, Oid relid);
ForeignScan* get_foreign_plan(PlannerInfo* root, RelOptInfo* rel, Oid relid, ForeignPath* path,
                              List* targets, List* clauses, Plan* outer_plan);

// fdw_scan.cpp
void begin_foreign_scan(ForeignScanState* node, int flags);
TupleTableSlot* iterate_foreign_scan(ForeignScanState* node);
void rescan_foreign_scan(ForeignScanState* node);
void end_foreign_scan(ForeignScanState* node);

// fdw_modify.cpp
int is_foreign_rel_updatable(Relation relation);
void add_foreign_update_targets(PlannerInfo* root, Index target, RangeTblEntry* entry,
                                Relation relation);
List* plan_foreign_modify(PlannerInfo* root, ModifyTable* plan, Index target, int subplan);
void begin_foreign_modify(ModifyTableState* state, ResultRelInfo* target, List* plan_private,
                          int subplan, int flags);
void begin_foreign_insert(ModifyTableState* state, ResultRelInfo* target);
TupleTableSlot* exec_foreign_insert(EState* estate, ResultRelInfo* target, TupleTableSlot* slot,
                                    TupleTableSlot* plan_slot);
int get_foreign_modify_batch_size(ResultRelInfo* target);
TupleTableSlot** exec_foreign_batch_insert(EState* estate, ResultRelInfo* target,
                                           TupleTableSlot** slots, TupleTableSlot** plan_slots,
                                           int* count);
TupleTableSlot* exec_foreign_delete(EState* estate, ResultRelInfo* target, TupleTableSlot* slot,
                                    TupleTableSlot* plan_slot);
void end_foreign_modify(EState* estate, ResultRelInfo* target);
void exec_foreign_truncate(List* relations, DropBehavior behavior, bool restart_sequences);

// fdw_explain.cpp
void explain_foreign_scan(ForeignScanState* node, struct ExplainState* es);
void explain_foreign_modify(ModifyTableState* state, ResultRelInfo* target, List* plan_private,
                            int subplan, struct ExplainState* es);

}  // namespace streamfilter::pg
