// Values of the SQL type streamfilter. As they are stored, they begin with a packed header, or have
// a compact form (compact_value.hpp); both are decoded here. Functions work on the core's block,
// with a varlena length in Header::host: states of aggregates are such blocks as they are.
#pragma once

extern "C" {
struct StringInfoData;
}

#include "core/filter/packed_header.hpp"
#include "pg/key/key_hash.hpp"

namespace streamfilter::pg {

// Limit for the memory of a value: its binary form, which adds a checksum, must still be one
// message.
constexpr uint64 kMaxValueMemory = MaxAllocSize - sizeof(Header);

// The filter inside a datum of type streamfilter (or of bytea, when an aggregate's state travels),
// detoasted and aligned in the current memory context if needed. Checks its header as far as memory
// safety depends on it; raises invalid_binary_representation.
const Header* get_value(Datum value);

// Its parameters alone, until the next value is read: does not read the rest of a value stored out
// of line.
const Parameters& parameters_of_value(Datum value);

// A filter with a packed header, where it lies. Reads parameters once for consecutive filters with
// the same ones. Raises invalid_binary_representation.
class StoredReader {
 public:
  // Its slices; nullptr: these bytes, with a length of four, have another form.
  const char* open(const struct varlena* bytes);
  // `size`: of the header.
  const Parameters& read_header(const struct varlena* bytes, Size* size);
  const Parameters& parameters() const { return parameters_.parameters(); }

 private:
  ParametersReader parameters_;
};

// A function's result, in the place of our filter, which is one no longer.
Datum stored_datum(Header* filter);

// Raises the problem of a stored value. Wrong bytes, or bytes of a later version, are an
// invalid_binary_representation, as from a client.
[[noreturn]] void raise_value(const Problem& problem);

// A palloc'd copy to work on.
Header* copy_value(const Header* value, MemoryContext context);

// An empty filter in `context`. Raises program_limit_exceeded if it would be too large.
Header* make_value(const Parameters& parameters, MemoryContext context);

// False, with a problem, for filters too large for a value.
bool fits_value(const Parameters& parameters, Problem& problem);

// Raises if the value is empty and cannot keep its promise. Such a value can be looked at and
// measured, but not used otherwise.
void require_promise(const Header* value);

// Merges a value into ours, serving interrupts. Raises the problems of core's can_merge. Call
// settle_value after the last of several.
void merge_value(Header* into, const Header* from);
void settle_value(Header* value);

// ---- keys that functions take as an argument of type "any"

// A hasher for argument `number` (from 0) of the running function, by the parser's type and
// collation; lives as long as the call site.
TypeHasher* make_key_hasher(FunctionCallInfo fcinfo, int number);

// The hasher, made at the first call and kept in fn_extra, which the caller must not use otherwise.
TypeHasher* key_hasher(FunctionCallInfo fcinfo, int number);

// Parameters as JSON, for streamfilter_info and streamfilter_stats.

// Appends the kind's parameters as a JSON object: {"max": 1, "k": 3, …}. `reason` says why the kind
// was chosen, `derived_now` what this version derives if another had derived the parameters;
// nullptr: nothing.
void append_parameters_json(StringInfoData* out, const Parameters& parameters,
                            const char* reason = nullptr, const Parameters* derived_now = nullptr);

// Parses JSON text into a jsonb datum.
Datum json_to_jsonb(const char* json);

}  // namespace streamfilter::pg
