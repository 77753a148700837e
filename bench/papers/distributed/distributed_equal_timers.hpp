// Figure 9 of Koloniari et al. 2011: the equal timers heuristic.
#pragma once

#include <algorithm>
#include <array>

#include "bench/lib/paper_formulas.hpp"
#include "bench/papers/distributed/distributed_setting.hpp"

namespace bench::distributed {

// The ticks at which timers end, in plain arrays: the kind's rule, and the number of equal timers.
class Timers {
 public:
  explicit Timers(const Parameters& p)
      : p_(p), cells_(p.integer(kCells)), ends_(cells_ * p.slices) {}

  // The greatest number of equal timers of a key; 0: not all of its timers run.
  unsigned equal(std::uint64_t hash, std::uint64_t now) const {
    std::array<std::uint64_t, kTimers> ends;
    for (unsigned i = 0; i < kTimers; ++i) {
      ends[i] = ends_[at(hash, i)];
      if (ends[i] <= now) return 0;
    }
    std::ptrdiff_t most = 1;
    for (const std::uint64_t end : ends)
      most = std::max(most, std::count(ends.begin(), ends.end(), end));
    return static_cast<unsigned>(most);
  }
  void set(std::uint64_t hash, std::uint64_t end) {
    for (unsigned i = 0; i < kTimers; ++i) ends_[at(hash, i)] = end;
  }

 private:
  std::uint64_t at(std::uint64_t hash, unsigned i) const {
    return slice_of(p_, hash) * cells_ + position(hash, i, cells_);
  }

  Parameters p_;
  std::uint64_t cells_;
  std::vector<std::uint64_t> ends_;
};

// A filter and the keys that it delivered.
struct Run {
  Run(const std::string& definition, unsigned at_least, std::uint64_t keys)
      : filter(definition), timers(filter.parameters()), wanted(at_least), delivered(keys) {}

