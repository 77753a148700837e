#include "pg/server/postgres.hpp"

extern "C" {
#include "rewrite/rewriteHandler.h"
}

#include "pg/catalog/volatile_code.hpp"
#include "pg/ingest/diverted_rows.hpp"
#include "pg/ingest/target_rule.hpp"
#include "pg/server/fault_points.hpp"
#include "pg/trigger/divert.hpp"

namespace streamfilter::pg {

// A table, and the role that inserts there.
struct DivertTarget {
  Oid owner;
  Relation table;
  ResultRelInfo* relation;
  BatchWriter* writer;
  BatchTable* rows;
  Caller caller;
};

struct DivertedRows {
  DivertTarget* target;
  ProjectionInfo* projection;
};

namespace {

// ---- columns -----------------------------------------------------------------------------------

Expr* null_of(const FormData_pg_attribute* column) {
  Const* null = makeConst(column->atttypid, -1, column->attcollation, column->attlen, Datum{0},
                          true, column->attbyval);
  return reinterpret_cast<Expr*>(coerce_to_domain(reinterpret_cast<Node*>(null), InvalidOid, -1,
                                                  column->atttypid, COERCION_IMPLICIT,
                                                  COERCE_IMPLICIT_CAST, -1, false));
}

Expr* default_of(Relation target, const FormData_pg_attribute* column) {
  Node* value = build_column_default(target, column->attnum);
  return value == nullptr ? null_of(column) : reinterpret_cast<Expr*>(value);
}

Expr* given_value(const RowJudge* judge, int source) {
  if (source == kDivertedAt)
    return reinterpret_cast<Expr*>(
        makeConst(TIMESTAMPTZOID, -1, InvalidOid, sizeof(TimestampTz),
                  TimestampTzGetDatum(GetCurrentTransactionStartTimestamp()), false, true));
  if (source == kFilter)
    return reinterpret_cast<Expr*>(makeConst(REGCLASSOID, -1, InvalidOid, sizeof(Oid),
                                             ObjectIdGetDatum(judge->keys.filter->relid), false,
                                             true));
  const FormData_pg_attribute* from = TupleDescAttr(RelationGetDescr(judge->row.table), source - 1);
  return reinterpret_cast<Expr*>(makeVar(1, static_cast<AttrNumber>(source), from->atttypid,
                                         from->atttypmod, from->attcollation, 0));
}

// Generated columns are computed when the row is written.
Expr* value_for_column(const RowJudge* judge, Relation target,
                       const FormData_pg_attribute* column) {
  if (column->attisdropped) return reinterpret_cast<Expr*>(makeNullConst(INT4OID, -1, InvalidOid));
  if (column->attgenerated != '\0')
    return reinterpret_cast<Expr*>(
        makeNullConst(column->atttypid, column->atttypmod, column->attcollation));
  const int source = source_of(judge->row.table, const_cast<Form_pg_attribute>(column));
  if (source == kNothing) return default_of(target, column);
  Node* value = reinterpret_cast<Node*>(given_value(judge, source));
  // A parameter of the INSERT has a type but no modifier.
  return reinterpret_cast<Expr*>(
      coerce_to_target_type(nullptr, value, type_of(judge->row.table, source), column->atttypid,
                            column->atttypmod, COERCION_ASSIGNMENT, COERCE_IMPLICIT_CAST, -1));
}

// NIL: a value cannot be assigned, which the INSERT of a row will report.
List* list_values(const RowJudge* judge, Relation target) {
  List* values = NIL;
  for (int i = 1; i <= RelationGetNumberOfAttributes(target); ++i) {
    Expr* value = value_for_column(judge, target, TupleDescAttr(RelationGetDescr(target), i - 1));
    if (value == nullptr) return NIL;
    values = lappend(values, makeTargetEntry(expression_planner(value), static_cast<AttrNumber>(i),
                                             nullptr, false));
  }
  return values;
}

// Functions in them may be the owner's.
List* list_values(const RowJudge* judge, Relation target, const char** obstacle) {
  *obstacle = why_diverted_alone(target, judge->found.owner);
  if (*obstacle != nullptr) return NIL;
  const Caller caller = become_owner(RelationGetRelid(target), judge->found.owner);
  List* values = list_values(judge, target);
  return_to(caller);
  if (values == NIL || runs_volatile_code(reinterpret_cast<Node*>(values)))
    *obstacle =
        psprintf("a value of table %s, where repeats go, is computed by a volatile function",
                 quote_identifier(RelationGetRelationName(target)));
  return values;
}

// ---- tables ------------------------------------------------------------------------------------

void act_for(Diverting* all, DivertTarget* target) {
  if (all->open == target) return;
  if (all->open != nullptr) return_to(all->open->caller);
  all->open = target;
  if (target != nullptr)
    target->caller = become_owner(RelationGetRelid(target->table), target->owner);
}

// Takes over the reference to the table.
DivertTarget* open_target(Diverting* all, Relation table, Oid owner) {
  auto* target = static_cast<DivertTarget*>(palloc0(sizeof(DivertTarget)));
  target->owner = owner;
  target->table = table;
  target->relation = makeNode(ResultRelInfo);
  InitResultRelInfo(target->relation, table, 0, nullptr, 0);
  target->writer = begin_batch_writer(all->estate, {}, nullptr, {all->watch.at, nullptr, nullptr});
  target->rows = add_table(target->writer, target->relation);
  all->targets = lappend(all->targets, target);
  return target;
}

DivertTarget* find_divert_target(Diverting* all, const RowJudge* judge, Relation table) {
  for (auto* target : each<DivertTarget>(all->targets)) {
    if (target->table != table || target->owner != judge->found.owner) continue;
    table_close(table, NoLock);
    return target;
  }
  return open_target(all, table, judge->found.owner);
}

}  // namespace

DivertedRows* open_diverted(Diverting* all, const RowJudge* judge, const char** obstacle) {
  Relation table = table_open(judge->found.target, NoLock);
  List* values = list_values(judge, table, obstacle);
  if (*obstacle != nullptr) {
    table_close(table, NoLock);
    return nullptr;
  }
  auto* rows = static_cast<DivertedRows*>(palloc(sizeof(DivertedRows)));
  rows->projection = ExecBuildProjectionInfo(
      values, GetPerTupleExprContext(all->estate),
      MakeSingleTupleTableSlot(CreateTupleDescCopy(RelationGetDescr(table)), &TTSOpsVirtual),
      nullptr, CreateTupleDescCopy(RelationGetDescr(judge->row.table)));
  rows->target = find_divert_target(all, judge, table);
  return rows;
}

void divert_with_others(Diverting* all, const DivertedRows* rows, TupleTableSlot* row,
                        uint64 number) {
  act_for(all, rows->target);
  look_at(all->watch, number);
  rows->projection->pi_exprContext->ecxt_scantuple = row;
  TupleTableSlot* diverted = take_slot(rows->target->rows);
  ExecStoreHeapTuple(copy_row(rows->target->writer, ExecProject(rows->projection)), diverted,
                     false);
  look_at(all->watch, 0);
  ResetPerTupleExprContext(all->estate);
  write_row(rows->target->rows, diverted, number, false);
}

void write_diverted(Diverting* all) {
  if (all->open == nullptr) return;
  for (auto* target : each<DivertTarget>(all->targets)) {
    act_for(all, target);
    write_batch(target->writer);
  }
  act_for(all, nullptr);
  stop_at(FaultPoint::diverted);
}

void finish_diverting(Diverting* all) {
  for (const auto* target : each<DivertTarget>(all->targets)) {
    finish_batch_writer(target->writer);
    ExecCloseIndices(target->relation);
    table_close(target->table, NoLock);
  }
}

}  // namespace streamfilter::pg
