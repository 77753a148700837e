// What ALTER of a foreign server means for the filters that it holds.
#pragma once

struct AlterForeignServerStmt;

namespace streamfilter::pg {

// Call after the ALTER: raises 42P17 if filters cannot stay on the server as it is now.
void check_altered_server(const char* name);

// Call after a RENAME: raises 2BP01 if filters name the server.
void check_renamed_server(const char* before, const char* name);

// Call before the ALTER: does it lead elsewhere? Further hosts behind the former ones do not.
bool changes_address(const AlterForeignServerStmt* statement);

// Call after such an ALTER: what the filters of the server know is at the former address.
void warn_of_new_address(const AlterForeignServerStmt* statement);

}  // namespace streamfilter::pg
