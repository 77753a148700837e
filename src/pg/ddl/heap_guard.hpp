// Refuses statements that would move the heaps of saved state, change their form, or remove their
// rows.
#pragma once

struct Node;

namespace streamfilter::pg {

// Raises 2BP01 if the statement is one of these.
void guard_state_heaps(Node* statement);

}  // namespace streamfilter::pg
