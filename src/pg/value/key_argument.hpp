// Keys that functions take as an argument of type "any".
#pragma once

#include "pg/key/key_hash.hpp"

namespace streamfilter::pg {

// A hasher for argument `number` (from 0) of the running function, by the parser's type and
// collation; lives as long as the call site.
TypeHasher* make_key_hasher(FunctionCallInfo fcinfo, int number);

// The hasher, made at the first call and kept in fn_extra, which the caller must not use otherwise.
TypeHasher* key_hasher(FunctionCallInfo fcinfo, int number);

}  // namespace streamfilter::pg
