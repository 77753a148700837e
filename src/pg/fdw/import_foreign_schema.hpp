// IMPORT FOREIGN SCHEMA: the filters that have slices in a schema of another server, as their
// producers know them.
#pragma once

extern "C" {
#include "foreign/fdwapi.h"
}

namespace streamfilter::pg {

// The CREATE FOREIGN TABLE commands (char*). Raises 08001 if the server cannot be reached, 42704 if
// a filter needs a server or a type that is not known here.
List* import_foreign_schema(ImportForeignSchemaStmt* statement, Oid server);

}  // namespace streamfilter::pg
