// Our triggers on shards of Citus. Moving, splitting or copying brings a shard with its rows. The
// filter of the new node learns their keys, and no existing row is judged.
#pragma once

#include "pg/binding/trigger_definition.hpp"
#include "pg/handle/statement.hpp"

namespace streamfilter::pg {

// Is the trigger on a shard? Citus appends the shard's number to the names of both.
bool is_on_shard(const Trigger* trigger, const DeclaredTrigger* declared);

// Do the rows of this statement exist already? True for rows that replication brings to a shard,
// and for the first copy into a shard that Citus has created with its triggers in this transaction.
// Such rows pass, and the filter only remembers their keys.
// `outside`: not ModifyTable brings them.
bool exist_already(const TriggerData* call, uint64 statement, bool outside);

// Could the table get such rows? Then its trigger must see them one by one.
bool may_be_copied(Relation table);

// Has Citus created the table within the running statement? It does so when a distributed table
// becomes local, or is distributed differently. adopt_created() teaches the filter its rows.
bool is_made_by_citus(Relation table);

// Call after CREATE TRIGGER: if Citus has created the trigger, the filter learns the keys of the
// table's rows, and a shard's trigger also fires for replicated rows.
void adopt_created(const Trigger* trigger, TriggerKind kind, Relation table);

// Call after ALTER TABLE: does the same for triggers that it has enabled, and partitions that it
// has attached.
void adopt_altered(const AlterTableStmt* statement);

}  // namespace streamfilter::pg
