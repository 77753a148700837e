// The table that streamfilter_divert puts repeats into, and how they get there: by an INSERT of one
// row, with all that belongs to one (defaults, triggers, constraints, partitions), as the owner of
// the table that CREATE TRIGGER named, in a security-restricted operation. Columns go by name.
#pragma once

#include "pg/binding/trigger_definition.hpp"
#include "pg/handle/statement.hpp"

namespace streamfilter::pg {

// The partitioned table that the relation is a part of, at whatever depth; or the relation itself.
Oid topmost_table(Oid relation);

// The table that the trigger is bound to, or else the one that its second argument names, locked
// until the end of the transaction. Raises 39P01 without such an argument, 42602, 42P01, 42809 if
// it is no table, 42P17 if it cannot hold what the trigger diverts; reports 42501 at level
// `missing_right` unless the owner of the trigger's table may INSERT into it: InvalidOid then, and
// nothing is locked.
Oid lock_target(const Trigger* trigger, const DeclaredTrigger* declared, LOCKMODE lockmode,
                int missing_right);

// Finds the target without a lock; InvalidOid: there is none.
Oid find_target(const Trigger* trigger, const DeclaredTrigger* declared);

// Raises 42703 if they have no column in common, 42804 if one cannot be assigned to its namesake;
// with `warn`, warns of columns that the target lacks.
void check_columns(Relation table, Oid target, bool warn);

// Where a column of the target has its value from: a column of the table, by its number, or one of
// these.
constexpr int kNothing = 0, kDivertedAt = -1, kFilter = -2;
int source_of(Relation table, Form_pg_attribute target);
Oid type_of(Relation table, int source);

// Inserts the row of the call, as `owner`. Raises what the INSERT does, 09000 if nothing has come
// of it.
void divert_row(const TriggerData* call, Oid target, Oid owner, const FilterHandle* filter);

// Is a repeat of this filter being diverted? Then it must not judge the row again.
extern const struct Diversion* running_diversion;
bool diverts(const FilterHandle* filter);
inline bool is_diverting(const FilterHandle* filter) {
  return unlikely(running_diversion != nullptr) && diverts(filter);
}

// streamfilter_settle() moves false positives back into their table. The filter has judged these
// rows before, wrongly, so its trigger lets them pass. Other filters judge them as any row.

// The table whose rows are being settled; at most one per session.
struct RestoredRows {
  Oid table;        // the topmost table; InvalidOid if none
  Oid filter;       // InvalidOid: none
  uint64 caller;    // the statement that calls streamfilter_settle(); kNoStatement: none comes back
  bool keeps_keys;  // deleted rows have copies that stay, so their keys do, too
};

inline RestoredRows restored_rows = {};

// Rows that triggers and defaults insert meanwhile belong to statements within the restoring one.
inline bool is_restored_in(Oid table, uint64 statement) {
  if (topmost_table(table) != restored_rows.table) return false;
  const Frame* frame = innermost_frame();
  while (frame != nullptr && frame->number != statement) frame = frame->below;
  if (frame == nullptr) return false;
  return (frame->below == nullptr ? 0 : frame->below->number) == restored_rows.caller;
}

// Is a row that `statement` inserts into the table a restored one of the filter? Called for every
// row.
inline bool is_restored(const RelationData* table, uint64 statement, const FilterHandle* filter) {
  return unlikely(OidIsValid(restored_rows.table)) && restored_rows.filter == filter->relid &&
         is_restored_in(table->rd_id, statement);
}

// Do keys of rows deleted from the table stay in the filter?
inline bool keeps_keys(const RelationData* table) {
  return unlikely(restored_rows.keeps_keys) && topmost_table(table->rd_id) == restored_rows.table;
}

// Calls run() while rows of the table are settled.
template <typename Run>
void while_restoring(const RestoredRows& rows, const Run& run) {
  const RestoredRows outer = restored_rows;
  PG_TRY();
  {
    restored_rows = rows;
    run();
  }
  PG_FINALLY();
  { restored_rows = outer; }
  PG_END_TRY();
}

}  // namespace streamfilter::pg
