// Does a filter hold more than its rate allows, so that a "repeat" may well be a new key?
#pragma once

#include "core/format/slicing.hpp"
#include "core/kind/kind_registry.hpp"

namespace streamfilter {

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
