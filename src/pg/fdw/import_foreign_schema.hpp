// IMPORT FOREIGN SCHEMA: filters with slices in a schema of another server, as their producers know
// them.
#pragma once

namespace streamfilter::pg {

// The CREATE FOREIGN TABLE commands (char*). Raises 08001 if the server is unreachable, 42704 if a
// filter needs a server or a type that does not exist here.
List* import_foreign_schema(ImportForeignSchemaStmt* statement, Oid server);

}  // namespace streamfilter::pg
