// A place in a query where a key is given to a filter, value by value: streamfilter_seen(filter,
// key…) and its like. Types are resolved once, values are coerced row by row.
#pragma once

#include "streamfilter/pg/coercion.hpp"
#include "streamfilter/pg/named_filter.hpp"

namespace streamfilter::pg {

struct KeyCall {
  const char* function;  // for messages
  const Oid* types;      // of the values given
  int count;
  bool may_leave_out_roles;
  MemoryContext context;  // of what is resolved
  NamedFilter* filter;
  uint64 version;
  const FilterColumn** columns;  // one per value
  Coercion** coercions;
  // One place per value; reused by every row.
  Datum* values;
  bool* isnull;
};

// `function` and `types` must live as long as the call. Allocates in the current context.
void init_key_call(KeyCall* call, const char* function, const Oid* types, int count,
                   bool may_leave_out_roles);

// Makes the filter ready (use_filter) and resolves what has changed. Raises 42883 for a wrong number
// of values, and what use_filter and make_coercion raise.
void begin_key_call(KeyCall* call, Oid relid, Use use);

// The element that the values stand for. False: its key is NULL. Needs begin_key_call.
bool read_key(KeyCall* call, const NullableDatum* values, Element* element);

}  // namespace streamfilter::pg
