// The commands that make an equal filter elsewhere.
#pragma once

namespace streamfilter::pg {

// CREATE FOREIGN TABLE IF NOT EXISTS, then its owner and the rights of others; as char*, with all
// names and types in full.
List* definition_commands(Oid filter);

// Appends OPTIONS (…), unless there are none.
void append_options(StringInfo text, List* options);

}  // namespace streamfilter::pg
