// What the transition functions of aggregates ask about their call.
#pragma once

#include "core/filter/filter.hpp"

namespace streamfilter::pg {

// Where the state lives. Raises if the function was called outside an aggregate.
MemoryContext aggregate_context(FunctionCallInfo fcinfo);

// Is argument `number` of the aggregate (from 0) the same in all rows? For aggregates whose last
// argument is no record: where it is one, an engine runs the transition function inside an
// aggregate of its own and hands over the arguments as that row.
bool is_constant_argument(FunctionCallInfo fcinfo, int number);

// Is it the same, too, whenever the aggregate runs again?
bool is_literal_argument(FunctionCallInfo fcinfo, int number);

// The prototype in argument `number` of the transition function. Raises if it is NULL.
const Header* get_prototype(FunctionCallInfo fcinfo, int number);

// What argument `number` is given as: the same for two rows, it is the same prototype, and need not
// be read. (A large value is given as where it is stored.) 0: cannot be told.
uint64 given_prototype(FunctionCallInfo fcinfo, int number);

[[noreturn]] void raise_changed_prototype();

}  // namespace streamfilter::pg
