// The only file that includes server headers. First include of every file in src/pg: the server
// defines printf and its like as macros, so the C++ headers must come after it.
#pragma once

extern "C" {
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"
}

#include "pg/server/compat.hpp"

// Declares and opens an SQL-callable function: SF_FUNCTION(streamfilter_in) { … }
#define SF_FUNCTION(name)                   \
  extern "C" {                              \
  PGDLLEXPORT PG_FUNCTION_INFO_V1(name);    \
  PGDLLEXPORT Datum name(PG_FUNCTION_ARGS); \
  }                                         \
  Datum name([[maybe_unused]] PG_FUNCTION_ARGS)
