// Counts distinct keys, for aggregates.
#pragma once

#include "core/filter/filter.hpp"
#include "core/kind/exa_log_log_words.hpp"

namespace streamfilter::pg {

// The default: for any number of keys, and nearly exact for few.
constexpr char kCountingPrototype[] = "ell(memory=1MB)";

// Complete parameters. Raises errors in the definition.
Parameters parse_prototype(const char* definition);

// Number of distinct keys that the filter has seen. Raises feature_not_supported if its kind cannot
// tell; warns if it is full, because the number is then a lower bound.
int64 count_keys(const Header* filter);

// The number of keys behind `count` words in `places` places (exa_log_log_words.hpp).
int64 count_distinct_words(const Parameters& parameters, const exa_log_log::Word* words,
                           uint32 places, uint32 count);

}  // namespace streamfilter::pg
