// The rule by which kind auto chooses between capped and clq (kMaxKeysToFilling in auto_kind.hpp),
// checked against the predictions of both kinds.
//
//   make bench
//   build/bench/auto_rule     exit 1: a constant is outside the range found
//
// For rates of false positives down to 10^-7: the lines of kind capped that keep the rate, and the
// number of keys to a line with which both kinds miss as many repeats, as a multiple of the keys
// that fill a line. The stream has uniform draws in which each key comes twice on average; filters
// have 4 MB and one slice. For each k, the least, the mean and the greatest of these multiples, up
// to 5, over five of the rates that lead to that k. The rule must not be above the greatest, nor
// more than an eighth below the least.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <string>
#include <vector>

#include "bench/lib/definitions.hpp"
#include "core/filter/auto_kind.hpp"
#include "core/kind/kind_registry.hpp"

namespace {

using namespace streamfilter;

constexpr double kBytes = 4 << 20, kLines = kBytes / 64;
constexpr unsigned kMostK = 8, kRates = 5;
constexpr double kFarthest = 5;  // both kinds miss some 40 % there, at 50 % false positives

// The predicted share of missed repeats; 2 if there is no such filter.
double missed(const std::string& text, double keys) {
  Parameters parameters;
  Problem problem;
  if (!bench::make_parameters(text, parameters, problem)) return 2;
  const FilterOps* ops = find_ops(parameters.kind);
  return ops->predict(parameters, Stream::uniform(2 * keys, keys)).fnr;
}

// How many more repeats clq misses, with so many keys to a line.
double advantage(const CappedLines& lines, double fpr, double to_line) {
  char capped[128], one[128], two[128];
  const double keys = to_line * kLines;
  std::snprintf(capped, sizeof capped, "capped(k=%u, cap=%.10g, slices=1, memory=4MB)", lines.k,
                lines.ones / 512.0);
  std::snprintf(one, sizeof one, "clq(fpr=%.10g, keys=%.0f, slices=1, memory=4MB)", fpr, keys);
  std::snprintf(two, sizeof two, "clq(fpr=%.10g, lines=2, slices=1, memory=4MB)", fpr);
  return std::min(missed(one, keys), missed(two, keys)) - missed(capped, keys);
}

struct Multiples {
  double least = HUGE_VAL, sum = 0, most = 0;
  unsigned count = 0;
};

// Where the advantage first ends, as a multiple of `filling`; 1 if there is none beyond it, and
// about kFarthest if it does not end before.
double turn(const CappedLines& lines, double fpr) {
  constexpr double kStep = 1.15;
  const auto wins = [&](double multiple) {
    return advantage(lines, fpr, multiple * lines.filling) > 0;
  };
  double at = 1;
  while (at < kFarthest && wins(at * kStep)) at *= kStep;
  if (at >= kFarthest) return kFarthest;
  double beyond = at * kStep;
  for (int i = 0; i < 5; ++i) {
    const double middle = (at + beyond) / 2;
    (wins(middle) ? at : beyond) = middle;
  }
  return at;
}

}  // namespace

int main() {
  std::vector<double> rates[kMostK + 1];
  for (double fpr = .5; fpr > 1e-7; fpr /= 1.06)
    if (const unsigned k = roomiest_lines(fpr).k; k > 0 && k <= kMostK) rates[k].push_back(fpr);
  Multiples found[kMostK + 1];
  for (unsigned k = 1; k <= kMostK; ++k)
    for (unsigned i = 0; i < kRates && !rates[k].empty(); ++i) {
      const double fpr = rates[k][i * (rates[k].size() - 1) / (kRates - 1)];
      const double multiple = turn(roomiest_lines(fpr), fpr);
      Multiples& of = found[k];
      of.least = std::min(of.least, multiple);
      of.most = std::max(of.most, multiple);
      of.sum += multiple;
      ++of.count;
    }
  bool agrees = true;
  std::printf("%2s %6s %6s %6s %6s\n", "k", "least", "mean", "most", "rule");
  for (unsigned k = 1; k <= kMostK; ++k) {
    const Multiples& of = found[k];
    if (of.count == 0) continue;
    std::printf("%2u %6.2f %6.2f %6.2f", k, of.least, of.sum / of.count, of.most);
    if (k >= std::size(kMaxKeysToFilling)) {
      std::printf("  never\n");
      continue;
    }
    const double rule = kMaxKeysToFilling[k];
    const bool within = rule >= .875 * of.least && rule <= of.most + .01;
    agrees = agrees && within;
    std::printf(" %6.2f%s\n", rule, within ? "" : "  not within");
  }
  return agrees ? 0 : 1;
}
