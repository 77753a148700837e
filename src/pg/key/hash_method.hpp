// Which types can be keys, and how each is hashed.
#pragma once

#include "pg/server/problem_report.hpp"

namespace streamfilter::pg {

enum class Method : uint8 {
  boolean,
  character,  // "char"
  int16,      // integers are widened, so that smallint, integer and bigint agree
  int32,
  int64,
  unsigned32,  // oid and the like
  real4,       // widened, too
  real8,
  numeric,
  interval,
  timetz,
  jsonb,
  enumeration,
  fixed,    // a fixed number of bytes
  varlena,  // all bytes count
  padded,   // trailing blanks do not
  name,
  c_string,  // an untyped literal
  collated,  // text whose bytes do not decide equality
  array,
  range,
  multirange,
  record,
  procedure,    // the operator class, 64 bits
  procedure32,  // the operator class, 32 bits
};

inline bool is_integer(Oid type) { return type == INT2OID || type == INT4OID || type == INT8OID; }

// The method for a type that is not a domain.
Method method_of(Oid type);

// Does its operator class hash to 32 bits only? (Such a filter has more false positives.)
bool hashes_to_32_bits(Oid type);

// The first type inside `type` that cannot be hashed; InvalidOid if there is none. The types in an
// anonymous record are known only when one arrives. Visits every type once, however deep and often
// it is contained.
Oid find_unhashable(Oid type);

// Is `part`, which is no domain, the type itself or a type inside it?
bool contains_type(Oid type, Oid part);

// OIDs of collations that a key's hash may depend on and that do not come with the server: its own,
// those inside it, and the database's for a type with a hash function, such as citext.
List* collations_inside(Oid type, Oid collation);

// The first enum inside the type whose values have births (enum_births.hpp); InvalidOid: none.
Oid find_renamed_enum(Oid type);

// Fault 42883: a key of `type` cannot be hashed, because of `culprit` inside it.
bool unhashable(Oid type, Oid culprit, const char* what, Fault& fault);

// Types have code: casts, checks of domains, hash functions. Trusted code can only have been made
// by a superuser, so it matters little as whom it runs.

// Is the function built in, or written in C?
bool is_trusted_function(Oid function);

// Is it this extension's C function of this symbol, whatever its present name and schema? False if
// there is no such function.
bool is_own_function(Oid function, const char* symbol);

// Is it a base type, or an array of one? Creators of other types may give them casts and checks.
bool is_trusted_type(Oid type);

// Code that the owner of a filter or table has chosen (checks of a domain, a cast to a type, a hash
// function, a trigger, a default) runs as that owner, in a security-restricted operation, with only
// the relation's schema in search_path: so neither can the owner act as the role that brings a row,
// nor that role as the owner.
struct Caller {
  Oid user;
  int security;
  int guc_level;
};

// Switches to the owner of the relation. The abort of the (sub)transaction undoes that after an
// error.
Caller become_owner(Oid relation, Oid owner);
void return_to(const Caller& caller);

// Calls run() so. Owners may do with their own tables what they like: nothing changes for them.
template <typename Run>
void run_as_owner(Oid relation, Oid owner, const Run& run) {
  if (GetUserId() == owner) return run();
  const Caller caller = become_owner(relation, owner);
  run();
  return_to(caller);
}

}  // namespace streamfilter::pg
