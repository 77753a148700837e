// Filters that age, from papers that the library does not follow; for comparison only. Keys are
// hashes.
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
// Dynamic Sets, 2010). A key found in neither, or in the older one only, is added to the younger.
// When the younger is half full, the older one is emptied and becomes the younger.
class TwoBuffers {
 public:
  TwoBuffers(std::uint64_t bits, unsigned k)
      : bits_(bits / 2),
        k_(k),
        limit_(static_cast<std::uint64_t>(std::log(2) * static_cast<double>(bits_) / k)),
        young_(bits_),
        old_(bits_) {}

  bool test(std::uint64_t hash) const { return contains(young_, hash) || contains(old_, hash); }

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
// ones. After every generation the oldest slice is emptied and becomes the youngest. A generation
// is as long as makes a slice half full by its last write. A key whose bits have left the youngest
// slices is added again.
class AgePartitioned {
 public:
  AgePartitioned(std::uint64_t bits, unsigned k, unsigned l)
      : slices_(k + l),
        k_(k),
        bits_(bits / (k + l)),
        generation_(
            static_cast<std::uint64_t>(std::fmax(1, std::log(2) * static_cast<double>(bits_) / k))),
        slice_(slices_, std::vector<bool>(bits_)) {}

  bool test(std::uint64_t hash) const { return youngest_match(hash) < slices_; }

  bool insert(std::uint64_t hash) {
    const unsigned start = youngest_match(hash);
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

  // The age where k consecutive bits begin; slices_ if there are none.
  unsigned youngest_match(std::uint64_t hash) const {
    unsigned run = 0;
    for (unsigned age = 0; age < slices_; ++age) {
      run = slice_[index(age)][bit_of(hash, index(age), bits_)] ? run + 1 : 0;
      if (run == k_) return age + 1 - k_;
    }
    return slices_;
  }

  unsigned slices_, k_;
  std::uint64_t bits_, generation_, count_ = 0;
  unsigned youngest_ = 0;
  std::vector<std::vector<bool>> slice_;
};

// How often a new key has k consecutive bits in k + l slices, in the course of a generation.
inline double age_partitioned_fpr(unsigned k, unsigned l) {
  constexpr unsigned kMoments = 8;
  double sum = 0;
  for (unsigned moment = 0; moment < kMoments; ++moment) {
    // run[b]: the probability that b consecutive bits end here, and k have not occurred before.
    std::vector<double> run(k, 0);
    run[0] = 1;
    double found = 0;
    for (unsigned age = 0; age < k + l; ++age) {
      const double generations = std::fmin(age + (moment + .5) / kMoments, k),
                   fill = 1 - std::exp2(-generations / k);
      double none = 0;
      for (const double probability : run) none += probability;
      found += run[k - 1] * fill;
      for (unsigned i = k - 1; i > 0; --i) run[i] = run[i - 1] * fill;
      run[0] = none * (1 - fill);
    }
    sum += found / kMoments;
  }
  return sum;
}

// A cuckoo filter (Fan, Andersen, Kaminsky, Mitzenmacher 2014) for a window of rows: fingerprints
// have a time stamp of `age_bits`. Buckets have four slots, a key has two buckets, and slots
// outside the window are free. There are as many slots as the window's keys need at a load of 95 %.
class TimestampedCuckoo {
 public:
  TimestampedCuckoo(std::uint64_t bits, unsigned fingerprint_bits, unsigned age_bits)
      : fingerprints_((1u << fingerprint_bits) - 1),
        ages_((1u << age_bits) - 1),
        buckets_(bits / (fingerprint_bits + age_bits) / kSlots),
        tick_(static_cast<std::uint64_t>(kLoad * static_cast<double>(buckets_ * kSlots) / ages_)),
        slots_(buckets_ * kSlots) {}

  bool test(std::uint64_t hash) const {
    const Key key = key_of(hash);
    return find(key.bucket, key) != nullptr || find(other(key.bucket, key), key) != nullptr;
  }

  bool insert(std::uint64_t hash) {
    advance();
    Key key = key_of(hash);
    const std::uint64_t second = other(key.bucket, key);
    for (const std::uint64_t bucket : {key.bucket, second})
      if (const Slot* slot = find(bucket, key)) {
        slots_[static_cast<std::size_t>(slot - slots_.data())].stamp = stamp();
        return true;
      }
    Slot moved{key.fingerprint, stamp()};
    if (put(key.bucket, moved) || put(second, moved)) return false;
    std::uint64_t bucket = second;
    for (unsigned kick = 0; kick < kKicks; ++kick) {
      random_ = streamfilter::mix64(random_ + streamfilter::kGoldenRatio);
      std::swap(moved, slots_[bucket * kSlots + random_ % kSlots]);
      bucket = other(bucket, {moved.fingerprint, bucket});
      if (put(bucket, moved)) return false;
    }
    return false;  // one is lost
  }

 private:
  static constexpr unsigned kSlots = 4, kKicks = 500;
  static constexpr double kLoad = .95;
  struct Slot {
    std::uint32_t fingerprint = 0, stamp = 0;  // 0: free
  };
  struct Key {
    std::uint32_t fingerprint;
    std::uint64_t bucket;
  };

  Key key_of(std::uint64_t hash) const {
    return {static_cast<std::uint32_t>(streamfilter::position(hash, 1, fingerprints_)) + 1,
            streamfilter::position(hash, 0, buckets_)};
  }
  // An involution: the two buckets add up to a number that the fingerprint gives.
  std::uint64_t other(std::uint64_t bucket, Key key) const {
    const std::uint64_t sum = streamfilter::position(key.fingerprint, 2, buckets_);
    return sum >= bucket ? sum - bucket : sum + buckets_ - bucket;
  }
  std::uint32_t stamp() const { return static_cast<std::uint32_t>(rows_ / tick_ % ages_); }
  const Slot* find(std::uint64_t bucket, Key key) const {
    for (unsigned i = 0; i < kSlots; ++i)
      if (slots_[bucket * kSlots + i].fingerprint == key.fingerprint)
        return &slots_[bucket * kSlots + i];
    return nullptr;
  }
  bool put(std::uint64_t bucket, const Slot& slot) {
    for (unsigned i = 0; i < kSlots; ++i)
      if (slots_[bucket * kSlots + i].fingerprint == 0) {
        slots_[bucket * kSlots + i] = slot;
        return true;
      }
    return false;
  }
  // With a new tick, all slots leave that have the stamp about to be used again.
  void advance() {
    if (++rows_ % tick_ != 0) return;
    const std::uint32_t again = stamp();
    for (Slot& slot : slots_)
      if (slot.fingerprint != 0 && slot.stamp == again) slot = {};
  }

  std::uint32_t fingerprints_, ages_;
  std::uint64_t buckets_, tick_, rows_ = 0, random_ = 1;
  std::vector<Slot> slots_;
};

}  // namespace bench
