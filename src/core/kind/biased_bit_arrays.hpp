// The structure of Bera et al. 2012: k Bloom filters of s bits, with one hash function each. A
// slice holds the number of ones of every array (k words), then the arrays, each a whole number of
// words.
#pragma once

#include "core/bits/packed_words.hpp"
#include "core/kind/filter_kind.hpp"
#include "core/kind/kind_tools.hpp"
#include "core/model/biased_model.hpp"

namespace streamfilter {

constexpr unsigned kMaxArrays = 32;

// `Byte` is const-qualified for reading.
template <typename Byte = unsigned char>
class BitArrays {
 public:
  BitArrays(Byte* body, unsigned k, std::uint64_t s) noexcept
      : counters_(body), bits_(body + 8 * k), k_(k), s_(s) {}

  unsigned k() const noexcept { return k_; }
  std::uint64_t s() const noexcept { return s_; }

  std::uint64_t ones(unsigned i) const noexcept {
    std::uint64_t count;
    std::memcpy(&count, counters_ + 8 * i, 8);
    return count;
  }
  void set_ones(unsigned i, std::uint64_t count) const noexcept {
    std::memcpy(counters_ + 8 * i, &count, 8);
  }

  bool get(unsigned i, std::uint64_t at) const noexcept { return bits_.get(i * s_ + at) != 0; }

  void set(unsigned i, std::uint64_t at) const noexcept {
    if (get(i, at)) return;
    bits_.set(i * s_ + at, 1);
    set_ones(i, ones(i) + 1);
  }

  void clear(unsigned i, std::uint64_t at) const noexcept {
    if (!get(i, at)) return;
    bits_.set(i * s_ + at, 0);
    set_ones(i, ones(i) - 1);
  }

  // Clears a random bit of array i, set or not.
  void clear_random(unsigned i, std::uint64_t& random) const noexcept {
    clear(i, random_below(random, s_));
  }

 private:
  Byte* counters_;
  PackedCells<1, Byte> bits_;
  unsigned k_;
  std::uint64_t s_;
};

// The bits h_1 … h_k of a key.
class KeyBits {
 public:
  KeyBits(std::uint64_t hash, unsigned k, std::uint64_t s) noexcept : k_(k) {
    for (unsigned i = 0; i < k; ++i) at_[i] = position(hash, i, s);
  }

  std::uint64_t operator[](unsigned i) const noexcept { return at_[i]; }

  template <typename Byte>
  bool all_set(const BitArrays<Byte>& arrays) const noexcept {
    bool all = true;
    for (unsigned i = 0; i < k_; ++i) all &= arrays.get(i, at_[i]);
    return all;
  }

  void set(const BitArrays<>& arrays) const noexcept {
    for (unsigned i = 0; i < k_; ++i) arrays.set(i, at_[i]);
  }

 private:
  unsigned k_;
  std::uint64_t at_[kMaxArrays];
};

// The functions that all kinds of such arrays share. Every kind keeps k in word kArrays of its
// parameters, and s in word kArrayBits.
namespace biased_bit_arrays {

enum Word : unsigned { kArrays, kArrayBits };

constexpr OptionSpec kArraysOption = integer_option(kArrays, "k", 1, kMaxArrays);

inline BitArrays<> of(const Parameters& p, Slice slice) noexcept {
  return {slice.body(), static_cast<unsigned>(p.integer(kArrays)), p.integer(kArrayBits)};
}
inline BitArrays<const unsigned char> of(const Parameters& p, ConstSlice slice) noexcept {
  return {slice.body(), static_cast<unsigned>(p.integer(kArrays)), p.integer(kArrayBits)};
}

// The number of distinct keys up to which a slice keeps its promise; infinity: no limit.
double promised_keys(const Parameters& p) noexcept;

// Derives s from k. Refuses slices without room for k arrays.
bool derive_bits(Parameters& p, Problem& problem) noexcept;

bool test(const Parameters& p, ConstSlice slice, const Element& element) noexcept;

// Sets each bit that either slice has set. These bits are still among those that the keys of both
// would set in a Bloom filter. If an array then has more ones than `limit_load` allows in the long
// run, random ones are reset.
void merge(const Parameters& p, Slice into, ConstSlice from, double limit_load) noexcept;

// Converts the arrays to another size, bit by bit.
void spread(const Parameters& old, ConstSlice from, const Parameters& p, Slice into,
            std::uint64_t layer) noexcept;
// The false-positive rate of the arrays once they have their share of Parameters::keys.
double fpr_to_come(const Parameters& p, ConstSlice slice) noexcept;

constexpr Resizing resizing(double (*fpr_to_come)(const Parameters&,
                                                  ConstSlice) noexcept) noexcept {
  return {
      .sized = words(kArrayBits),
      .hashes = words(kArrays),
      .places = [](const Parameters& p) noexcept { return p.integer(kArrayBits); },
      .spread = spread,
      .fpr_to_come = fpr_to_come,
  };
}

bool check(const Parameters& p, ConstSlice slice) noexcept;

// The number of ones in all arrays. The false-positive rate is the product of the arrays' shares of
// ones, which is at most the power of their mean.
std::uint64_t load(const Parameters& p, ConstSlice slice) noexcept;
double rate_at(const Parameters& p, double load) noexcept;

// Counts a key as distinct when it is reported as new.
Estimate estimate(const Parameters& p, ConstSlice slice) noexcept;

// What follows from a kind's scheme and numbers, by the model.
template <biased_model::Setting (*setting)(const Parameters&) noexcept>
struct Modelled {
  static double fpr_bound(const Parameters& p) noexcept {
    return biased_model::fpr_bound(setting(p), promised_keys(p));
  }
  static double fnr_at(const Parameters& p, double gap) noexcept {
    return biased_model::fnr_bound(setting(p), gap / p.slices);
  }
  static Prediction predict(const Parameters& p, const Stream& stream) noexcept {
    return biased_model::predict(setting(p), stream.part(p.slices));
  }
  static void merge(const Parameters& p, Slice into, ConstSlice from) noexcept {
    biased_bit_arrays::merge(p, into, from, biased_model::limit_of_array(setting(p)));
  }
};

}  // namespace biased_bit_arrays
}  // namespace streamfilter
