// The slicings that tests run through, and filters that are sliced so.
#pragma once

#include <string>

#include "unit/support/filters.hpp"
#include "unit/support/streams.hpp"

namespace unit {

// Every way of cutting a filter.
inline const std::string kSlicings[] = {
    "slices=40",
    "slices=40, slicing=vertical",
    "slices='8,5', slicing=diced",
    "slices='8,5', slicing=diced, dice=vh",
    "slices=40, k1=2, k2=3",
    "slices=40, k1=3, k2=2",
};

// 40 slices of this size.
inline std::string memory(unsigned body) { return std::to_string(64 + 40 * (64 + body)); }

inline std::string bloom(const std::string& slicing, unsigned body,
                         const std::string& more = "k=6") {
  return "bloom(memory=" + memory(body) + ", " + slicing + ", " + more + ")";
}

inline streamfilter::Element numbered(std::uint64_t number, std::uint64_t seed) {
  return {streamfilter::hash_word(number, seed)};
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace unit
