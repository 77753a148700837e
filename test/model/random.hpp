// Random numbers that are the same everywhere (Vigna's splitmix64).
#pragma once

#include <cstdint>

namespace checker {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  // One of several streams that do not depend on each other.
  Random(uint64_t seed, uint64_t stream, uint64_t number = 0)
      : state_(Random(seed ^ Random(stream ^ Random(number).next()).next()).next()) {}

  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // 0 to below - 1.
  int below(int below) { return static_cast<int>(next() % static_cast<uint64_t>(below)); }
  int between(int low, int high) { return low + below(high - low + 1); }
  bool chance(double probability) {
    return static_cast<double>(next() >> 11) * 0x1p-53 < probability;
  }

 private:
  uint64_t state_;
};

}  // namespace checker
