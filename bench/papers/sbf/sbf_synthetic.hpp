// Figure 6 of Deng, Rafiei 2006: SBF and FPBuffering on the synthetic streams of §5.1. The paper
// gives b, l and u. The share of frequent keys is taken to be 10 % (the example of §5.1), and half
// of all for the Poisson stream, which has "more duplicates". Rows, u and memory are divided by
// `scale`.
#pragma once

#include <cmath>
#include <string>
#include <unordered_map>
#include <vector>

#include "bench/lib/model_report.hpp"
#include "bench/lib/stored_stream.hpp"
#include "bench/lib/streams.hpp"
#include "bench/papers/sbf/sbf_comparison.hpp"

namespace bench {

constexpr double kSyntheticRows = 0x1p24;
constexpr unsigned kSyntheticEntryBits = 32, kAggregation = 6;
constexpr double kSpaces[] = {0x1p14, 0x1p16, 0x1p18, 0x1p20, 0x1p22, 0x1p24, 0x1p26};

struct Synthetic {
  const char* name;
  double b, share, u;  // b = 0: Poisson
};
constexpr Synthetic kSynthetics[] = {{"b-model 1: b 0.5, u 1e3", 0.5, 0.1, 1e3},
                                     {"b-model 2: b 0.7, u 1e3", 0.7, 0.1, 1e3},
                                     {"b-model 3: b 0.7, u 1e6", 0.7, 0.1, 1e6},
                                     {"Poisson: u 1e6", 0, 0.5, 1e6}};

template <typename Source>
StoredStream store(Source source, double rows) {
  StoredStream stream;
  std::unordered_map<std::uint64_t, std::uint32_t> numbers;
  for (double row = 0; row < rows; ++row) stream.add(source.next(), numbers);
  return stream;
}

inline StoredStream synthetic(const Synthetic& s, double scale) {
  const double rows = kSyntheticRows / scale, u = s.u / scale;
  if (s.b == 0) return store(Poisson(s.share, u, 1), rows);
  return store(BModel(static_cast<std::uint64_t>(rows), s.b, kAggregation, s.share, u, 1), rows);
}

inline void judge_space(ModelReport& report, const std::string& setting, const Comparison& c) {
  report.judge("sbf-fig6", setting, "FPR of SBF, at most Eq. 8", 10, 100 * c.bound(),
               100 * c.sbf.fpr(), is_at_most(c.sbf, c.bound()));
  report.show("sbf-fig6", setting, "FNR of SBF; model: Eq. 15", kNone, 100 * c.predicted,
              100 * c.sbf.fnr(), "");
  const double gain = 100 * (c.fpbuffering.fnr() - c.sbf.fnr());
  if (c.fpbuffering.fnr() > 0.1)
    report.judge("sbf-fig6", setting, "SBF misses less, points", kNone, kNone, gain,
                 !is_less(c.fpbuffering, c.sbf));
  else
    report.show("sbf-fig6", setting, "SBF misses less; both few", kNone, kNone, gain, "");
}

// The appendix's statements about all four streams.
inline void judge_together(ModelReport& report, const std::vector<std::vector<Comparison>>& all,
                           bool quick) {
  const auto most = [&](std::size_t i) {
    double gain = -1;
    for (const Comparison& c : all[i]) gain = std::max(gain, c.fpbuffering.fnr() - c.sbf.fnr());
    return 100 * gain;
  };
  double overall = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    bool beaten = false;
    for (const Comparison& c : all[i]) beaten |= is_less(c.sbf, c.fpbuffering);
    report.judge("sbf-fig6", kSynthetics[i].name, "most that SBF misses less", kNone, kNone,
                 most(i), beaten);
    overall = std::max(overall, most(i));
  }
  report.show("sbf-fig6", "all", "most that SBF misses less", 30, kNone, overall,
              "printed: up to 30");
  report.judge("sbf-fig6", text("b 0.7 beside b 0.5: %.4g", most(0)), "that is less with bursts",
               kNone, kNone, most(1), most(1) < most(0));
  bool longer = true, shorter = true;
  for (std::size_t j = 0; j < all[0].size(); ++j)
    longer &= all[2][j].sbf.fnr() > all[1][j].sbf.fnr() &&
              all[2][j].fpbuffering.fnr() > all[1][j].fpbuffering.fnr();
  for (std::size_t j = all[0].size() - (quick ? 1 : 2); j < all[0].size(); ++j)
    shorter &= is_less(all[3][j].sbf, all[2][j].sbf) &&
               is_less(all[3][j].fpbuffering, all[2][j].fpbuffering);
  const auto last = [&](std::size_t i) { return 100 * all[i].back().sbf.fnr(); };
  report.judge("sbf-fig6", text("u 1e6 beside u 1e3: %.4g", last(1)), "FNR higher in any space",
               kNone, kNone, last(2), longer);
  report.judge("sbf-fig6", text("Poisson beside b-model, u 1e6: %.4g", last(2)),
               "FNR lower in much space", kNone, kNone, last(3), shorter);
}

inline void figure_6(const Arguments& arguments, ModelReport& report) {
  const double scale = arguments.quick ? 64 : 8;
  DataFile data(arguments, "sbf-fig6", "bits; FNR of SBF, FPBuffering; FPR of both; FNR by Eq. 15");
  std::vector<std::vector<Comparison>> all(4);
  for (std::size_t i = 0; i < 4; ++i) {
    const Synthetic& s = kSynthetics[i];
    const StoredStream stream = synthetic(s, scale);
    data.block(s.name);
    for (const double bits : kSpaces) {
      if (bits / scale < kLeastBits) continue;
      const Comparison c =
          compare(stream, kMax, kHashes, kTaken, bits / scale, kSyntheticEntryBits);
      data.row({bits, 100 * c.sbf.fnr(), 100 * c.fpbuffering.fnr(), 100 * c.sbf.fpr(),
                100 * c.predicted});
      judge_space(report, text("%s, %.0f bits", s.name, bits), c);
      all[i].push_back(c);
    }
  }
  judge_together(report, all, arguments.quick);
}

}  // namespace bench
