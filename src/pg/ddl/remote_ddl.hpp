// Lets statements about a filter reach all servers that hold it in one transaction, or fail and say
// what to do.
#pragma once

#include "pg/server/postgres.hpp"

struct AlterTableStmt;

namespace streamfilter::pg {

// Types ALTER FOREIGN TABLE ... OPTIONS (changes); returns what was typed.
const char* alter_options(Oid relid, const char* changes);

// Call after ALTER. Raises 0A000 for what must not change while other servers hold the filter.
void check_may_alter(Oid relid, const AlterTableStmt* statement);

// Call then: alters the relations on its servers.
void alter_on_servers(Oid relid, const AlterTableStmt* statement);

// Call before REASSIGN OWNED: the filters on other servers that these roles own.
List* remote_filters_of(List* roles);

// Call after it: says what the filters' new owner needs to connect.
void check_new_owners(List* filters);

// Call before RENAME, SET SCHEMA or ALTER SCHEMA: afterwards the catalog no longer has the former
// name.
void note_name_before(Oid relid);

// Call after RENAME or SET SCHEMA.
void rename_on_servers(Oid relid);

// Call after ALTER SCHEMA ... RENAME: for all filters in the schema.
void rename_schema_on_servers(const char* before, const char* now);

// Call before DROP. In mode `off` it acts here only, with a WARNING.
void drop_on_servers(Oid relid);

}  // namespace streamfilter::pg
