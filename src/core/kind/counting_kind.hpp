// For kinds sbf and ibf: a slice of regions with m counting cells each. An element sets k cells of
// its region, which is a line, or with layout scattered the slice.
#pragma once

#include "core/format/counting_cells.hpp"
#include "core/kind/filter_kind.hpp"
#include "core/model/importance_model.hpp"

namespace streamfilter {

// Two merged filters of counting cells can hold more than one filter may. Then cells are
// decremented, in the kind's own way, until the rate that it keeps for ever holds again.

// For each value, how many cells of a region may have that value or more: the numbers reached in
// the long run if all keys are new and most important. Once all numbers are lower, no stream can
// exceed them, so the kind's bound still holds.
struct CellLimits {
  CellLimits(unsigned largest, const importance_model::Setting& setting, double m) noexcept
      : max(largest) {
    double share[importance_model::kMaxLevels + 1], sum = 0;
    importance_model::stationary(importance_model::most_important(max), setting, share);
    for (unsigned value = max; value > 0; --value) {
      sum += share[value];
      at_least[value] = static_cast<std::uint64_t>(std::floor(sum * m));
    }
  }

  // True if more cells than allowed have some value or more. `count[v]` cells have value v.
  bool exceeded_by(const std::uint64_t* count) const noexcept {
    std::uint64_t sum = 0;
    for (unsigned value = max; value > 0; --value) {
      sum += count[value];
      if (sum > at_least[value]) return true;
    }
    return false;
  }

  unsigned max;
  std::uint64_t at_least[importance_model::kMaxLevels + 1] = {};
};

// Subtracts 1 from cells: from runs of `decrements` adjacent cells with a random start, or with
// `by_value` from cells drawn at random and taken with probability 1/value. Returns how many became
// zero.
template <unsigned bits>
std::uint64_t thin_out(const PackedCells<bits>& cells, std::uint64_t m, std::uint64_t decrements,
                       bool by_value, const CellLimits& limits, std::uint64_t& random) noexcept {
  std::uint64_t count[importance_model::kMaxLevels + 1] = {}, emptied = 0;
  for (std::uint64_t i = 0; i < m; ++i) ++count[cells.get(i)];
  while (limits.exceeded_by(count)) {
    std::uint64_t at = random_below(random, m);
    for (std::uint64_t left = by_value ? 1 : decrements; left > 0; --left) {
      const unsigned value = cells.get(at);
      if (value > 0 && (!by_value || value == 1 || random_below(random, value) == 0)) {
        cells.set(at, value - 1);
        --count[value];
        ++count[value - 1];
        emptied += value == 1;
      }
      if (++at == m) at = 0;
    }
  }
  return emptied;
}

// ---- a slice ------------------------------------------------------------------------------------

struct CellShape {
  std::uint64_t m, k;
  unsigned bits, max;  // of a cell
};

auto& non_zero(auto& state) noexcept { return state.own[0]; }  // cells of the slice

inline std::uint64_t regions_of_slice(const Parameters& p) noexcept {
  return body_bytes(p) / region_bytes(p, body_bytes(p));
}

// For kinds that decrement cells for every element. Sets the problem; the kind adds its reason.
inline bool are_too_few_cells(const Parameters& p, const CellShape& shape, std::uint64_t decrements,
                              const char* kind, Problem& problem) noexcept {
  if (decrements > 0 && decrements <= shape.m && shape.k < shape.m) return false;
  problem.set(Error::too_small, "kind %s would have to decrement more cells than it has", kind);
  problem.add_hint(p.layout == Layout::blocked
                       ? "Use layout scattered, a smaller max or a larger fpr."
                       : "Use more memory, fewer slices or a larger fpr.");
  return true;
}

template <CellShape (*shape)(const Parameters&) noexcept>
struct CountingKind {
  static void prefetch(const Parameters& p, ConstSlice slice, const Element& element,
                       Prefetches& prefetches) noexcept {
    const CellShape s = shape(p);
    prefetch_cells(p, slice.body(), slice.bytes, element.hash, static_cast<unsigned>(s.k), s.m,
                   s.bits, prefetches);
  }

  static bool test(const Parameters& p, ConstSlice slice, const Element& element) noexcept {
    const CellShape s = shape(p);
    return with_cell_width(s.bits, [&](auto width) {
      return test_cells<width.value>(p, slice, element.hash, s.k, s.m);
    });
  }

  // Each cell takes the larger value. If that fills a region beyond its stable point, random cells
  // are decremented in the kind's own way, as if new keys had come.
  static void merge(const Parameters& p, Slice into, ConstSlice from,
                    const importance_model::Setting& setting) noexcept {
    const CellShape s = shape(p);
    const CellLimits limits(s.max, setting, to_real(s.m));
    merge_cells(into, from, region_bytes(p, into.bytes), s.bits, s.m, s.k, non_zero(*into.state),
                non_zero(*from.state), [&](unsigned char* region) {
                  return with_cell_width(s.bits, [&](auto width) {
                    return thin_out(PackedCells<width.value>(region), s.m,
                                    static_cast<std::uint64_t>(setting.p),
                                    setting.deletion == importance_model::Deletion::value, limits,
                                    into.state->random);
                  });
                });
  }

  static bool check(const Parameters& p, ConstSlice slice) noexcept {
    const CellShape s = shape(p);
    const std::uint64_t bytes = region_bytes(p, slice.bytes);
    if (s.m != cells_in(bytes, s.bits)) return false;
    std::uint64_t count;
    return check_regions(slice, bytes, s.bits, s.m, s.max, count) &&
           count == non_zero(*slice.state);
  }

  // By chance, or after a resize, a slice can have more non-zero cells than its stable point.
  static std::uint64_t load(const Parameters&, ConstSlice slice) noexcept {
    return non_zero(*slice.state);
  }
  static double share(const Parameters& p, double load) noexcept {
    return std::min(load / to_real(shape(p).m * regions_of_slice(p)), 1.0);
  }
  static double rate_at(const Parameters& p, double load) noexcept {
    return std::pow(share(p, load), to_real(shape(p).k));
  }

  // A key is counted as distinct when it is reported as new.
  static Estimate estimate(const Parameters& p, ConstSlice slice) noexcept {
    const double load = to_real(non_zero(*slice.state));
    return {share(p, load), rate_at(p, load), to_real(slice.state->inserted_new)};
  }

  static std::uint64_t places(const Parameters& p) noexcept {
    return p.layout == Layout::blocked ? regions_of_slice(p) : shape(p).m;
  }

  static void spread(const Parameters& old, ConstSlice from, const Parameters& p, Slice into,
                     std::uint64_t layer) noexcept {
    non_zero(*into.state) =
        spread_regions(p, from, into, shape(old).m, shape(p).m, shape(p).bits, layer);
  }
};

}  // namespace streamfilter
