// The commands that make an equal filter elsewhere.
#pragma once

extern "C" {
#include "lib/stringinfo.h"
#include "nodes/pg_list.h"
}

namespace streamfilter::pg {

// CREATE FOREIGN TABLE IF NOT EXISTS, then its owner and the rights of others; as char*, with all
// names and types in full.
List* definition_commands(Oid filter);

// Appends OPTIONS (…), unless there are none.
void append_options(StringInfo text, List* options);

}  // namespace streamfilter::pg
