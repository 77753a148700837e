// Hashes of keys, equal exactly for keys that SELECT DISTINCT calls equal.
#pragma once

#include "core/base/hash.hpp"
#include "core/format/parameters.hpp"
#include "pg/server/problem_report.hpp"

namespace streamfilter::pg {

// How values of a type under a collation are hashed. Prepared once per statement; lives in the
// memory context of its preparation.
struct TypeHasher;

// Prepares the hasher of a type (a domain counts as its base type), in the current memory context.
// Raises undefined_function (42883) with a HINT if the type has no default hash operator class;
// `what` names the culprit in that message, e.g. `column "tags" of filter "seen"`.
TypeHasher* make_type_hasher(Oid type, Oid collation, const char* what);

// Does the type still exist? Code that makes a value, such as a domain's check, may have dropped
// it. Fault 42704.
bool check_type(Oid type, const char* what, Fault& fault);

// Can values of the type be hashed? Fault 42883, as make_type_hasher raises it.
bool check_hashable(Oid type, const char* what, Fault& fault);

// Does the hasher call a function that is not trusted (hash_method.hpp)?
bool hasher_runs_untrusted_code(const TypeHasher* hasher);

// The hash of one value, detoasting where needed. May allocate in the current memory context when
// values are toasted or of types that are hashed by their operator class.
uint64 hash_datum(TypeHasher* hasher, Datum value, uint64 seed);

// A filter's rule for keys.
struct KeyRule {
  Nulls nulls;
  uint64 seed;
  bool integer;  // the key is one integer, used unhashed
};
KeyRule key_rule(const Parameters& parameters);

// Raises 42804 unless the columns make up a key that the rule allows.
void check_key_rule(TypeHasher* const* hashers, int count, const KeyRule& rule);

// Keys of one column whose values are words: hash_key for them without a call.
enum class WordKey : uint8 { no, int16, int32, int64, unsigned32 };
WordKey word_key(const TypeHasher* const* hashers, int count, const KeyRule& rule);
inline uint64 hash_word_key(WordKey key, Datum value, uint64 seed) {
  switch (key) {
    case WordKey::int16: return hash_word(static_cast<uint64>(DatumGetInt16(value)), seed);
    case WordKey::int32: return hash_word(static_cast<uint64>(DatumGetInt32(value)), seed);
    case WordKey::unsigned32: return hash_word(DatumGetUInt32(value), seed);
    default: return hash_word(static_cast<uint64>(DatumGetInt64(value)), seed);
  }
}

// The key hash of one or several columns: hashers[i] for values[i]. A single column is its own
// hash. Returns false if a column is NULL and the rule says that such a row has no key.
bool hash_key(TypeHasher* const* hashers, const Datum* values, const bool* isnull, int count,
              const KeyRule& rule, uint64* hash);

// The key hash of a value given as one argument (`filter @> key`): a record stands for its columns,
// so ROW(a, b) has the hash of the key (a, b). Same return value as hash_key.
bool hash_key_value(TypeHasher* hasher, Datum value, const KeyRule& rule, uint64* hash);

}  // namespace streamfilter::pg
