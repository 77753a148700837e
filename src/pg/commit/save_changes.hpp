// What a transaction saves of its changes: rows of the log, or a snapshot of the whole filter,
// written as part of the transaction. Called by the coordinator.
#pragma once

namespace streamfilter::pg {

// Before the commit record. May raise.
void save_transaction_changes();

// Before a transaction is prepared: raises 0A000 if it would write or delete more than rows of the
// log.
void refuse_to_prepare_saving();

// After the commit record: remembers what is saved now. Cannot raise.
void note_saved_changes();

// After PREPARE: its rows are in the log, though nobody sees them yet. Cannot raise.
void note_prepared_changes();

// Last, however the transaction ends: sessions that save an image stop waiting for it.
// Cannot raise.
void end_saving();

}  // namespace streamfilter::pg
