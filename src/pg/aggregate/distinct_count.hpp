// Counting distinct keys, for the aggregates that do.
#pragma once

#include "core/filter/filter.hpp"

namespace streamfilter::pg {

// What is counted with unless told otherwise: for any number of keys, nearly exactly while they are
// few.
constexpr char kCountingPrototype[] = "ell(memory=1MB)";

// Complete parameters. Raises what is wrong with the definition.
Parameters parse_prototype(const char* definition);

// How many distinct keys the filter has seen. Raises feature_not_supported if its kind cannot tell;
// warns if it is full, so that this is a lower bound.
int64 count_keys(const Header* filter);

}  // namespace streamfilter::pg
