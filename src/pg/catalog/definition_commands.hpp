// The commands that make a filter elsewhere as it is here.
#pragma once

extern "C" {
#include "nodes/pg_list.h"
}

namespace streamfilter::pg {

// CREATE FOREIGN TABLE IF NOT EXISTS first, then its owner and the rights of others; as char*, with
// every name and type in full.
List* definition_commands(Oid filter);

}  // namespace streamfilter::pg