  Filter filter;
  Timers timers;
  unsigned wanted;
  std::vector<std::uint64_t> delivered;  // the time, by key; 0: never
  Errors errors;
  std::array<double, kTimers + 1> hits{}, true_hits{};  // all timers run, by equal ones
  double differences = 0;                               // from the library's answer
};

inline std::string timer(std::uint64_t memory, std::uint64_t window, std::uint32_t slices,
                         unsigned equal) {
  std::string definition = text("timer(memory=%llu, window='%llu us', tick='1 us', k=%u, slices=%u",
                                Wide(memory), Wide(window), kTimers, slices);
  if (equal > 1) definition += text(", equal_timers=%u", equal);
  return definition + ")";
}

inline void run(std::vector<Run>& runs, const Scale& scale, std::uint64_t universe) {
  Zipf stream(universe, 1, 1);
  for (std::uint64_t now = 1; now <= scale.events; ++now) {
    const std::uint64_t key = stream.next();
    for (Run& r : runs) {
      const Element element = r.filter.element(key, 0, static_cast<std::int64_t>(now));
      const unsigned equal = r.timers.equal(element.hash, now);
      const bool repeat = r.delivered[key] != 0 && now - r.delivered[key] < scale.window;
      const bool reported = equal >= std::max(1u, r.wanted);
      r.hits[equal] += equal > 0;
      r.true_hits[equal] += equal > 0 && repeat;
      r.errors.count(repeat, reported);
      r.differences += r.filter.insert(element) != reported;
      if (reported) continue;
      r.timers.set(element.hash, now + scale.window);
      r.delivered[key] = now;
    }
  }
}

// The smallest number of bytes whose filter has that many timers in all.
inline std::uint64_t memory_for_timers(double m, std::uint64_t window, std::uint32_t slices) {
  std::uint64_t low = 4096, high = std::uint64_t{1} << 26;
  while (high - low > 64) {
    const std::uint64_t middle = low + (high - low) / 2;
    Parameters p;
    Problem problem;
    const bool enough = make_parameters(timer(middle, window, slices, 0), p, problem) &&
                        static_cast<double>(p.integer(kCells) * slices) >= m;
    (enough ? high : low) = middle;
  }
  return high;
}

// `balance`: the threshold that the paper recommends.
inline void figure_9(Report& report, const Arguments& arguments, const Scale& scale,
                     std::uint64_t universe, std::uint32_t slices, unsigned balance,
                     std::vector<Errors>& errors) {
  const std::string name = slices == 1 ? "vertical" : "horizontal";
  const double live = live_keys(universe, scale.window), m = timers_for(kTimers, live, kRate);
  const std::uint64_t memory = memory_for_timers(m, scale.window, slices);
  std::vector<Run> runs;
  for (unsigned wanted = 1; wanted <= kTimers; ++wanted)
    runs.emplace_back(timer(memory, scale.window, slices, wanted), wanted, universe);
  run(runs, scale, universe);

  double differences = 0;
  for (const Run& r : runs) {
    differences += r.differences;
    errors.push_back(r.errors);
  }
  report.check(differences == 0, "fig. 9: answers unlike the library's",
               text("%s, w %llu, m %.0f, k' 1 to 8", name.c_str(), Wide(scale.window), m), "",
               text("%.0f", differences), "none");
  DataFile file(arguments, slices == 1 ? "distributed-fig9b" : "distributed-fig9a",
                "x, true duplicates of those with x equal timers, all of them (per cent)");
  const Run& plain = runs[0];
  double all = 0, true_low = 0, low = 0, true_high = 0, high = 0;
  for (const double count : plain.hits) all += count;
  for (unsigned x = 1; x <= kTimers; ++x) {
    file.row({double(x), plain.hits[x] > 0 ? 100 * plain.true_hits[x] / plain.hits[x] : 0,
              100 * plain.hits[x] / all});
    (x < balance ? low : high) += plain.hits[x];
    (x < balance ? true_low : true_high) += plain.true_hits[x];
  }
  report.check(true_high / high > true_low / low, "fig. 9a, b: true duplicates",
               text("%s, x >= %u, x < %u", name.c_str(), balance, balance), "more, fewer",
               text("%.1f, %.1f %%", 100 * true_high / high, 100 * true_low / low), "more");
  for (unsigned wanted = 1; wanted <= kTimers; ++wanted)
    report.line("fig. 9c, d: FPR, FNR", text("%s, k' %u", name.c_str(), wanted), "",
                text("%.2f %5.2f %%", 100 * errors[errors.size() - kTimers + wanted - 1].fpr(),
                     100 * errors[errors.size() - kTimers + wanted - 1].fnr()),
                wanted == balance ? "the paper's balance" : "");
  const Errors &before = runs[0].errors, &after = runs[balance - 1].errors,
               &beyond = runs[kTimers - 1].errors;
  const double deviation = std::sqrt(before.fpr() / before.fresh + after.fpr() / after.fresh);
  report.check(before.fpr() - after.fpr() > 4 * deviation, "fig. 9c: FPR falls with k'",
               text("%s, k' 1 to %u", name.c_str(), balance), "falls",
               text("%.2f, %.2f %%", 100 * before.fpr(), 100 * after.fpr()), "by above 4 s.e.");
  report.check(before.negatives == 0, "fig. 9d: FNR without the heuristic", name, "0",
               percent(before.fnr()), "exactly 0");
  unsigned best = 1;
  const auto total = [&](unsigned wanted) {
    return runs[wanted - 1].errors.fpr() + runs[wanted - 1].errors.fnr();
  };
  for (unsigned wanted = 2; wanted <= kTimers; ++wanted)
    if (total(wanted) < total(best)) best = wanted;
  report.line("fig. 9c, d: k' of the least FPR + FNR", name, text("%u", balance), text("%u", best),
              best == balance ? "reproduced" : "NOT REPRODUCED");
  report.check(beyond.fnr() > .25, "fig. 9d: FNR of k' 8", name, "large", percent(beyond.fnr()),
               "above 25 %: k' = k is of no use");
}

// Each accepted key is tested again, without insertion, at an age spread evenly over the window.
// The same key is rarely tested twice, so counts are nearly binomial; they exceed five standard
// errors with a probability of 6e-7.
inline void equal_timers_formula(Report& report, const Scale& scale) {
  constexpr std::uint64_t kWindow = 20000;
  constexpr double kFill = .34;
  const double m = kTimers * static_cast<double>(kWindow) / -std::log1p(-kFill);
  const std::uint64_t memory = memory_for_timers(m, kWindow, 1);
  Filter filter(timer(memory, kWindow, 1, 0));
  Timers timers(filter.parameters());
  Random random(3);
  std::vector<std::uint64_t> accepted;
  std::array<double, kTimers + 1> equal{};
  double asked = 0;
  for (std::uint64_t now = 1; asked < static_cast<double>(scale.asked); ++now) {
    const std::uint64_t hash = filter.element(now).hash;
    timers.set(hash, now + kWindow);
    accepted.push_back(hash);
    if (now < 2 * kWindow) continue;
    ++equal[timers.equal(accepted[now - 1 - random.below(kWindow)], now)];
    ++asked;
  }
  double below = equal[0] + equal[1];
  for (unsigned wanted = 2; wanted <= kTimers; below += equal[wanted++]) {
    const double expected = mean_equal_timers_fnr(kTimers, wanted, kFill), rate = below / asked;
    const double off = (rate - expected) / std::sqrt(expected * (1 - expected) / asked);
    report.check(std::fabs(off) <= 5, "sec. 4: FNR of equal timers",
                 text("k 8, fill .34, k' %u", wanted), "", text("%.5f", rate),
                 text("formula %.5f, %+.1f s.e.", expected, off));
  }
}

}  // namespace bench::distributed
