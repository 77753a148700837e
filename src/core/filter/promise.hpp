// Do the given options keep the given false-positive rate? Checks requests, not stored parameters,
// because another version may have had other formulas.
#pragma once

#include "core/kind/kind_registry.hpp"

namespace streamfilter {

// Is fpr_bound within fpr, if one is given?
bool keeps_promise(const Parameters& parameters) noexcept;

// The rate that a filter with these options should keep; 0: none, because they name other numbers
// of the kind and no fpr.
double promised_fpr(const Definition& asked) noexcept;

// Do given options contradict each other? `completed` is the result of `complete` for `asked`.
// Error: conflict; the hint names values that fit.
bool check_request(const Definition& asked, const Definition& completed, Problem& problem) noexcept;

// Are the parameters the best that could be derived for a request, but do not keep fpr? Then the
// request fails with this problem, unless it may break fpr.
bool check_promise(const Parameters& parameters, Problem& problem) noexcept;

// Parameters that would be derived now for these keys and fpr. Parameters do not tell given numbers
// from derived ones. False: neither was asked for, or nothing keeps them.
bool derive_again(const Parameters& parameters, Parameters& derived) noexcept;

// Does a filter hold more than its rate allows, so that a "repeat" may well be a new key?

// Tolerance, because rates are estimates and keys spread unevenly over slices.
constexpr double kOverfullRate = 1.1;  // times what was asked for

// Limit for what a key's places hold, computed once. For most keys one comparison of whole numbers
// decides: the sum of their probes' loads (FilterOps::load).
struct OverfullLimit {
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};

  std::uint64_t load = kNone;
  double rate = 1;

  bool is_none() const noexcept { return load == kNone; }
};

// For filters that should keep `fpr`; 0: no promise, so no limit.
OverfullLimit overfull_limit(const Parameters& parameters, double fpr) noexcept;

// The load of a key's places.
std::uint64_t load_of(const Header* header, std::uint64_t hash) noexcept;

// If the load is above the limit: does the false-positive rate of these places exceed it, too?
bool exceeds_rate(const Header* header, std::uint64_t hash, const OverfullLimit& limit) noexcept;

// True if either check fails.
inline bool is_overfull(const Header* header, std::uint64_t hash,
                        const OverfullLimit& limit) noexcept {
  return !limit.is_none() && load_of(header, hash) > limit.load &&
         exceeds_rate(header, hash, limit);
}

// Is any group of slices overfull that a key can lie in?
bool is_overfull(const Header* header, const OverfullLimit& limit) noexcept;

}  // namespace streamfilter
