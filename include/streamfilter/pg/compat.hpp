// Differences between PostgreSQL 15 and 18. Every test of PG_VERSION_NUM is here.
#pragma once

#if PG_VERSION_NUM < 150000
#error "streamfilter needs PostgreSQL 15 or later"
#endif

#if PG_VERSION_NUM >= 160000
extern "C" {
#include "varatt.h"
}
#endif

// Input functions report bad input softly where the server can (pg_input_is_valid, COPY ON_ERROR).
#if PG_VERSION_NUM >= 160000
extern "C" {
#include "nodes/miscnodes.h"
}
#define SF_INPUT_ERROR(fcinfo, dummy, ...) ereturn((fcinfo)->context, dummy, __VA_ARGS__)
#else
#define SF_INPUT_ERROR(fcinfo, dummy, ...) \
  do {                                     \
    ereport(ERROR, __VA_ARGS__);           \
    return dummy;                          \
  } while (0)
#endif
