// The Bloom filter (Bloom 1970; sbf.txt §2.3): m bits, K of them set for every key, nothing ever
// cleared. No false negatives; the false-positive rate grows with the number of distinct keys.
#include <algorithm>
#include <cmath>

#include "streamfilter/core/kinds.hpp"
#include "streamfilter/core/packed_cells.hpp"
#include "streamfilter/core/slice_counts.hpp"

#include "streamfilter/core/no_postgres.hpp"

namespace streamfilter {
namespace {

enum Slot : unsigned { kK, kBits };  // kBits: m, the bits of one slice

constexpr double kMostHashes = 64;

// More hashes than this are never derived: they would cost time and save false positives that are
// fewer than one in ten thousand million already.
constexpr double kMostDerivedHashes = 16;

constexpr OptionSpec kOptions[] = {
    {kK, "k", OptionType::integer, 1, kMostHashes, nullptr, 0},
};

using Bits = PackedCells<1>;
using ConstBits = PackedCells<1, const unsigned char>;

std::uint64_t& ones(SliceState& state) noexcept { return state.own[0]; }
std::uint64_t ones(const SliceState& state) noexcept { return state.own[0]; }

// sbf.txt §2.3: FP = (1 - (1 - 1/m)^(Kn))^K for n keys in m bits. Keys spread over several slices
// unevenly; the fullest is taken.
double rate(double k, double keys, double slices, double bits) noexcept {
  const double n = keys_of_fullest(keys, slices);
  return std::pow(-std::expm1(k * n * std::log1p(-1 / bits)), k);
}

// K = ln(2) m/n, the one of the two whole numbers beside it that gives the lower rate.
std::uint64_t best_k(double keys, double slices, double bits) noexcept {
  const double exact = std::log(2) * bits * slices / keys;
  const double low = std::clamp(std::floor(exact), 1.0, kMostDerivedHashes);
  const double high = std::clamp(std::ceil(exact), 1.0, kMostDerivedHashes);
  const bool take_low = rate(low, keys, slices, bits) <= rate(high, keys, slices, bits);
  return static_cast<std::uint64_t>(take_low ? low : high);
}

bool derive(Definition& definition, Problem& problem) noexcept {
  Parameters& p = definition.parameters;
  const std::uint64_t bits = Bits::capacity(p.slice_bytes - sizeof(SliceState));
  p.set_integer(kBits, bits);
  if (definition.has(kK)) return true;
  if (p.keys == 0) {
    problem.set(Error::conflict, "kind bloom needs to know how many distinct keys to expect");
    problem.add_detail(
        "A Bloom filter never forgets, so it keeps its false-positive rate only up "
        "to a number of keys.");
    return problem.add_hint(
        "Give option keys (or k), or use a kind that forgets old keys, such as "
        "sbf.");
  }
  const double keys = static_cast<double>(p.keys), slices = p.slices, m = static_cast<double>(bits);
  p.set_integer(kK, best_k(keys, slices, m));
  return true;
}

bool test(const Parameters& p, ConstSlice slice, const Element& element) noexcept {
  const ConstBits bits(slice.body);
  const std::uint64_t m = p.integer(kBits);
  const unsigned k = static_cast<unsigned>(p.integer(kK));
  for (unsigned i = 0; i < k; ++i)
    if (bits.get(position(element.hash, i, m)) == 0) return false;
  return true;
}

bool insert(const Parameters& p, Slice slice, const Element& element) noexcept {
  const Bits bits(slice.body);
  const std::uint64_t m = p.integer(kBits);
  const unsigned k = static_cast<unsigned>(p.integer(kK));
  std::uint64_t fresh = 0;
  for (unsigned i = 0; i < k; ++i) {
    const std::uint64_t at = position(element.hash, i, m);
    if (bits.get(at) != 0) continue;
    bits.set(at, 1);
    ++fresh;
  }
  ones(*slice.state) += fresh;
  return fresh == 0;
}

std::uint64_t count_ones(const unsigned char* body, std::uint64_t bytes) noexcept {
  std::uint64_t count = 0;
  for (std::uint64_t i = 0; i < bytes; i += 8) {
    std::uint64_t word;
    std::memcpy(&word, body + i, 8);
    count += static_cast<std::uint64_t>(__builtin_popcountll(word));
  }
  return count;
}

void merge(const Parameters&, Slice into, ConstSlice from) noexcept {
  for (std::uint64_t i = 0; i < into.bytes; ++i) into.body[i] |= from.body[i];
  ones(*into.state) = count_ones(into.body, into.bytes);
  into.state->novel += from.state->novel;
}

bool check(const Parameters& p, ConstSlice slice) noexcept {
  return p.integer(kBits) == Bits::capacity(slice.bytes) &&
         ones(*slice.state) == count_ones(slice.body, slice.bytes);
}

// The number of distinct keys that fills the bits so far, n = -m/K ln(1 - ones/m): linear counting
// (Whang et al. 1990), for K bits a key. Infinity when every bit is set.
Estimate estimate(const Parameters& p, ConstSlice slice) noexcept {
  const double m = static_cast<double>(p.integer(kBits)), k = static_cast<double>(p.integer(kK));
  const double fill = static_cast<double>(ones(*slice.state)) / m;
  return {fill, std::pow(fill, k), -m / k * std::log1p(-fill)};
}

double fpr_bound(const Parameters& p) noexcept {
  if (p.keys == 0) return 1;
  return rate(static_cast<double>(p.integer(kK)), static_cast<double>(p.keys), p.slices,
              static_cast<double>(p.integer(kBits)));
}

double fnr_at(const Parameters&, double) noexcept { return 0; }

}  // namespace

const FilterOps bloom_ops = {
    Kind::bloom,
    "bloom",
    "classic Bloom filter: no false negatives, for a known number of distinct keys",
    kOptions,
    sizeof kOptions / sizeof *kOptions,
    /*has_blocked_layout=*/false,
    /*keeps_fpr_forever=*/false,
    /*uses_importance=*/false,
    /*uses_time=*/false,
    derive,
    /*init=*/nullptr,
    test,
    insert,
    /*erase=*/nullptr,
    merge,
    check,
    estimate,
    fpr_bound,
    fnr_at,
};

}  // namespace streamfilter
