// A place in a query where a key is given to a filter, value by value: streamfilter_seen(filter,
// key…) and its like. Types are resolved once, values are coerced row by row (key_builder.hpp).
#pragma once

#include "pg/handle/key_builder.hpp"

namespace streamfilter::pg {

struct KeyCall {
  const char* function;  // for messages
  const Oid* types;      // of the values given
  int count;
  bool may_leave_out_roles;
  const char* const* what;  // the values are, for messages; nullptr: arguments of the function
  MemoryContext context;    // of what is resolved
  KeyBuilder keys;
};

// `function` and `types` must live as long as the call. Allocates in the current context.
void init_key_call(KeyCall* call, const char* function, const Oid* types, int count,
                   bool may_leave_out_roles);

// Makes the filter ready (use_filter) and resolves what has changed. Raises 42883 for a wrong
// number of values, and what use_filter and make_coercion raise.
void resolve_key_call(KeyCall* call, Oid relid, Use use);
inline void begin_key_call(KeyCall* call, Oid relid, Use use) {
  FilterHandle* filter = call->keys.filter;
  if (likely(filter != nullptr && filter->relid == relid)) use_filter(filter, use);
  if (unlikely(!is_current(&call->keys) || filter->relid != relid))
    resolve_key_call(call, relid, use);
}

// The call of the running function, which takes the filter first and then the values, kept in
// fn_extra and ready to use. Raises 22004 for a NULL filter, 0A000 for a VARIADIC array, and as
// begin_key_call.
KeyCall* key_call_site(FunctionCallInfo fcinfo, Use use, const char* function,
                       bool may_leave_out_roles);

}  // namespace streamfilter::pg
