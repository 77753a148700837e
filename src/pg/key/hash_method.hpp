// Which types can be keys, and how each is hashed.
#pragma once

extern "C" {
#include "access/tupdesc.h"
}

#include "pg/server/problem_report.hpp"

namespace streamfilter::pg {

enum class Method : uint8 {
  boolean,
  character,  // "char"
  int16,      // integers are widened, so that smallint, integer and bigint agree
  int32,
  int64,
  unsigned32,  // oid and its like
  real4,       // widened, too
  real8,
  numeric,
  interval,
  timetz,
  jsonb,
  enumeration,
  fixed,    // bytes of a fixed number
  varlena,  // all bytes count
  padded,   // trailing blanks do not
  name,
  c_string,  // an untyped literal
  collated,  // text whose bytes do not decide what is equal
  array,
  range,
  multirange,
  record,
  procedure,    // the operator class, 64 bits
  procedure32,  // the operator class, 32 bits
};

// How a type that is not a domain is hashed.
Method method_of(Oid type);

// Does its operator class hash to 32 bits only? (A filter over it has more false positives.)
bool hashes_to_32_bits(Oid type);

// The columns of a named composite type, to be released.
TupleDesc row_columns(Oid type);

// The first type inside `type` that cannot be hashed; InvalidOid if there is none. What is in an
// anonymous record is only known when one arrives. Every type is looked at once, however deep and
// often it is contained.
Oid find_unhashable(Oid type);

// Fault 42883: a key of `type` cannot be hashed, because of `culprit` inside it.
bool unhashable(Oid type, Oid culprit, const char* what, Fault& fault);

}  // namespace streamfilter::pg
