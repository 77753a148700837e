// Hashes of single values of PostgreSQL's own types, equal exactly for equal values. (Hash
// functions of their operator classes are not used where they ignore something, such as the sign of
// a numeric: two keys that always collide are no approximation.)
#pragma once

#include "core/base/hash.hpp"

namespace streamfilter::pg {

uint64 hash_numeric(Datum value, uint64 seed);
using streamfilter::hash_interval;
uint64 hash_interval(Datum value, uint64 seed);
uint64 hash_timetz(Datum value, uint64 seed);
uint64 hash_jsonb(Datum value, uint64 seed);

// The bytes of a text, or of an untyped literal, in place.
struct Bytes {
  const char* data;
  Size length;
  void* copy;  // detoasted copy, to be freed; or nullptr
};
enum class Form : uint8 { varlena, padded, name, c_string };
Bytes open_bytes(Datum value, Form form);

inline uint64 hash_text(Datum value, Form form, uint64 seed) {
  // Most texts lie there as they are.
  if (const void* text = DatumGetPointer(value);
      form == Form::varlena && !VARATT_IS_COMPRESSED(text) && !VARATT_IS_EXTERNAL(text))
    return hash_bytes(VARDATA_ANY(text), VARSIZE_ANY_EXHDR(text), seed);
  const Bytes bytes = open_bytes(value, form);
  const uint64 hash = hash_bytes(bytes.data, bytes.length, seed);
  if (bytes.copy != nullptr) pfree(bytes.copy);
  return hash;
}

}  // namespace streamfilter::pg
