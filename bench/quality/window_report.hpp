// Tables and curves of the cost of a window: bench/quality/windows.cpp prints them,
// bench/compare.sh draws them.
#pragma once

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "bench/quality/window_kinds.hpp"
#include "core/filter/derivation.hpp"

namespace bench {

constexpr double kEdgeRate = .01;

inline std::string bits_text(double bits) { return bits < 1e4 ? text("%.1f", bits) : "-"; }

template <typename Cost>
double least_of(const std::vector<Course>& courses, Cost cost) {
  double least = INFINITY;
  for (const Course& course : courses) least = std::min(least, cost(course));
  return least;
}

// For each kind, the lowest cost of the settings that keep the rate. The data file has its FNR at
// the edge of a window and over all of it, by bits per key.
inline void report_windows(const Arguments& arguments, double fpr) {
  WindowRunner runner(fpr, arguments.quick);
  DataFile data(arguments, text("curves-%g", fpr),
                "bits per key, FNR at the edge, FNR over the window");
  std::printf(
      "\nBits for each key of a window of which 1 %% are missed, FPR %g %%, endless stream of new "
      "keys\n\n"
      "| kind | at the edge | over the window | with | FPR %% |\n|---|---|---|---|---|\n",
      100 * fpr);
  for (const WindowKind& kind : window_kinds()) {
    const std::vector<Course> courses = runner.courses(kind);
    if (courses.empty()) {
      std::printf("| %s | - | - | keeps no such rate | |\n", kind.name);
      continue;
    }
    const auto edge = [](const Course& c) { return c.edge_bits(kEdgeRate); };
    const Course& best =
        *std::min_element(courses.begin(), courses.end(),
                          [&](const Course& a, const Course& b) { return edge(a) < edge(b); });
    std::printf("| %s | %s | %s | `%s` | %.3g |\n", kind.name, bits_text(edge(best)).c_str(),
                bits_text(least_of(courses, [](const Course& c) { return c.mean_bits(kEdgeRate); }))
                    .c_str(),
                best.setting.c_str(), 100 * best.fpr);
    std::fflush(stdout);
    data.block(kind.name);
    for (double bits = 4; bits < 101; bits *= 1.02)
      data.row({bits, least_of(courses, [&](const Course& c) { return c.edge_at(bits); }),
                least_of(courses, [&](const Course& c) { return c.mean_at(bits); })});
  }
  std::printf(
      "| bound of Naor, Yogev 2013: none missed | %.1f | | | |\n"
      "| bound of any set, 1 %% missed | | %.1f | | |\n",
      window_bound(fpr), set_bound(fpr, kEdgeRate));
  data.block("bound: none missed");
  for (const double fnr : {1e-6, 1.}) data.row({window_bound(fpr), fnr, fnr});
  data.block("bound: any set");
  for (double fnr = 1e-6; fnr < .9; fnr *= 1.1) data.row({set_bound(fpr, fnr), fnr, fnr});
}

// Bits for each key of a window, by the models of the library: `window_keys` is the reach.
inline double modelled_bits(const std::string& options, double keys) {
  double low = 4096, high = 0;
  for (double bytes = low; bytes < 0x1p50; bytes *= 2) {
    streamfilter::Parameters p;
    streamfilter::Problem problem;
    if (!make_parameters(options + text(", slices=1, memory=%.0f)", bytes), p, problem)) continue;
    const double reach = window_keys(p, kEdgeRate);
    if (std::isnan(reach)) return INFINITY;
    if (reach >= keys) {
      high = bytes;
      break;
    }
    low = bytes;
  }
  if (high == 0) return INFINITY;
  while (high / low > 1.001) {
    const double middle = std::floor(std::sqrt(low * high) / 64) * 64;
    streamfilter::Parameters p;
    streamfilter::Problem problem;
    const bool fits =
        make_parameters(options + text(", slices=1, memory=%.0f)", middle), p, problem) &&
        window_keys(p, kEdgeRate) >= keys;
    if (middle <= low || middle >= high) break;
    (fits ? high : low) = middle;
  }
  return high * 8 / keys;
}

inline void report_models() {
  constexpr double kRates[] = {1e-2, 1e-3, 1e-6}, kWindows[] = {1e6, 1e9};
  std::printf(
      "\nThe same at the edge by the models, for windows of a million and of 1e9 keys\n\n"
      "| kind | FPR 1 %%: 1e6 | 1e9 | 0.1 %%: 1e6 | 1e9 | 0.0001 %%: 1e6 | 1e9 |\n"
      "|---|---|---|---|---|---|---|\n");
  for (const char* kind : {"clq(fpr=%g", "clq(lines=2, fpr=%g", "lru(fpr=%g", "fplru(fpr=%g",
                           "sqf(fpr=%g", "dsqf(fpr=%g", "sbf(max=7, k=6, fpr=%g", "rsbf(fpr=%g",
                           "rsbf(variant=measured, fpr=%g", "ibf2c(fpr=%g"}) {
    const std::string options = kind;
    const std::size_t end = options.find(", fpr");
    std::printf("| `%s` |", end == std::string::npos ? options.substr(0, options.find('(')).c_str()
                                                     : (options.substr(0, end) + ")").c_str());
    for (const double rate : kRates)
      for (const double keys : kWindows) {
        std::string asked = options;
        asked.replace(asked.find("%g"), 2, text("%g", rate));
        std::printf(" %s |", bits_text(modelled_bits(asked, keys)).c_str());
      }
    std::printf("\n");
  }
  std::printf("| `timer` |");
  for (const double rate : kRates)
    for (const double keys : kWindows) {
      const std::string asked = text("timer(window='%.0f rows', fpr=%g", keys, rate);
      double bits = INFINITY;
      for (double one = 8; one < 500 && std::isinf(bits); one *= 1.01) {
        streamfilter::Parameters p;
        streamfilter::Problem problem;
        if (make_parameters(asked + text(", slices=1, memory=%.0f)", keys * one / 8), p, problem))
          bits = one;
      }
      std::printf(" %s |", bits_text(bits).c_str());
    }
  std::printf("\n| bound of Naor, Yogev 2013: none missed |");
  for (const double rate : kRates)
    std::printf(" %.1f | %.1f |", window_bound(rate), window_bound(rate));
  std::printf("\n");
}

}  // namespace bench
