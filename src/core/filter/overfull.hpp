// Does a filter hold more than its rate allows? Then a repeat may well be a new key.
#pragma once

#include "core/format/slicing.hpp"
#include "core/kind/kind_registry.hpp"

namespace streamfilter {

// Rates are estimates, and keys spread over slices unevenly.
constexpr double kOverfullRate = 1.1;  // times what was asked for

// What a key's places may hold, computed once. Most keys are answered by one comparison of whole
// numbers, of the loads (FilterOps::load) of their probes, summed.
struct OverfullLimit {
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};

  std::uint64_t load = kNone;
  double rate = 1;

  bool is_none() const noexcept { return load == kNone; }
};

// For filters that are to keep `fpr`; 0: none was promised, so there is no limit.
OverfullLimit overfull_limit(const Parameters& parameters, double fpr) noexcept;

// The load of the places of a key.
std::uint64_t load_of(const Header* header, std::uint64_t hash) noexcept;

// Once that is above the limit: is the false-positive rate of those places?
bool exceeds_rate(const Header* header, std::uint64_t hash, const OverfullLimit& limit) noexcept;

// The two together.
inline bool is_overfull(const Header* header, std::uint64_t hash,
                        const OverfullLimit& limit) noexcept {
  return !limit.is_none() && load_of(header, hash) > limit.load &&
         exceeds_rate(header, hash, limit);
}

// Is any group of slices that a key can lie in?
bool is_overfull(const Header* header, const OverfullLimit& limit) noexcept;

}  // namespace streamfilter
