// Facts about the call of an aggregate's transition function.
#pragma once

#include "core/filter/filter.hpp"

namespace streamfilter::pg {

// Context of the state. Raises if the function was called outside an aggregate.
MemoryContext aggregate_context(FunctionCallInfo fcinfo);

// Is argument `number` of the aggregate (from 0) the same in all rows? For aggregates whose last
// argument is no record: an engine may run the transition function inside an aggregate of its own,
// and pass the arguments as a record.
bool is_constant_argument(FunctionCallInfo fcinfo, int number);

// Is it the same, too, whenever the aggregate runs again?
bool is_literal_argument(FunctionCallInfo fcinfo, int number);

// The prototype in argument `number` of the transition function. Both raise if it is NULL.
const Header* get_prototype(FunctionCallInfo fcinfo, int number);
void check_prototype(FunctionCallInfo fcinfo, int number);

// A number for the given prototype: if it is the same for two rows, so is the prototype, and need
// not be read. (A large value is given by its storage place.) 0: not known.
uint64 given_prototype(FunctionCallInfo fcinfo, int number);

[[noreturn]] void raise_changed_prototype();

}  // namespace streamfilter::pg
