// What statements may do with the objects of the extension itself.
#pragma once

#include "pg/server/hooks.hpp"

struct Node;

namespace streamfilter::pg {

// ALTER EXTENSION streamfilter SET SCHEMA. PostgreSQL moves an extension only if all its members
// are in one schema; the internals, which are in another one, move along and come back.
void move_extension(UtilityCall* call);

// ---- heaps of saved state -----------------------------------------------------------------------

// Refuses statements that would move the heaps of saved state, change their form, or remove their
// rows.

// Raises 2BP01 if the statement is one of these.
void guard_state_heaps(Node* statement);

}  // namespace streamfilter::pg
