// Values of the SQL type streamfilter: the core's block, with the varlena length in Header::host.
#pragma once

#include "core/filter/filter.hpp"

namespace streamfilter::pg {

// Memory of the largest value: its binary form, a checksum longer, must still be one message.
constexpr uint64 kMaxValueMemory = MaxAllocSize - 64;

// Values of kind ell that have few keys are stored, and returned, in a compact form
// (compact_value.hpp): it is decoded here.

// The filter inside a datum of type streamfilter (or of bytea, when an aggregate's state travels),
// detoasted and aligned in the current memory context where needed. Its header is checked as far as
// memory safety depends on it; raises invalid_binary_representation.
const Header* get_value(Datum value);

// Its header alone: of a value that is stored out of line the rest is not read.
const Header* get_value_header(Datum value);

// Raises the problem of a value as it is stored. Bytes that are wrong, or of a later version, are
// an invalid_binary_representation, as they are where a client sends them.
[[noreturn]] void raise_value(const Problem& problem);

// A palloc'd copy to work on.
Header* copy_value(const Header* value, MemoryContext context);

// An empty filter in `context`. Raises program_limit_exceeded if it would be too large.
Header* make_value(const Parameters& parameters, MemoryContext context);

// False, with a problem, for filters too large for a value.
bool fits_value(const Parameters& parameters, Problem& problem);

// Raises the problem of a value that nothing was put in yet and whose promise cannot be kept. It
// can be looked at and measured, and used for nothing else.
void require_promise(const Header* value);

// Merges a value into one of ours, giving way to interrupts. Raises what core's can_merge says.
// settle_value follows the last of several.
void merge_value(Header* into, const Header* from);
void settle_value(Header* value);

}  // namespace streamfilter::pg
