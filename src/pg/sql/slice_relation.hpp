#pragma once

extern "C" {
#include "utils/builtins.h"
}

struct RangeVar;

namespace streamfilter::pg {

// What a producer wants; nullptr: the default.
struct SliceRelation {
  const char* definition;
  const char* conflict;
  const char* persistence;
  const char* producer;
};

// An argument of the functions that producers call; nullptr: NULL.
inline const char* text_argument(FunctionCallInfo fcinfo, int number) {
  return PG_ARGISNULL(number) ? nullptr : text_to_cstring(PG_GETARG_TEXT_PP(number));
}

// Runs CREATE FOREIGN TABLE for a relation with slices of another server's filter as if it had been
// typed, including its event triggers.
void make_slice_relation(RangeVar* name, const SliceRelation& wanted);

// Lets only one of several sessions make a relation, without blocking anybody else. Raises 42501
// without USAGE on the server of filters.
void lock_slice_relations();

// Locks a relation with slices of another server's filter exclusively: transactions that have used
// it have ended. Raises 42501 unless the user owns it, 42809 if it is no such relation.
struct FilterHandle* lock_slices(Oid relid);

}  // namespace streamfilter::pg
