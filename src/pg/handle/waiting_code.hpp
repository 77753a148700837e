// Finds what may make a statement wait for another session. A statement may lock a whole filter
// only if nothing in it can wait: another session could hold what it waits for, and wait for the
// filter. Only functions that are known not to wait count as such.
#pragma once

extern "C" {
#include "executor/execdesc.h"
}

#include "pg/handle/filter_handle.hpp"

namespace streamfilter::pg {

// Names of our plan nodes. PostgreSQL's structs of them point to these.
inline constexpr char kInsertNode[] = "streamfilter insert";
inline constexpr char kBatchNode[] = "streamfilter batch";

// The filter that our node for streamfilter_seen() in WHERE asks, as the call's first argument;
// nullptr if it is another node.
const Const* filter_of_batch_scan(const Plan* plan);

// May a running statement wait while it gives the filter keys? Needs filter->route.
bool may_statement_wait(const FilterHandle* filter);

// May a started query that gives this filter keys wait while it reads its rows?
bool may_query_wait(const QueryDesc* query, Oid filter);

}  // namespace streamfilter::pg
