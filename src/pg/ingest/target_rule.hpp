// Decides which tables take rows in batches.
#pragma once

#include "pg/binding/trigger_binding.hpp"

namespace streamfilter::pg {

// Rule for an INSERT into this table, by its triggers and its kind.
struct TargetRule {
  const char* obstacle;  // why rows must go one by one, for EXPLAIN; nullptr: no reason
  const Trigger* judge;  // our judging trigger; nullptr: there is none
  TriggerKind kind;
  bool watched;  // has one of our triggers, whether or not there is an obstacle
};

// Allocates in the current memory context. For a partitioned table, looks only at the table itself.
TargetRule find_rule(const ResultRelInfo* target);

// The same by the table's triggers only, for the planner.
TargetRule find_trigger_rule(const TriggerDesc* triggers);

// Why repeats must be diverted to the table one by one, by `owner`, the role that owns their table;
// nullptr: no reason.
const char* why_diverted_alone(Relation target, Oid owner);

// Why a statement must give rows to the node one by one; nullptr: no reason. `judged`: the table
// has one of our judging triggers.
const char* why_row_by_row(const ModifyTableState* node, bool* judged);

// For a statement whose rows go in batches: can no code that runs for a row, in any partition, ask
// a filter?
bool is_blind_to_filters(const ModifyTableState* node);

}  // namespace streamfilter::pg
