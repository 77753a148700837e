// The formulas of "Streaming Quotient Filter: A Near Optimal Approximate Duplicate Detection
// Approach for Data Streams" (Dutta, Narang, Bera, VLDB 2013), §4, corrected, for remainders of r
// bits: r_prime are kept, and of the u = r - r_prime others the number of ones. Exact where
// the paper approximates; its Eq. 7 and 8 need r - r' instead of r under the root, its Eq. 10 and
// 14 keep one term of a sum.
#pragma once

#include <cstdint>

namespace streamfilter::quotient_model {

constexpr unsigned kMaxBuckets = 64;
constexpr unsigned kMaxRemainderBits = 24;

// C(n, i) for n up to kMaxRemainderBits.
std::uint32_t binomial(unsigned n, unsigned i) noexcept;

// Eq. 5-8: the probability that two random remainders have equal signatures,
// 2^-r' sum over i of (C(u, i) / 2^u)^2 = 2^-r' C(2u, u) / 4^u, about 2^-r' / sqrt(pi u).
double collision(unsigned r_prime, unsigned u) noexcept;

// Mean number of buckets in use in a row of k after `keys` distinct keys in `rows` rows.
double mean_fill(double keys, double rows, unsigned k) noexcept;

// Share of all keys whose row and signature at least one of `keys` random keys has.
double covered(unsigned r_prime, unsigned u, double keys, double rows) noexcept;

// A bound of the false-positive rate: each bucket in use equals a new key's signature with
// probability collision(). With keys > 0: after that many distinct keys; otherwise for ever.
double fpr_bound(unsigned r_prime, unsigned u, unsigned k, double keys, double rows) noexcept;

// The false-negative rate of a key that was last seen `gap` new keys ago, in rows that are full
// (Eq. 11-15 with all terms). Its signature s leaves and comes back as a Markov chain:
// (1 - pi_s)(1 - (1 - P_s / (pi_s rows))^gap), averaged over s. Random replacement under
// independent arrivals keeps a set of signatures with probability proportional to the product of
// theirs (Gelenbe 1973), hence pi_s by elementary symmetric polynomials of them.
double fnr(double gap, unsigned r_prime, unsigned u, unsigned k, double rows) noexcept;

// Dynamic SQF (§5.1), `rows` chains that share `buckets` buckets. On a stream of new keys a row is
// emptied when it was not accessed for `lifetime` elements: since the last such pause a row then
// had e^(lifetime/rows) - 1 accesses on average, and as many buckets.
double lifetime(double rows, double buckets) noexcept;

// Bound of the false-positive rate of dynamic SQF.
double dynamic_fpr_bound(unsigned r_prime, unsigned u, double keys, double rows,
                         double buckets) noexcept;

// The false-negative rate of dynamic SQF: a key last seen `gap` new keys ago is forgotten if its
// row once was not accessed for `lifetime` elements since; it may then be a false positive.
double dynamic_fnr(double gap, unsigned r_prime, unsigned u, double rows, double buckets) noexcept;

// Distinct keys that explain `used` different pairs of row and signature, if none was evicted.
// Infinity if every pair is used.
double distinct(unsigned r_prime, unsigned u, double used, double rows) noexcept;

}  // namespace streamfilter::quotient_model
