// The server headers that many files need. First include of every file in src/pg: the server
// defines printf and its like as macros, so the C++ headers must come after it.
#pragma once

extern "C" {
#include "postgres.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_trigger.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/parsenodes.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
#include "utils/typcache.h"
}

#include "pg/server/compat.hpp"
#include "pg/server/idioms.hpp"
#include "pg/server/shared_memory.hpp"
#include "pg/server/syscache.hpp"

// Declares and opens an SQL-callable function: SF_FUNCTION(streamfilter_in) { … }
#define SF_FUNCTION(name)                   \
  extern "C" {                              \
  PGDLLEXPORT PG_FUNCTION_INFO_V1(name);    \
  PGDLLEXPORT Datum name(PG_FUNCTION_ARGS); \
  }                                         \
  Datum name([[maybe_unused]] PG_FUNCTION_ARGS)
