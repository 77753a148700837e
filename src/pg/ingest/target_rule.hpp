// Which tables take rows in batches.
#pragma once

extern "C" {
#include "nodes/execnodes.h"
}

#include "pg/trigger/trigger_kind.hpp"

namespace streamfilter::pg {

// What its triggers and its kind mean for rows of an INSERT into this table.
struct TargetRule {
  const char* obstacle;  // why they have to come one by one, for EXPLAIN; nullptr: nothing
  const Trigger* judge;  // our trigger that judges them; nullptr: there is none
  TriggerKind kind;
  bool watched;  // by a trigger of ours, whether or not there is an obstacle
};

// In the current memory context. Of a partitioned table: as far as that says itself.
TargetRule find_rule(const ResultRelInfo* target);

// The same of a table, for the planner: its triggers only.
TargetRule find_trigger_rule(const TriggerDesc* triggers);

// Why repeats have to be diverted to the table one by one, as the `owner` of the one that they come
// from; nullptr: they need not.
const char* why_diverted_alone(Relation target, Oid owner);

// Does a statement that gives rows to the node have them only one by one? The reason; nullptr: no.
// `judged`: has the table a trigger of ours that judges them?
const char* why_row_by_row(const ModifyTableState* node, bool* judged);

// Of a statement whose rows come in batches: can nothing that runs for one of them, in whichever
// partition, ask a filter?
bool is_blind_to_filters(const ModifyTableState* node);

}  // namespace streamfilter::pg
