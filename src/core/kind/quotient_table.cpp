#include "core/kind/quotient_table.hpp"

#include <iterator>

#include "core/kind/kind_registry.hpp"

namespace streamfilter::quotient {
namespace {

// Row and remainder together have so many values.
double capacity_of(const Parameters& p) noexcept {
  return std::ldexp(to_real(p.integer(kSliceRows)), static_cast<int>(p.integer(kR)));
}

// Numbers of buckets in a row to choose from if `keys` is given.
constexpr unsigned kChoices[] = {1, 2, 3, 4, 6, 8, 12, 16};

unsigned ceil_log2(std::uint64_t n) noexcept {
  return n <= 1 ? 0 : 64 - static_cast<unsigned>(__builtin_clzll(n - 1));
}

std::uint64_t ceil_divide(std::uint64_t a, std::uint64_t b) noexcept {
  return a / b + (a % b != 0);
}

const char* kind_name(const Definition& definition) noexcept {
  return find_ops(definition.parameters.kind)->name;
}

unsigned next_choice(unsigned k) noexcept {
  const unsigned* next = std::upper_bound(std::begin(kChoices), std::end(kChoices), k);
  return next != std::end(kChoices) ? *next : quotient_model::kMaxBuckets + 1;
}

// The ranges that the options leave open.
struct Ranges {
  unsigned r_low, r_high, r_prime_low, r_prime_high, k_low, k_high;
};

bool check_given(const Definition& definition, Problem& problem) noexcept {
  const Parameters& p = definition.parameters;
  const std::uint64_t r = p.integer(kR), omega = p.integer(kOmega);
  const bool omega_given = definition.has(kOmega) && omega != 0;
  const std::uint64_t selected =
      omega_given ? static_cast<unsigned>(__builtin_popcountll(omega)) : p.integer(kRPrime);
  if (omega_given && definition.has(kRPrime) && selected != p.integer(kRPrime)) {
    problem.set(Error::conflict, "omega %llu selects %llu bits, not r_prime %llu", llu(omega),
                llu(selected), llu(p.integer(kRPrime)));
    return problem.add_hint("Leave out r_prime or omega.");
  }
  if (omega_given && definition.has(kR) && omega >> r != 0)
    return problem.set(Error::conflict,
                       "omega %llu selects bits that a remainder of r = %llu has not", llu(omega),
                       llu(r));
  if (definition.has(kR) && (definition.has(kRPrime) || omega_given) && selected >= r) {
    problem.set(Error::conflict, "r_prime must be less than r");
    return problem.add_detail(
        "The signature is %llu of the %llu bits of the remainder, and the "
        "number of ones among the others.",
        llu(selected), llu(r));
  }
  if (omega == low_bits(kMaxRemainderBits)) {
    problem.set(Error::conflict, "omega selects every bit of the longest remainder");
    return problem.add_hint("Leave at least one bit unselected.");
  }
  if (definition.has(kP) && definition.has(kR) && p.integer(kP) < r) {
    problem.set(Error::conflict, "p must be at least r");
    return problem.add_detail(
        "A fingerprint of p bits has r bits of remainder, and p - r select "
        "the row.");
  }
  if (p.kind == Kind::dsqf && definition.has(kRows) && definition.has(kP) && definition.has(kR) &&
      ceil_divide(p.integer(kRows), p.slices) >
          ceil_divide(std::uint64_t{1} << (p.integer(kP) - r), p.slices)) {
    problem.set(Error::conflict, "fingerprints of p = %llu bits do not reach %llu rows",
                llu(p.integer(kP)), llu(p.integer(kRows)));
    return problem.add_hint("Leave out p or rows.");
  }
  if (is_integer(definition) && p.keys == 0 && !definition.has(kP) && !definition.has(kR)) {
    problem.set(Error::conflict, "fingerprint \"integer\" needs to know the range of the keys");
    problem.add_detail("Keys that differ by a multiple of that range look equal.");
    return problem.add_hint(
        "Give option keys for keys from 0 to keys - 1, or p for keys of p "
        "bits.");
  }
  return true;
}

Ranges ranges_of(const Definition& definition) noexcept {
  const Parameters& p = definition.parameters;
  Ranges ranges{1, kMaxRemainderBits, 0, kMaxRemainderBits - 1, kDefaultBuckets, kDefaultBuckets};
  if (definition.has(kR)) ranges.r_low = ranges.r_high = static_cast<unsigned>(p.integer(kR));
  if (definition.has(kRPrime))
    ranges.r_prime_low = ranges.r_prime_high = static_cast<unsigned>(p.integer(kRPrime));
  if (const std::uint64_t omega = p.integer(kOmega); definition.has(kOmega) && omega != 0) {
    ranges.r_prime_low = ranges.r_prime_high = static_cast<unsigned>(__builtin_popcountll(omega));
    ranges.r_low = std::max(ranges.r_low, 64 - static_cast<unsigned>(__builtin_clzll(omega)));
  }
  if (p.kind == Kind::dsqf) return ranges;
  if (definition.has(kBuckets)) {
    ranges.k_low = ranges.k_high = static_cast<unsigned>(p.integer(kBuckets));
  } else if (!is_integer(definition) &&
             (!definition.has(kR) || ranges.r_prime_low != ranges.r_prime_high)) {
    ranges.k_low = 1;
    if (p.keys > 0) ranges.k_high = *std::rbegin(kChoices);
  }
  return ranges;
}

bool is_better(const QuotientShape& a, const QuotientShape& b, double fpr) noexcept {
  const bool a_keeps = a.bound <= fpr, b_keeps = b.bound <= fpr;
  if (a_keeps != b_keeps) return a_keeps;
  if (!a_keeps && a.row_buckets != b.row_buckets) return a.row_buckets == kDefaultBuckets;
  if (a_keeps && a.loss != b.loss) return a.loss < b.loss;
  return a.bound < b.bound;
}

bool does_not_fit(const Definition& definition, Problem& problem) noexcept {
  const Parameters& p = definition.parameters;
  problem.set(Error::too_small, "%u %s of %llu bytes cannot hold this filter of kind %s", p.slices,
              p.slices == 1 ? "slice" : "slices", llu(p.slice_bytes), kind_name(definition));
  if (is_integer(definition) && p.keys > 0)
    problem.add_detail("There must be a place for each of %llu integer keys.", llu(p.keys));
  else if (definition.has(kP))
    problem.add_detail("Fingerprints of p = %llu bits with r bits of remainder need 2^(p-r) rows.",
                       llu(p.integer(kP)));
  return problem.add_hint(
      "Use more memory or fewer slices%s.",
      definition.has(kP) || definition.has(kR) ? ", a smaller p or a larger r" : "");
}

bool cannot_keep(const Definition& definition, double least, Problem& problem) noexcept {
  problem.set(Error::conflict, "kind %s cannot keep fpr %g", kind_name(definition),
              definition.wanted_fpr());
  problem.add_detail("With the longest remainders its false-positive rate is at most %.3g.", least);
  return problem.add_hint("Use a larger fpr.");
}

// The number of integer keys that have a row and remainder of their own.
double universe(const Parameters& p) noexcept {
  const double capacity =
      std::ldexp(to_real(p.integer(kSliceRows)) * p.slices, static_cast<int>(p.integer(kR)));
  return std::min(capacity, std::ldexp(1, static_cast<int>(p.integer(kP))));
}

}  // namespace

bool is_injective(const Parameters& p) noexcept {
  if (p.integer(kR) != p.integer(kRPrime) + 1) return false;
  const double wanted =
      p.keys > 0 ? to_real(p.keys) : std::ldexp(1, static_cast<int>(p.integer(kP)));
  return universe(p) >= wanted;
}

bool set_rows(const Definition& definition, std::uint64_t fit, QuotientShape& shape,
              bool all) noexcept {
  const Parameters& p = definition.parameters;
  if (fit == 0) return false;
  const bool integer_keys = is_integer(definition) && p.keys > 0;
  if (definition.has(kP)) {
    shape.p = static_cast<unsigned>(p.integer(kP));
  } else {
    const unsigned of_keys = std::max(shape.r, ceil_log2(p.keys)),
                   of_rows = std::min(64u, ceil_log2(fit * p.slices) + shape.r);
    shape.p = !integer_keys ? of_rows : all ? std::max(of_keys, of_rows) : of_keys;
  }
  if (shape.p < shape.r) return false;
  // There are 2^(p-r) rows (§3.1). If slightly fewer fit, and r is given, the last rows are left
  // out and their keys share the first ones.
  shape.rows = std::min(fit, ceil_divide(std::uint64_t{1} << (shape.p - shape.r), p.slices));
  const double capacity = std::ldexp(to_real(shape.rows) * p.slices, static_cast<int>(shape.r));
  const double fingerprints = std::ldexp(1, static_cast<int>(shape.p));
  if (integer_keys) return capacity >= std::min(fingerprints, to_real(p.keys));
  if (is_integer(definition) && !definition.has(kR)) return capacity >= fingerprints;
  return capacity > fingerprints / 2;
}

bool derive(Definition& definition, Appraise appraise, QuotientShape& shape,
            Problem& problem) noexcept {
  if (!check_given(definition, problem)) return false;
  Parameters& p = definition.parameters;
  const Ranges ranges = ranges_of(definition);
  const bool integer = is_integer(definition);
  const double fpr = definition.wanted_fpr();
  bool found = false;
  double least = 1;  // the lowest rate of all shapes
  for (unsigned r = ranges.r_low; r <= ranges.r_high; ++r)
    for (unsigned r_prime = ranges.r_prime_low; r_prime <= ranges.r_prime_high && r_prime < r;
         ++r_prime) {
      // With one unselected bit, different remainders have different signatures.
      if (integer && r_prime + 1 != r && ranges.r_prime_low != ranges.r_prime_high) continue;
      for (unsigned k = ranges.k_low; k <= ranges.k_high; k = next_choice(k)) {
        QuotientShape candidate{};
        candidate.r = r;
        candidate.r_prime = r_prime;
        candidate.row_buckets = k;
        if (!appraise(definition, candidate)) continue;
        least = std::min(least, candidate.bound);
        if (!found || is_better(candidate, shape, fpr)) shape = candidate;
        found = true;
      }
    }
  if (!found) return does_not_fit(definition, problem);
  const bool nothing_given = (definition.given & ~(WordSet{1} << kFingerprint)) == 0;
  if (shape.bound > fpr && nothing_given && !definition.break_fpr(words(kFingerprint)))
    return cannot_keep(definition, least, problem);
  p.set_integer(kFingerprint, integer ? Fingerprint::kInteger : Fingerprint::kHash);
  p.set_integer(kR, shape.r);
  p.set_integer(kRPrime, shape.r_prime);
  p.set_integer(kP, shape.p);
  if (!definition.has(kOmega) || p.integer(kOmega) == 0)
    p.set_integer(kOmega, low_bits(shape.r_prime) << (shape.r - shape.r_prime));
  p.set_integer(kSliceRows, shape.rows);
  p.key_shift = integer ? static_cast<std::uint8_t>(shape.r) : 0;
  return true;
}

double distinct(const Parameters& p, std::uint64_t used) noexcept {
  if (p.key_shift != 0)
    return is_injective(p) ? to_real(used) : std::numeric_limits<double>::quiet_NaN();
  const Signatures signatures(p);
  return quotient_model::distinct(signatures.selected(), signatures.unselected(), to_real(used),
                                  to_real(p.integer(kSliceRows)));
}

std::uint64_t load(const Parameters&, ConstSlice slice) noexcept { return weight(*slice.state); }

double rate_at(const Parameters& p, double load) noexcept {
  return std::min(load / capacity_of(p), 1.0);
}

double fpr_now(const Parameters& p, std::uint64_t used, std::uint64_t weight) noexcept {
  const double capacity = capacity_of(p);
  // A stored integer key has a fingerprint of its own, so that fingerprint cannot be a new key's.
  const double known = p.key_shift != 0 ? to_real(used) : 0;
  return known < capacity ? (to_real(weight) - known) / (capacity - known) : 0;
}

}  // namespace streamfilter::quotient
