// Rows of the log in the order of their numbers, within maintenance_work_mem: what does not fit
// goes to temporary files.
#pragma once

extern "C" {
#include "utils/resowner.h"
}

#include "pg/storage/state_heaps.hpp"

struct Tuplesortstate;
struct TupleTableSlot;

namespace streamfilter::pg {

// Lives in the current memory context, and with the current resource owner, which end it on errors.
class RowSort {
 public:
  explicit RowSort(Relation table);
  RowSort(const RowSort&) = delete;
  RowSort& operator=(const RowSort&) = delete;

  // Also within a subtransaction.
  void put(HeapTuple tuple);

  // After the last put: the next row, which is there until the call after. False: no more.
  bool next(LogRow* row);

  void end();

 private:
  Relation table_;
  ResourceOwner owner_;
  Tuplesortstate* sort_;
  TupleTableSlot *put_slot_, *next_slot_;
  HeapTuple copy_ = nullptr;
  bool sorted_ = false;
  int settings_;  // the nest level of settings
};

}  // namespace streamfilter::pg
