// For the files of kind timer: the parameters, and what is derived from them.
#pragma once

#include <algorithm>

#include "core/format/slicing.hpp"
#include "core/kind/filter_kind.hpp"
#include "core/kind/ticks.hpp"
#include "core/model/slicing_model.hpp"

namespace streamfilter::timing {

enum Word : unsigned {
  kWindow,    // and its unit
  kTick = 2,  // and its unit
  kK = 4,
  kEqual,
  kGrow,
  kSize,
  kTicks,  // derived: w
  kTimerBits,
  kFilters,     // maximum number in a slice
  kCells,       // m of one filter
  kLimit,       // of its running timers or keys
  kTickLength,  // in microseconds, or accepted rows of one slice
  kLateness,    // and its unit
};

enum Grow : std::uint64_t { none, density, cardinality };

constexpr unsigned kMaxHashes = 32;

inline bool counts_rows(const Parameters& p) noexcept { return p.integer(kWindow + 1) != 0; }

// The timers of a key in a slice: all k, or fewer if it lies in several slices.
inline unsigned own_k(const Parameters& p) noexcept {
  return static_cast<unsigned>(bits_per_probe(p, p.integer(kK)));
}

// The state of a filter in a slice, in front of its timers.
struct FilterState {
  std::uint64_t keys;       // keys added
  std::uint64_t non_zero;   // timers that run or have not been swept yet
  std::uint64_t last_end;   // tick at which the last timer ends
  std::uint64_t swept;      // next timer to sweep
  std::uint64_t all_swept;  // tick at which all timers were last swept at once
};
static_assert(sizeof(FilterState) == 40);

inline std::uint64_t filter_bytes(const Parameters& p) noexcept {
  const std::uint64_t body = body_bytes(p);
  return p.integer(kGrow) == none ? body
                                  : std::min(body, p.integer(kSize) / p.slices & ~std::uint64_t{7});
}

inline double real_k(const Parameters& p) noexcept { return own_k(p); }
inline double real_m(const Parameters& p) noexcept {
  return static_cast<double>(p.integer(kCells));
}

inline double filters(const Parameters& p) noexcept {
  return static_cast<double>(p.integer(kFilters));
}

extern const OptionSpec kOptions[8];
bool derive(Definition& definition, Problem& problem) noexcept;
slicing_model::SlicingShape shape_of(const Parameters& p) noexcept;
// The greatest number of live keys in the slices that a key can be in; infinity: unknown.
double live_keys(const Parameters& p) noexcept;
// With `grow`: the number of keys that a filter takes before the next one opens.
double keys_of_one(const Parameters& p) noexcept;
double fpr_bound(const Parameters& p) noexcept;

}  // namespace streamfilter::timing
