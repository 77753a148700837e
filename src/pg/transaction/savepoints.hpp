// The changes of a subtransaction when it ends. Called by the coordinator (pg/commit); allocates
// nothing and cannot raise.
#pragma once

namespace streamfilter::pg {

// They are its parent's now.
void keep_changes_of_subtransaction(SubTransactionId parent);
// They are undone, and the keys taken out of the table of keys in flight.
void retract_changes_of_subtransaction();

}  // namespace streamfilter::pg
