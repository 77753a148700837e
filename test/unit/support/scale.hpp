// How much a test does: less where every access of the core is checked.
#pragma once

#include <cstdint>

namespace unit {

extern const bool kSanitized;  // the core, not this test

// The length of a stream.
inline std::uint64_t scaled(std::uint64_t elements) {
  return kSanitized ? elements / 10 : elements;
}

}  // namespace unit
