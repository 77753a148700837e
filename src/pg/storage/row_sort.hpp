// Sorts rows of the log by number, within maintenance_work_mem and beyond that in temporary files.
#pragma once

extern "C" {
#include "utils/resowner.h"
}

#include "pg/storage/state_heaps.hpp"

struct Tuplesortstate;
struct TupleTableSlot;

namespace streamfilter::pg {

// Lives in the current memory context and resource owner, which clean up after errors.
class RowSort {
 public:
  explicit RowSort(Relation table);
  RowSort(const RowSort&) = delete;
  RowSort& operator=(const RowSort&) = delete;

  // Also within a subtransaction.
  void put(HeapTuple tuple);

  // After the last put: the next row, valid until the next call. False: there are no more.
  bool next(LogRow* row);

  void end();

 private:
  Relation table_;
  ResourceOwner owner_;
  Tuplesortstate* sort_;
  TupleTableSlot *put_slot_, *next_slot_;
  HeapTuple copy_ = nullptr;
  bool sorted_ = false;
  int settings_;  // nest level of settings
};

}  // namespace streamfilter::pg
