// Saves a transaction's changes, as part of the transaction: rows of the log, or an image of the
// whole filter. Called by the coordinator.
#pragma once

namespace streamfilter::pg {

// Call before the commit record. May raise.
void save_transaction_changes();

// Call before PREPARE: raises 0A000 if the transaction would write or delete more than rows of the
// log.
void refuse_to_prepare_saving();

// Call after the commit record: notes what is saved now. Cannot raise.
void note_saved_changes();

// Call after PREPARE: the rows are in the log, though not yet visible. Cannot raise.
void note_prepared_changes();

// Call last, however the transaction ends: sessions that write an image stop waiting for it. Cannot
// raise.
void end_saving();

}  // namespace streamfilter::pg
