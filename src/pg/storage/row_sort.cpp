#include "pg/server/postgres.hpp"

extern "C" {
#include "catalog/pg_operator_d.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "utils/guc.h"
#include "utils/resowner.h"
#include "utils/tuplesort.h"
}

#include "pg/storage/row_sort.hpp"

namespace streamfilter::pg {

// No limit of the user may keep a filter from being restored.
RowSort::RowSort(Relation table)
    : table_(table), owner_(CurrentResourceOwner), settings_(NewGUCNestLevel()) {
  set_config_option("temp_file_limit", "-1", PGC_SUSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0,
                    false);
  TupleDesc columns = RelationGetDescr(table);
  AttrNumber number = kNumberColumn;
  Oid less = Int8LessOperator, collation = InvalidOid;
  bool nulls_first = false;
  sort_ = tuplesort_begin_heap(columns, 1, &number, &less, &collation, &nulls_first,
                               maintenance_work_mem, nullptr, TUPLESORT_NONE);
  put_slot_ = MakeSingleTupleTableSlot(columns, &TTSOpsHeapTuple);
  next_slot_ = MakeSingleTupleTableSlot(columns, &TTSOpsMinimalTuple);
}

// A temporary file belongs to the resource owner that is current at its creation.
void RowSort::put(HeapTuple tuple) {
  ResourceOwner caller = CurrentResourceOwner;
  CurrentResourceOwner = owner_;
  ExecStoreHeapTuple(tuple, put_slot_, false);
  tuplesort_puttupleslot(sort_, put_slot_);
  ExecClearTuple(put_slot_);
  CurrentResourceOwner = caller;
}

bool RowSort::next(LogRow* row) {
  if (copy_ != nullptr) heap_freetuple(copy_);
  copy_ = nullptr;
  if (!sorted_) tuplesort_performsort(sort_);
  sorted_ = true;
  if (!tuplesort_gettupleslot(sort_, true, false, next_slot_, nullptr)) return false;
  copy_ = ExecCopySlotHeapTuple(next_slot_);
  return read_row(table_, copy_, row);  // it was read before
}

void RowSort::end() {
  if (copy_ != nullptr) heap_freetuple(copy_);
  ExecDropSingleTupleTableSlot(put_slot_);
  ExecDropSingleTupleTableSlot(next_slot_);
  tuplesort_end(sort_);
  AtEOXact_GUC(true, settings_);
}

}  // namespace streamfilter::pg
