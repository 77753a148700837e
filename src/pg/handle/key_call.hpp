// A call in a query that gives a filter a key value by value, such as streamfilter_seen(filter,
// key…). Resolves types once, and coerces values row by row (key_builder.hpp).
#pragma once

#include "pg/handle/key_builder.hpp"

namespace streamfilter::pg {

struct KeyCall {
  const char* function;  // for messages
  const Oid* types;      // types of the given values
  int count;
  bool may_leave_out_roles;
  const char* const* what;  // names of the values for messages; nullptr: arguments of the function
  MemoryContext context;    // context of what is resolved
  KeyBuilder keys;
};

// `function` and `types` must live as long as the call. Allocates in the current context.
void init_key_call(KeyCall* call, const char* function, const Oid* types, int count,
                   bool may_leave_out_roles);

// Readies the filter (use_filter) and resolves what has changed. Raises 42883 for a wrong number of
// values, and the errors of use_filter and make_coercion.
void resolve_key_call(KeyCall* call, Oid relid, Use use);
inline void begin_key_call(KeyCall* call, Oid relid, Use use) {
  FilterHandle* filter = call->keys.filter;
  if (likely(filter != nullptr && filter->relid == relid)) use_filter(filter, use);
  if (unlikely(!is_current(&call->keys) || filter->relid != relid))
    resolve_key_call(call, relid, use);
}

// The running function's call, whose arguments are the filter and then the values; kept in fn_extra
// and ready to use. Raises 22004 for a NULL filter, 0A000 for a VARIADIC array, and the errors of
// resolve_key_call.
KeyCall* key_call_site(FunctionCallInfo fcinfo, Use use, const char* function,
                       bool may_leave_out_roles);

}  // namespace streamfilter::pg
