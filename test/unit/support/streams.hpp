// Streams of keys. Keys are numbered; a filter sees the hash of the number.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "core/kind/kind_registry.hpp"

namespace unit {

#ifdef __SANITIZE_ADDRESS__
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

// The length of a stream; a tenth of it where every access is checked.
constexpr std::uint64_t scaled(std::uint64_t elements) {
  return kSanitized ? elements / 10 : elements;
}

inline streamfilter::Element key(std::uint64_t number) {
  return {streamfilter::hash_word(number, 0)};
}

inline streamfilter::Element at(std::uint64_t number, std::int64_t time) {
  return {key(number).hash, 0, time};
}

inline streamfilter::Element with_importance(std::uint64_t number, double importance) {
  return {key(number).hash, importance};
}

// Draws with replacement from keys 0 … universe-1, with the exact truth about each.
class UniformStream {
 public:
  UniformStream(std::uint64_t universe, std::uint64_t seed) : seen_(universe), random_(seed) {}

  streamfilter::Element next() {
    const std::uint64_t number = streamfilter::scale(random_(), seen_.size());
    is_repeat_ = seen_[number];
    seen_[number] = true;
    return key(number);
  }

  // Was the last element seen before?
  bool is_repeat() const { return is_repeat_; }

 private:
  std::vector<bool> seen_;
  std::mt19937_64 random_;
  bool is_repeat_ = false;
};

}  // namespace unit
