// The commands that make an equal filter elsewhere.
#pragma once

extern "C" {
#include "nodes/pg_list.h"
}

namespace streamfilter::pg {

// CREATE FOREIGN TABLE IF NOT EXISTS, then its owner and the rights of others; as char*, with all
// names and types in full.
List* definition_commands(Oid filter);

}  // namespace streamfilter::pg
