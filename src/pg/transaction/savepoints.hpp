// What happens to the changes of a subtransaction at its end. Called by the coordinator
// (pg/commit); allocates nothing and cannot raise.
#pragma once

namespace streamfilter::pg {

// Gives the changes to the parent.
void keep_changes_of_subtransaction(SubTransactionId parent);
// Undoes the changes, and removes their keys from the table of keys in flight.
void retract_changes_of_subtransaction();

}  // namespace streamfilter::pg
