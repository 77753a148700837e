// Figures 10 and 11 of Koloniari et al. 2011: filters that grow in bursts.
#pragma once

#include <algorithm>

#include "bench/papers/distributed/distributed_setting.hpp"
#include "core/model/timing_model.hpp"

namespace bench::distributed {

inline constexpr double kHashes = 4;
inline constexpr unsigned kMaxFilters = 64;
inline constexpr std::uint64_t kWindows[] = {100, 500, 1000};
inline constexpr unsigned kBursts[] = {2, 5};
inline constexpr std::uint64_t kEventsPerSlot = 4;

struct Growth {
  std::uint64_t window;
  unsigned burst;
  bool density;
  std::vector<unsigned> filters;  // after each slot
  // Probes with new keys, and the mean and variance that their hits should have.
  double probed = 0, hits = 0, sum = 0, variance = 0;
  Errors errors;

  unsigned most(double from, double to) const {
    const double n = static_cast<double>(filters.size());
    return *std::max_element(filters.begin() + static_cast<std::ptrdiff_t>(from * n),
                             filters.begin() + static_cast<std::ptrdiff_t>(to * n));
  }
  double mean(double from, double to) const {
    const double n = static_cast<double>(filters.size());
    const std::size_t first = static_cast<std::size_t>(from * n),
                      last = static_cast<std::size_t>(to * n);
    double total = 0;
    for (std::size_t i = first; i < last; ++i) total += filters[i];
    return total / static_cast<double>(last - first);
  }
  double before() const { return mean(1. / 6, 1. / 3); }
  double extra() const { return mean(.5, 2. / 3) - before(); }
  // The number of slots from the burst until there are as few filters as before.
  std::uint64_t lasts() const {
    const std::size_t end = filters.size() * 2 / 3;
    const unsigned usual = most(1. / 6, 1. / 3);
    std::size_t i = end;
    while (i < filters.size() && filters[i] > usual) ++i;
    return i - end;
  }
  // How often the number of filters changes while the rate is the usual one.
  unsigned changes() const {
    unsigned count = 0;
    for (std::size_t i = filters.size() / 6; i < filters.size() / 3; ++i)
      count += filters[i] != filters[i - 1];
    return count;
  }
  std::string setting() const {
    return text("%s, w %llu, burst x%u", density ? "density" : "cardinality", Wide(window), burst);
  }
};

// Filters of the size that one window of 100 slots needs at the usual rate.
inline std::uint64_t filter_bytes(std::uint64_t universe, std::uint64_t window) {
  const double m = timers_for(kHashes, live_keys(universe, kWindows[0] * kEventsPerSlot), kRate);
  unsigned bits = 1;  // of a timer, as in kind timer
  while (std::uint64_t{1} << bits <= window + 1 + (window + 4) / 4) ++bits;
  return (static_cast<std::uint64_t>(m * bits / 8) + 48 + 7) / 8 * 8;
}

inline void grow(Growth& growth, const Scale& scale, std::uint64_t universe) {
  const std::uint64_t size = filter_bytes(universe, growth.window);
  Filter filter(text(
      "timer(memory=%llu, size=%llu, slices=1, window='%llu us', tick='1 us', k=%.0f, fpr=%.17g, "
      "grow=%s)",
      Wide(memory_for(size * kMaxFilters)), Wide(size), Wide(growth.window), kHashes,
      timing_model::rate_of_filters(kRate, kMaxFilters),
      growth.density ? "density" : "cardinality"));
  const std::uint64_t& open = slice_at(filter.header(), 0).state->own[2];
  Zipf stream(universe, 1, 4);
  std::vector<std::uint64_t> delivered(universe);
  std::uint64_t probes = universe;
  for (std::uint64_t slot = 1; slot <= scale.slots; ++slot) {
    const bool is_burst = slot > scale.slots / 3 && slot <= scale.slots * 2 / 3;
    for (std::uint64_t i = kEventsPerSlot * (is_burst ? growth.burst : 1); i > 0; --i) {
      const std::uint64_t key = stream.next();
      const bool repeat = delivered[key] != 0 && slot - delivered[key] < growth.window;
      const bool seen = filter.insert(filter.element(key, 0, static_cast<std::int64_t>(slot)));
      growth.errors.count(repeat, seen);
      if (!seen) delivered[key] = slot;
    }
    growth.filters.push_back(static_cast<unsigned>(open));
    if (slot % 20 != 0) continue;
    // For a given filter, hits of keys that never came are binomial.
    constexpr double kProbes = 200;
    const double rate = filter.totals().estimate.fpr;
    for (double i = 0; i < kProbes; ++i)
      growth.hits += filter.test(filter.element(++probes, 0, static_cast<std::int64_t>(slot)));
    growth.probed += kProbes;
    growth.sum += kProbes * rate;
    growth.variance += kProbes * rate * (1 - rate);
  }
}

inline void judge_growth(Report& report, const Growth& growth) {
  const std::string setting = growth.setting();
  const double remain = growth.mean(5. / 6, 1) - growth.before();
  report.check(
      growth.extra() > .5 && std::fabs(remain) < .1 * growth.extra(),
      "fig. 10: filters by third, mean", setting, "temporary",
      text("%.1f %.1f %.1f", growth.before(), growth.before() + growth.extra(),
           growth.before() + remain),
      text("at least 0.5 extra, 90 %% of them go, after %llu slots", Wide(growth.lasts())));
  // The estimate treats filters as independent, which is not quite right: a key in one of them is
  // not added to another. The difference shows where there are many.
  const double off = (growth.hits - growth.sum) / std::sqrt(growth.variance);
  const double bound = timing_model::rate_of_filters(kRate, growth.most(0, 1));
  const bool few = growth.window == kWindows[0];
  report.check(growth.hits / growth.probed <= bound && (!few || std::fabs(off) <= 5),
               "fig. 11: FPR of probes", setting, "", percent(growth.hits / growth.probed),
               text("under 1-(1-P)^j; by fill %s, %+.1f s.e.",
                    percent(growth.sum / growth.probed).c_str(), off));
  report.line("fig. 11: FPR of events", setting, "", percent(growth.errors.fpr()),
              text("1-(1-P)^j is %s for the most filters; not asserted", percent(bound).c_str()));
  report.check(growth.errors.negatives == 0, "fig. 11: FNR within the window", setting, "0",
               percent(growth.errors.fnr()), "exactly 0");
}

inline void figures_10_and_11(Report& report, const Arguments& arguments, const Scale& scale,
                              std::uint64_t universe) {
  DataFile rates(arguments, "distributed-fig11",
                 "window burst FPR by density, by cardinality (per cent)");
  std::vector<Growth> all;
  for (const std::uint64_t window : kWindows)
    for (const unsigned burst : kBursts) {
      for (const bool density : {true, false}) {
        all.push_back({window, burst, density, {}, 0, 0, 0, 0, {}});
        grow(all.back(), scale, universe);
        judge_growth(report, all.back());
      }
      rates.row({double(window), double(burst), 100 * (all.end() - 2)->errors.fpr(),
                 100 * all.back().errors.fpr()});
    }
  const auto find = [&](std::uint64_t window, unsigned burst, bool density) -> const Growth& {
    return *std::find_if(all.begin(), all.end(), [&](const Growth& g) {
      return g.window == window && g.burst == burst && g.density == density;
    });
  };
  for (unsigned w = 0; w < 3; ++w)
    for (const bool density : {true, false}) {
      DataFile file(arguments, text("distributed-fig10%c", "abcdef"[w + (density ? 0 : 3)]),
                    "slot, filters with a burst of 2, of 5");
      const Growth &two = find(kWindows[w], 2, density), &five = find(kWindows[w], 5, density);
      const std::size_t step = std::max<std::size_t>(1, two.filters.size() / 600);
      for (std::size_t i = 0; i < two.filters.size(); i += step)
        file.row({double(i), double(two.filters[i]), double(five.filters[i])});
    }
  for (const bool density : {true, false}) {
    double extra[3];
    std::uint64_t lasts[3];
    for (unsigned w = 0; w < 3; ++w) {
      const Growth& five = find(kWindows[w], 5, density);
      extra[w] = five.extra();
      lasts[w] = five.lasts();
    }
    report.check(
        extra[0] < extra[1] && extra[1] < extra[2] && lasts[0] < lasts[1] && lasts[1] < lasts[2],
        "fig. 10: larger windows, more extra", density ? "density, x5" : "cardinality, x5",
        "more, longer", text("%.1f %.1f %.1f", extra[0], extra[1], extra[2]),
        text("last %llu, %llu, %llu slots", Wide(lasts[0]), Wide(lasts[1]), Wide(lasts[2])));
  }
  unsigned changes[2] = {};
  for (const Growth& growth : all) changes[growth.density] += growth.changes();
  report.check(changes[0] > changes[1], "fig. 10: cardinality fluctuates more",
               "changes at the usual rate", "more", text("%u, %u", changes[0], changes[1]),
               "than by density");
}

// Section 5 without a window, kind bloom: j full filters have rate 1 - (1 - P)^j.
inline void growing_bloom(Report& report, const Arguments& arguments, const Scale& scale) {
  DataFile file(arguments, "distributed-grow",
                "full filters, FPR by density, by cardinality, formula (per cent)");
  constexpr unsigned kFilters = 8;
  const double probes = static_cast<double>(scale.asked);
  double rates[2][kFilters] = {};
  for (const bool density : {true, false}) {
    Filter filter(text("bloom(memory=%llu, slices=1, k=4, fpr=%.17g, grow=%s)",
                       Wide(memory_for(kFilters * scale.asked / 8)),
                       timing_model::rate_of_filters(kRate, kFilters),
                       density ? "density" : "cardinality"));
    const std::uint64_t& newest = slice_at(filter.header(), 0).state->own[1];
    std::uint64_t key = 0;
    for (unsigned full = 1; full < kFilters; ++full) {
      while (newest < full) filter.insert(filter.element(key++));
      double hits = 0;
      for (std::uint64_t probe = 1; probe <= scale.asked; ++probe)
        hits += filter.test(filter.element(~probe));
      const double rate = hits / probes, expected = timing_model::rate_of_filters(kRate, full);
      const double off = (rate - expected) / std::sqrt(expected * (1 - expected) / probes);
      rates[!density][full] = rate;
      report.check(std::fabs(off) <= 5, text("sec. 5: FPR of %u full filters", full),
                   density ? "bloom, density" : "bloom, cardinality", "", percent(rate),
                   text("1-(1-P)^j is %s, %+.1f s.e.", percent(expected).c_str(), off));
    }
  }
  for (unsigned full = 1; full < kFilters; ++full)
    file.row({double(full), 100 * rates[0][full], 100 * rates[1][full],
              100 * timing_model::rate_of_filters(kRate, full)});
}

}  // namespace bench::distributed
