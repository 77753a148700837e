// What statements have resolved of a trigger, kept for those to come: with one row a statement,
// that is most of what a row costs.
#pragma once

#include "pg/trigger/trigger_rows.hpp"

namespace streamfilter::pg {

// One for the statement that fires the trigger, until its memory goes; prepare() makes it ready.
RowJudge* borrow_judge(const Trigger* trigger, TriggerKind kind, uint64 statement, bool routed,
                       MemoryContext of_statement);

}  // namespace streamfilter::pg
