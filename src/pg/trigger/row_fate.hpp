// What becomes of a row that a judging trigger has let pass. A key is remembered if and only if its
// row is stored, but after our trigger an index may refuse the row (ON CONFLICT), a later trigger
// may drop it, and so may the server of a foreign table. Then the key is taken back.
//
// The fate must be known before the next row is judged, since that may have the same key. A BEFORE
// trigger runs in the EState's per-tuple memory context, which ModifyTable, COPY and pg/ingest
// reset before they fetch the next row, while the slot still has this one. So a reset callback of
// that context looks at the slot: storing a row gives the slot a place (tts_tid), which the trigger
// has made invalid. ON CONFLICT DO UPDATE gives one to the slot of the new version. A place alone
// proves nothing: an insertion that lost a race leaves the place of a dead row, and a trigger can
// return a row that it has read elsewhere; a row of this transaction must be there.
//
// This order is a habit of the executor, not a contract. test/sql/row_fate_order.sql fails where it
// is another one, and so does a statement that brings the trigger a second row before the first
// one's fate is known, or empties the slot. What is left at the end of a statement is settled then
// (a cursor or SPI reads only some rows of RETURNING).
#pragma once

#include "pg/trigger/judge_row.hpp"

namespace streamfilter::pg {

// What can become of a passing row in one table of one statement.
struct FateRule {
  ResultRelInfo* target;  // of an INSERT; nullptr: not known
  bool conflicts;         // the INSERT has ON CONFLICT
  const char* later;  // names of triggers that fire later, and may change the key; nullptr: none
  List* key_indexes;  // indexes on the whole key; with ON CONFLICT
};

// Can something become of passing rows? If not, no rule is needed.
bool is_fate_open(const TriggerData* call, const RowSource& source);

// For a prepared judge; in the current memory context, which must be the statement's. nullptr:
// every row that passes is stored, or the statement fails, or an index has the row's key. Raises
// 42P17 for a later trigger where the fate of rows cannot be known: in an apply worker.
FateRule* find_fate_rule(const RowJudge* judge, const RowSource& source);

// Call it for each row that passes, before the trigger makes its tuple: `element` is its key,
// nullptr if it has none; `added`: the filter has the key from this row. Raises 0A000 if the
// trigger's last row is still of unknown fate.
void await_fate(const FateRule* rule, RowJudge* judge, const TriggerData* call,
                const Element* element, bool added);

// For pg/handle: the query or utility statement `number` ends. Settles its rows; forgets them, when
// an error has ended it, without raising.
void settle_fates(uint64 query);
void forget_fates(uint64 query);

}  // namespace streamfilter::pg
