// The elements of a stream that filters are asked about.
#pragma once

#include <cstdint>

namespace streamfilter {

// One element of a stream.
struct Element {
  std::uint64_t hash;     // of its key; the key itself where Parameters::key_shift is not 0
  double importance = 0;  // the role 'importance' column
  std::int64_t time = 0;  // the role 'time' column or the clock, microseconds
};

}  // namespace streamfilter
