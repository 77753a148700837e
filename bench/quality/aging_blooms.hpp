// Bloom filters that age, as they are known outside of the papers that the library follows; for
// comparison only. Keys are hashes.
#pragma once

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/hash.hpp"

namespace bench {

// The bits of a key: independent hash functions, each over 0..bits-1.
inline std::uint64_t bit_of(std::uint64_t hash, unsigned function, std::uint64_t bits) {
  return streamfilter::position(hash, function, bits);
}

// Two Bloom filters of half the memory (Yoon, Aging Bloom Filter with Two Active Buffers for
// Dynamic Sets, 2010). A key that is in neither, or in the older one only, is added to the younger;
// when that is half full, the older one is emptied and becomes the younger.
class TwoBuffers {
 public:
  TwoBuffers(std::uint64_t bits, unsigned k)
      : bits_(bits / 2),
        k_(k),
        limit_(static_cast<std::uint64_t>(std::log(2) * static_cast<double>(bits_) / k)),
        young_(bits_),
        old_(bits_) {}

  bool insert(std::uint64_t hash) {
    if (contains(young_, hash)) return true;
    const bool seen = contains(old_, hash);
    if (count_ >= limit_) {
      std::swap(young_, old_);
      young_.assign(bits_, false);
      count_ = 0;
    }
    for (unsigned i = 0; i < k_; ++i) young_[bit_of(hash, i, bits_)] = true;
    ++count_;
    return seen;
  }

 private:
  bool contains(const std::vector<bool>& filter, std::uint64_t hash) const {
    for (unsigned i = 0; i < k_; ++i)
      if (!filter[bit_of(hash, i, bits_)]) return false;
    return true;
  }

  std::uint64_t bits_;
  unsigned k_;
  std::uint64_t limit_, count_ = 0;
  std::vector<bool> young_, old_;
};

// Age-partitioned Bloom filters (Shtul, Baquero, Almeida 2020): k + l slices in the order of age. A
// key sets one bit in each of the youngest k, and is seen if it has its bits in any k consecutive
// ones. After every generation the oldest slice is emptied and becomes the youngest; a generation
// is as long as leaves a slice half full when it is no longer written. A key whose bits are no
// longer in the youngest ones is added again.
class AgePartitioned {
 public:
  AgePartitioned(std::uint64_t bits, unsigned k, unsigned l)
      : slices_(k + l),
        k_(k),
        bits_(bits / (k + l)),
        generation_(
            static_cast<std::uint64_t>(std::fmax(1, std::log(2) * static_cast<double>(bits_) / k))),
        slice_(slices_, std::vector<bool>(bits_)) {}

  bool insert(std::uint64_t hash) {
    unsigned run = 0, start = slices_;  // of the youngest match
    for (unsigned age = 0; age < slices_ && start == slices_; ++age) {
      run = slice(age)[bit_of(hash, index(age), bits_)] ? run + 1 : 0;
      if (run == k_) start = age + 1 - k_;
    }
    if (start == 0) return true;
    if (count_++ == generation_) {
      youngest_ = (youngest_ + slices_ - 1) % slices_;
      slice(0).assign(bits_, false);
      count_ = 1;
    }
    for (unsigned age = 0; age < k_; ++age) slice(age)[bit_of(hash, index(age), bits_)] = true;
    return start < slices_;
  }

 private:
  // A slice keeps its hash function while it ages.
  unsigned index(unsigned age) const { return (youngest_ + age) % slices_; }
  std::vector<bool>& slice(unsigned age) { return slice_[index(age)]; }

  unsigned slices_, k_;
  std::uint64_t bits_, generation_, count_ = 0;
  unsigned youngest_ = 0;
  std::vector<std::vector<bool>> slice_;
};

}  // namespace bench
