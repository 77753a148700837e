// Triggers of ours on shards of Citus. A shard may come with its rows: it is moved, split, copied,
// or made of a table that has them. The filter beside it then learns their keys, and no row that
// exists already is judged.
#pragma once

extern "C" {
#include "nodes/parsenodes.h"
#include "utils/rel.h"
}

#include "pg/trigger/row_source.hpp"
#include "pg/trigger/trigger_definition.hpp"

namespace streamfilter::pg {

// Is it the trigger of a shard? Citus ends the names of both with the shard's number.
bool is_on_shard(const Trigger* trigger, const TriggerOrigin* origin);

// Do the rows of this statement exist already, so that they pass and are only remembered? Those are
// what replication brings to a shard, and the first copy into a shard that Citus has set up with
// its triggers in this transaction.
bool are_copied(const TriggerData* call, const RowSource& source);

// Could they, of this table? If so, its trigger must see them one by one.
bool may_be_copied(Relation table);

// After CREATE TRIGGER: the filter learns the keys of the table's rows if Citus has brought the
// trigger, and a trigger of a shard fires for replicated rows, too.
void adopt_created(const Trigger* trigger, TriggerKind kind, Relation table);

// After ALTER TABLE: the same for triggers that it has enabled, and partitions it has attached.
void adopt_altered(const AlterTableStmt* statement);

}  // namespace streamfilter::pg
