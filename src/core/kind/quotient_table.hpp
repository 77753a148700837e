// For kinds sqf and dsqf (Dutta et al. 2013 §3). Quotienting splits a key's fingerprint into a row
// and a remainder of r bits. The table keeps a signature: r' selected bits, and the number of ones
// among the others. (The paper counts the ones of all r bits: signatures are equal in the same
// cases, but there are more values.)
#pragma once

#include "core/bits/packed_words.hpp"
#include "core/kind/filter_kind.hpp"
#include "core/kind/kind_tools.hpp"
#include "core/model/quotient_model.hpp"

namespace streamfilter::quotient {

// The paper names r, r', k (buckets), p and Omega.
enum Word : unsigned {
  kR,
  kRPrime,
  kBuckets,      // sqf: of a row; dsqf: of all rows together
  kP,            // bits of the fingerprint, ceil(log2(rows 2^r))
  kOmega,        // selected bits of the remainder
  kFingerprint,  // kHash, kInteger
  kRows,         // dsqf: of all slices together
  kSliceRows,    // derived: rows of one slice
  kSliceBuckets  // derived, dsqf: buckets of one slice
};

enum Fingerprint : std::uint64_t { kHash, kInteger };

constexpr unsigned kMaxRemainderBits = quotient_model::kMaxRemainderBits;
constexpr unsigned kDefaultBuckets = 4;  // of a row, §6.1

inline constexpr const char* kFingerprints[] = {"hash", "integer", nullptr};
inline constexpr OptionSpec kROption = integer_option(kR, "r", 1, kMaxRemainderBits);
inline constexpr OptionSpec kRPrimeOption =
    integer_option(kRPrime, "r_prime", 0, kMaxRemainderBits - 1);
inline constexpr OptionSpec kPOption = integer_option(kP, "p", 1, 64);
inline constexpr OptionSpec kOmegaOption =
    integer_option(kOmega, "omega", 1, (1u << kMaxRemainderBits) - 1);
inline constexpr OptionSpec kFingerprintOption = {
    kFingerprint, "fingerprint", OptionType::choice, 0, 0, kFingerprints};

// Buckets in use, and the weight of their signatures.
auto& used(auto& state) noexcept { return state.own[0]; }
auto& weight(auto& state) noexcept { return state.own[1]; }

inline bool is_integer(const Definition& definition) noexcept {
  return definition.has(kFingerprint) &&
         definition.parameters.integer(kFingerprint) == Fingerprint::kInteger;
}

// The signatures of remainders of r bits. Code 0 stands for an empty bucket.
class Signatures {
 public:
  Signatures(unsigned r, unsigned r_prime) noexcept : r_prime_(r_prime), unselected_(r - r_prime) {}

  explicit Signatures(const Parameters& p) noexcept
      : Signatures(static_cast<unsigned>(p.integer(kR)),
                   static_cast<unsigned>(p.integer(kRPrime))) {}

  unsigned selected() const noexcept { return r_prime_; }
  unsigned unselected() const noexcept { return unselected_; }

  // The number of codes: they are 1 to count().
  std::uint64_t count() const noexcept { return std::uint64_t{unselected_ + 1} << r_prime_; }

  // The width of a code in bits.
  unsigned width() const noexcept { return 64 - static_cast<unsigned>(__builtin_clzll(count())); }

  std::uint64_t code(std::uint64_t remainder, std::uint64_t omega) const noexcept {
    const std::uint64_t chosen = gather(remainder & omega, omega);
    const std::uint64_t others = remainder & ~omega;
    return 1 + chosen * (unselected_ + 1) + static_cast<unsigned>(__builtin_popcountll(others));
  }

  // The number of remainders with this signature. Its sum over the stored signatures gives the
  // false-positive rate.
  std::uint64_t weight(std::uint64_t code) const noexcept {
    return quotient_model::binomial(unselected_,
                                    static_cast<unsigned>((code - 1) % (unselected_ + 1)));
  }

 private:
  // Moves the bits of `word` that `mask` selects together; `word` has no others.
  static std::uint64_t gather(std::uint64_t word, std::uint64_t mask) noexcept {
    if (mask == 0) return 0;
    const int shift = __builtin_ctzll(mask);
    mask >>= shift;
    word >>= shift;
    if ((mask & (mask + 1)) == 0) return word;
    std::uint64_t result = 0;
    for (unsigned at = 0; mask != 0; mask &= mask - 1, ++at)
      result |= (word >> __builtin_ctzll(mask) & 1) << at;
    return result;
  }

  unsigned r_prime_;
  unsigned unselected_;
};

// The place of a key in its slice.
struct RowEntry {
  std::uint64_t row;
  std::uint64_t code;
};

inline RowEntry locate(const Parameters& p, const Element& element) noexcept {
  const unsigned r = static_cast<unsigned>(p.integer(kR));
  const std::uint64_t rows = p.integer(kSliceRows);
  const Signatures signatures(p);
  if (p.key_shift == 0)
    return {position(element.hash, 0, rows),
            signatures.code(position(element.hash, 1, std::uint64_t{1} << r), p.integer(kOmega))};
  const std::uint64_t fingerprint = element.hash & low_bits(static_cast<unsigned>(p.integer(kP)));
  return {(fingerprint >> r) / p.slices % rows,
          signatures.code(fingerprint & low_bits(r), p.integer(kOmega))};
}

// True if each integer key, 0 to keys-1 or 0 to 2^p-1, has a row and signature of its own.
bool is_injective(const Parameters& p) noexcept;

// A layout of a slice.
struct QuotientShape {
  unsigned r, r_prime;
  unsigned row_buckets;  // sqf: of a row; dsqf: mean of all rows
  unsigned p;
  std::uint64_t rows;     // of a slice
  std::uint64_t buckets;  // of a slice; only dsqf
  double bound;           // of the false-positive rate
  double loss;            // to minimise while the bound is kept
};

// Sets the fingerprint bits and rows for shape.r, if `fit` rows of a slice are possible; with
// `all`, uses all of them. False: too few for the fingerprint bits or integer keys.
bool set_rows(const Definition& definition, std::uint64_t fit, QuotientShape& shape,
              bool all = false) noexcept;

// Completes a shape with given r, r_prime and row_buckets. False: it does not fit.
using Appraise = bool (*)(const Definition&, QuotientShape&) noexcept;

// Checks the given options, finds the shape that keeps fpr with the least loss (or if none can, the
// one with the lowest bound), and sets the parameters that both kinds have.
bool derive(Definition& definition, Appraise appraise, QuotientShape& shape,
            Problem& problem) noexcept;

// The distinct keys behind `used` signatures of a slice that has evicted none; NaN: unknown.
double distinct(const Parameters& p, std::uint64_t used) noexcept;

// FilterOps::load and rate_at: the total weight of the signatures, which grows with the rate.
std::uint64_t load(const Parameters& p, ConstSlice slice) noexcept;
double rate_at(const Parameters& p, double load) noexcept;

// The false-positive rate of a slice with `used` signatures of total weight `weight`.
double fpr_now(const Parameters& p, std::uint64_t used, std::uint64_t weight) noexcept;

}  // namespace streamfilter::quotient
