// A row of a function, with columns given by name. Skips columns that an older version of the
// extension has not declared; columns that are not given are NULL.
#pragma once

extern "C" {
#include "funcapi.h"
#include "utils/portal.h"
#include "utils/tuplestore.h"
}

#include <cmath>
#include <initializer_list>

namespace streamfilter::pg {

// For a function that returns a set of rows, which add_to() makes.
inline ReturnSetInfo* begin_rows(FunctionCallInfo fcinfo) {
  InitMaterializedSRF(fcinfo, 0);
  return reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
}

class NamedRow {
 public:
  explicit NamedRow(TupleDesc columns)
      : columns_(BlessTupleDesc(columns)),
        values_(allocate_zeros<Datum>(columns->natts)),
        isnull_(allocate<bool>(columns->natts)) {
    memset(isnull_, true, sizeof(bool) * columns->natts);
  }

  // For a function that returns one row.
  explicit NamedRow(FunctionCallInfo fcinfo) : NamedRow(result_type(fcinfo)) {}

  void put(const char* name, Datum value) {
    for (int i = 0; i < columns_->natts; ++i) {
      if (strcmp(NameStr(TupleDescAttr(columns_, i)->attname), name) != 0) continue;
      values_[i] = value;
      isnull_[i] = false;
    }
  }

  void put(const char* name, const char* value) {
    if (value != nullptr) put(name, CStringGetTextDatum(value));
  }
  template <typename Count>
  void put_count(const char* name, Count value) {
    put(name, Int64GetDatum(static_cast<int64>(value)));
  }
  void put_time(const char* name, TimestampTz value) {
    if (value != 0) put(name, Int64GetDatum(value));
  }

  void put_rate(const char* name, double value) {
    if (!std::isnan(value)) put(name, Float8GetDatum(value));
  }

  // Of an object on other servers, those that are not only there.
  template <typename Counts>
  void put_counts(const Counts& counts, bool is_elsewhere = false) {
    for (int i = 0; i < Counts::kCount; ++i)
      if (!is_elsewhere || !Counts::kInfo[i].only_there)
        put_count(Counts::kInfo[i].name, counts.values[i]);
  }

  Datum datum() { return HeapTupleGetDatum(heap_form_tuple(columns_, values_, isnull_)); }
  void add_to(ReturnSetInfo* set) {
    tuplestore_putvalues(set->setResult, set->setDesc, values_, isnull_);
  }

 private:
  static TupleDesc result_type(FunctionCallInfo fcinfo) {
    TupleDesc columns;
    if (get_call_result_type(fcinfo, nullptr, &columns) != TYPEFUNC_COMPOSITE)
      elog(ERROR, "return type must be a row type");
    return columns;
  }

  TupleDesc columns_;
  Datum* values_;
  bool* isnull_;
};

// Raises 22004 if one of these arguments of the running function, from 0, is NULL.
void require_arguments(FunctionCallInfo fcinfo, std::initializer_list<int> numbers);

// Queries that set-returning functions run for the user: one SELECT, read by a cursor in batches.

// Prepares the query and opens a cursor; SPI must be connected. Raises 34000 unless it is one
// SELECT that changes nothing, not even in WITH; the message names `function`.
Portal open_query(const char* query, const char* function);

// The planner's estimate of its rows.
uint64 expected_rows(Portal portal);

}  // namespace streamfilter::pg
