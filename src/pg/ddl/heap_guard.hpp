// The heaps that hold what is saved stay where they are found, as they are read, and keep their
// rows: statements that would change that are refused.
#pragma once

struct Node;

namespace streamfilter::pg {

// Raises 2BP01 if the statement is one of these.
void guard_state_heaps(Node* statement);

}  // namespace streamfilter::pg
