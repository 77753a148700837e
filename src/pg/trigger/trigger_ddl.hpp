// Checks our triggers at DDL, so that mistakes show at once and not only at the first row.
#pragma once

namespace streamfilter::pg {

// Call after a statement: binds a trigger that it has created, updates names of renamed or moved
// filters, and raises any error that a trigger would raise for every row from now on. Only warns of
// another extension's or user's trigger that fires later, and of a missing right: a dump grants
// rights after it has created triggers. Needs neither preloading nor shared memory.
void check_triggers(Node* statement);

// Call before ALTER, RENAME or SET SCHEMA of a filter, or of a table that takes repeats: locks the
// tables of its owner that use it. CREATE TRIGGER and INSERT also lock tables first, so the order
// is the same. While this waits, INSERTs of others go on.
void lock_tables_of_triggers(Node* statement);

// Call before a statement: raises an error if it drops, without CASCADE, what triggers need.
// PostgreSQL does the same for dependencies that it knows.
void check_dropped(Node* statement);

}  // namespace streamfilter::pg
