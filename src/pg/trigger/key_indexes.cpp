#include "pg/server/postgres.hpp"

extern "C" {
#include "access/genam.h"
#include "access/stratnum.h"
#include "catalog/pg_am.h"
}

#include "pg/handle/key_reservation.hpp"
#include "pg/trigger/key_indexes.hpp"

namespace streamfilter::pg {
namespace {

// The filter compares the column unchanged, or as an integer of another width.
bool is_compared_as_it_is(const KeyInput* input, Oid type) {
  return input->coercion == nullptr || (is_integer(type) && is_integer(input->column->type));
}

// All deterministic collations compare equal exactly where the bytes are equal.
bool is_one_equality(Oid a, Oid b) {
  if (a == b) return true;
  return OidIsValid(a) && OidIsValid(b) && get_collation_isdeterministic(a) &&
         get_collation_isdeterministic(b);
}

// Equality operator of the index for its column `column`, counted from 0.
Oid equality_of(Relation index, int column) {
  const Oid type = index->rd_opcintype[column];
  return get_opfamily_member(index->rd_opfamily[column], type, type, BTEqualStrategyNumber);
}

bool compares_alike(Relation index, int column, const KeyInput* input, Oid type) {
  const Oid compared = is_integer(type) ? type : getBaseType(input->column->type);
  return is_compared_as_it_is(input, type) &&
         equality_of(index, column) == lookup_type_cache(compared, TYPECACHE_EQ_OPR)->eq_opr &&
         is_one_equality(index->rd_indcollation[column], input->column->collation);
}

int find_in_index(Relation index, AttrNumber column) {
  const FormData_pg_index* form = index->rd_index;
  for (int i = 0; i < form->indnkeyatts; ++i)
    if (form->indkey.values[i] == column) return i;
  return -1;
}

// PostgreSQL evaluates constants in expressions that it reads into its cache, as the present role.
bool has_expressions(Relation index) {
  return !heap_attisnull(index->rd_indextuple, Anum_pg_index_indexprs, nullptr) ||
         !heap_attisnull(index->rd_indextuple, Anum_pg_index_indpred, nullptr);
}

// Does every row that the index refuses have a key that is in the table?
bool is_of_key(Relation index, Relation table, const TriggerPlan* plan) {
  if (!index->rd_index->indisunique || index->rd_rel->relam != BTREE_AM_OID ||
      has_expressions(index))
    return false;
  for (int i = 0; i < plan->count; ++i) {
    const KeyInput* input = &plan->inputs[i];
    if (input->column->role != Role::key) continue;
    const Form_pg_attribute column = TupleDescAttr(RelationGetDescr(table), input->source);
    const int at = find_in_index(index, column->attnum);
    if (at < 0 || !compares_alike(index, at, input, column->atttypid)) return false;
  }
  return true;
}

// A generated column is computed after the trigger has fired.
bool has_generated_column(Relation index, Relation table) {
  const FormData_pg_index* form = index->rd_index;
  for (int i = 0; i < form->indnkeyatts; ++i) {
    const AttrNumber column = form->indkey.values[i];
    if (column > 0 && TupleDescAttr(RelationGetDescr(table), column - 1)->attgenerated != '\0')
      return true;
  }
  return false;
}

// Indexes that can refuse a row of the table: unique and EXCLUDE.
bool refuses_rows(Relation index) {
  const FormData_pg_index* form = index->rd_index;
  return form->indisready && (form->indisunique || form->indisexclusion);
}

// The conflict target; without one, all such indexes.
List* arbiters_of(const ResultRelInfo* target) {
  if (target->ri_onConflictArbiterIndexes != NIL) return target->ri_onConflictArbiterIndexes;
  return RelationGetIndexList(target->ri_RelationDesc);
}

// ---- looking for a row -------------------------------------------------------------------------

// False if the row has a NULL, which equals nothing in the index.
bool make_keys(Relation index, TupleTableSlot* row, ScanKey keys) {
  const FormData_pg_index* form = index->rd_index;
  for (int i = 0; i < form->indnkeyatts; ++i) {
    bool isnull;
    const Datum value = slot_getattr(row, form->indkey.values[i], &isnull);
    if (isnull && !form->indnullsnotdistinct) return false;
    ScanKeyEntryInitialize(&keys[i], isnull ? SK_ISNULL | SK_SEARCHNULL : 0,
                           static_cast<AttrNumber>(i + 1), BTEqualStrategyNumber, InvalidOid,
                           index->rd_indcollation[i],
                           isnull ? InvalidOid : get_opcode(equality_of(index, i)), value);
  }
  return true;
}

// The transaction to wait for before the answer is known; otherwise sets whether there is such a
// row.
TransactionId look_up_in_index(Relation index, Relation table, ScanKey keys, TupleTableSlot* found,
                               bool* is_there, ItemPointerData* where) {
  SnapshotData snapshot;
  InitDirtySnapshot(snapshot);
  IndexScanDesc scan = SF_INDEX_BEGINSCAN(table, index, &snapshot, index->rd_index->indnkeyatts);
  index_rescan(scan, keys, index->rd_index->indnkeyatts, nullptr, 0);
  *is_there = index_getnext_slot(scan, ForwardScanDirection, found);
  TransactionId other = InvalidTransactionId;
  if (*is_there) {
    *where = found->tts_tid;
    other = TransactionIdIsValid(snapshot.xmin) ? snapshot.xmin : snapshot.xmax;
  }
  index_endscan(scan);
  return other;
}

bool is_in_index(Relation index, Relation table, TupleTableSlot* row) {
  ScanKeyData keys[INDEX_MAX_KEYS];
  if (!make_keys(index, row, keys)) return false;
  TupleTableSlot* found = table_slot_create(table, nullptr);
  bool is_there;
  for (;;) {
    ItemPointerData where;
    const TransactionId other = look_up_in_index(index, table, keys, found, &is_there, &where);
    ExecClearTuple(found);
    if (!TransactionIdIsValid(other)) break;
    hand_over_filters();
    XactLockTableWait(other, table, &where, XLTW_InsertIndex);
  }
  ExecDropSingleTupleTableSlot(found);
  return is_there;
}

}  // namespace

List* find_key_indexes(Relation table, const TriggerPlan* plan) {
  List* found = NIL;
  for (const Oid index_oid : each_oid(RelationGetIndexList(table))) {
    Relation index = index_open(index_oid, AccessShareLock);
    if (refuses_rows(index) && index->rd_index->indisvalid && !has_generated_column(index, table) &&
        is_of_key(index, table, plan))
      found = lappend_oid(found, index_oid);
    index_close(index, AccessShareLock);
  }
  return found;
}

bool may_refuse_new_keys(const ResultRelInfo* target, const TriggerPlan* plan) {
  Relation table = target->ri_RelationDesc;
  bool may = false;
  for (const Oid index_oid : each_oid(arbiters_of(target))) {
    Relation index = index_open(index_oid, AccessShareLock);
    may = may || (refuses_rows(index) && !is_of_key(index, table, plan));
    index_close(index, AccessShareLock);
  }
  return may;
}

bool is_in_indexes(const List* indexes, Relation table, TupleTableSlot* row) {
  for (const Oid oid : each_oid(indexes)) {
    Relation index = index_open(oid, AccessShareLock);
    const bool found = is_in_index(index, table, row);
    index_close(index, NoLock);
    if (found) return true;
  }
  return false;
}

// Partitions may have indexes that the partitioned table has not.
static bool any_partition_has_key_index(const Trigger* trigger, TriggerKind kind, Relation table,
                                        const FilterRelation* filter) {
  bool any = false;
  for (const Oid child :
       each_oid(find_all_inheritors(RelationGetRelid(table), AccessShareLock, nullptr))) {
    Relation partition = relation_open(child, NoLock);
    if (partition->rd_rel->relkind == RELKIND_RELATION)
      any = any || find_key_indexes(partition, make_plan(trigger, kind, partition, filter)) != NIL;
    relation_close(partition, NoLock);
  }
  return any;
}

void check_key_indexes(const Trigger* trigger, TriggerKind kind, Relation table,
                       const TriggerPlan* plan, const FilterRelation* filter) {
  if (trigger->tgisclone || is_restoring()) return;
  const List* indexes = find_key_indexes(table, plan);
  if (plan->skips_conflicts && indexes == NIL &&
      !any_partition_has_key_index(trigger, kind, table, filter))
    ereport(
        ERROR, errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
        errmsg("table \"%s\" has no unique index for argument 'conflicting=skip' of trigger \"%s\"",
               RelationGetRelationName(table), trigger->tgname),
        errdetail(
            "A row is looked up in unique indexes that have all key columns of filter \"%s\", "
            "and compare them as it does.",
            filter->name),
        errhint("Create a unique index on these columns, and give the filter's columns the types "
                "and collations of the table's; or leave out the argument."));
  if (plan->skips_conflicts || indexes == NIL) return;
  ereport(NOTICE,
          errmsg("unique index \"%s\" refuses rows that filter \"%s\" has forgotten: write INSERT "
                 "... ON CONFLICT DO NOTHING, or give the trigger argument 'conflicting=skip'",
                 get_rel_name(linitial_oid(indexes)), filter->name));
}

}  // namespace streamfilter::pg
