// ALTER TYPE ... RENAME VALUE. Keys have the hashes of their labels, because OIDs of enum values
// differ between databases.
#pragma once

struct Node;

namespace streamfilter::pg {

// Call after a statement: raises 0A000 if it has renamed a label of an enum that a filter's key
// contains, or that a trigger of ours casts to a key.
void check_renamed_label(Node* statement);

}  // namespace streamfilter::pg
