// What DDL means for triggers of ours: mistakes show at once, not only at the first row.
#pragma once

extern "C" {
#include "nodes/parsenodes.h"
}

namespace streamfilter::pg {

// After a statement: binds a trigger that it has created to its filter, follows filters that it has
// renamed or moved, and raises whatever a trigger would raise for every row from now on. Of a
// trigger of others that was created to fire later it only warns, as of a missing right: a dump
// grants rights after it has created triggers. Needs neither preloading nor shared memory.
void check_triggers(Node* statement);

// Before ALTER, RENAME or SET SCHEMA of a filter, or of a table that takes repeats: locks the
// tables of its owner that use it. CREATE TRIGGER and statements that insert lock tables first,
// too; and while one waits here, insertions of others go on.
void lock_tables_of_triggers(Node* statement);

// Before a statement: raises if it drops what triggers need, without CASCADE. The server does the
// same wherever it knows of it.
void check_dropped(Node* statement);

}  // namespace streamfilter::pg
