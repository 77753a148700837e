// Keeps what a statement has resolved of a trigger for later statements. With one row per
// statement, resolving costs most of the time.
#pragma once

#include "pg/trigger/trigger_rows.hpp"

namespace streamfilter::pg {

// Lends a judge to the statement that fires the trigger, until that statement's memory is freed.
// Call prepare() before use.
RowJudge* borrow_judge(const Trigger* trigger, TriggerKind kind, uint64 statement, bool routed,
                       MemoryContext of_statement);

}  // namespace streamfilter::pg
