// What statements about a filter mean for the servers that hold it: they reach all of them in one
// transaction, or fail and say what to do.
#pragma once

#include "pg/server/postgres.hpp"

struct AlterTableStmt;

namespace streamfilter::pg {

// After ALTER: the relations on its servers follow. Options that the servers fix are added.
void alter_on_servers(Oid relid, const AlterTableStmt* statement);

// Before RENAME, SET SCHEMA or ALTER SCHEMA takes effect, which the catalog does not tell later.
void note_name_before(Oid relid);

// After RENAME or SET SCHEMA.
void rename_on_servers(Oid relid);

// After ALTER SCHEMA ... RENAME: of all filters in it.
void rename_schema_on_servers(const char* before, const char* now);

// Before DROP. In mode `off` it acts here only, with a WARNING.
void drop_on_servers(Oid relid);

}  // namespace streamfilter::pg
