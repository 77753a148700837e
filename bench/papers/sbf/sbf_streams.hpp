// Figures 3-5 of Deng, Rafiei 2006: zeros along the crawl, and the errors of SBF, FPBuffering,
// Buffering and a Bloom filter on it. The crawl is not public; crawl.hpp makes one with the printed
// shares of distinct keys and of repeats that Buffering misses, so that the other results can be
// compared with the paper. Rows and memory are divided by `scale`.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <unordered_map>
#include <vector>

#include "bench/lib/crawl.hpp"
#include "bench/lib/model_report.hpp"
#include "bench/lib/stored_stream.hpp"
#include "bench/lib/traces.hpp"
#include "bench/papers/sbf/sbf_comparison.hpp"

namespace bench {

struct PrintedErrors {
  double bits, fpbuffering, sbf, fpr, buffering, bloom;  // per cent
};

struct PrintedSet {
  const char* name;
  double rows, scale, quick_scale;
  std::vector<PrintedErrors> errors;
};

// Figure 4.
inline std::vector<PrintedSet> printed_sets() {
  return {{"100 K rows, 76 %",
           1e5,
           1,
           4,
           {{16384, 46, 35, 8.4, 50, 83.8},
            {65536, 35, 23, 6.7, 37, 43.4},
            {262144, 24, 11, 3.0, 25, 7.2},
            {1048576, 9, 4, 0.4, 9, 0.6},
            {4194304, 0.1, 1, 0.1, 0.1, 0.1}}},
          {"10 M rows, 49 %",
           1e7,
           8,
           256,
           {{16384, 60, 54, 8.1, 65.7, 99.7},
            {262144, 48, 40, 6.6, 51.5, 95.9},
            {4194304, 30, 23, 4.5, 31.7, 43.5},
            {67108864, 11, 5, 0.5, 11.0, 0.7},
            {1073741824, 0.0, 0.4, 0.1, 0.0, 0.1}}},
          {"695 M rows, 15 %",
           694984445,
           128,
           16384,
           {{16384, 71, 68, 8.2, 78, 99.99},
            {262144, 65, 60, 7.0, 70, 99.81},
            {4194304, 55, 50, 5.7, 58, 96.93},
            {67108864, 43, 36, 3.5, 45, 54.08},
            {1073741824, 17, 13, 1.6, 17, 2.65},
            {4294967296, 2, 5, 1.6, 2, 1.87}}}};
}

// All three streams begin with the same rows.
inline std::vector<Knot> printed_growth(double scale) {
  std::vector<Knot> knots = {{1, 1}};
  for (const Knot& knot : {Knot{1e5, 75660}, {1e7, 4.851e6}, {694984445, 0.1475 * 694984445}})
    knots.push_back({knot.at / scale, knot.value / scale});
  return knots;
}

constexpr unsigned kEntryBits = 64;  // of an entry of a buffer: Deng, Rafiei 2006 §5.2
constexpr double kLeastBits = 1024;  // settings with less memory, after division, are left out

inline StoredStream crawl(const PrintedSet& set, double scale) {
  const std::vector<Knot> growth = printed_growth(scale);
  std::vector<Knot> misses = {{1, 1}};
  for (const PrintedErrors& e : set.errors)
    if (e.bits > kEntryBits * scale)
      misses.push_back({e.bits / kEntryBits / scale, std::max(e.buffering / 100, 1e-4)});
  const double rows = set.rows / scale;
  for (const Knot& knot : growth)
    if (knot.at >= rows) {
      misses.push_back({std::max(knot.value, 1.1 * misses.back().at), 0});
      break;
    }
  Crawl source(growth, misses, static_cast<std::uint64_t>(rows), 1);
  StoredStream stream;
  for (double row = 0; row < std::floor(rows); ++row)
    stream.add_number(static_cast<std::uint32_t>(source.next()));
  return stream;
}

// The paper gives whole points of FNR and tenths of FPR, and two curves are all that is known of
// its stream, so ours need only be within two points and one.
inline bool is_near(double rate, double percent, double of, double points) {
  return std::fabs(100 * rate - percent) <= points + 100 * five_errors(rate, of);
}

struct Methods {
  Comparison c;
  Errors bloom;
};

inline Methods all_methods(DataFile& data, const StoredStream& stream, const PrintedErrors& printed,
                           double bits) {
  Methods m = {compare(stream, kMax, kHashes, kTaken, bits, kEntryBits), run_bloom(stream, bits)};
  const Comparison& c = m.c;
  data.row({printed.bits, 100 * c.sbf.fnr(), 100 * c.fpbuffering.fnr(), 100 * c.buffering.fnr(),
            100 * c.sbf.fpr(), 100 * m.bloom.fpr(), 100 * c.predicted, printed.sbf,
            printed.fpbuffering, printed.buffering, printed.fpr, printed.bloom});
  return m;
}

inline void judge_row(ModelReport& report, const std::string& setting, const Methods& m,
                      const PrintedErrors& printed) {
  const Comparison& c = m.c;
  report.judge("sbf-fig4", setting, "FNR of SBF; model: Eq. 15", printed.sbf, 100 * c.predicted,
               100 * c.sbf.fnr(), is_near(c.sbf.fnr(), printed.sbf, c.sbf.repeats, 2));
  report.judge("sbf-fig4", setting, "FNR of FPBuffering", printed.fpbuffering, kNone,
               100 * c.fpbuffering.fnr(),
               is_near(c.fpbuffering.fnr(), printed.fpbuffering, c.sbf.repeats, 2));
  report.show("sbf-fig4", setting, "FNR of Buffering", printed.buffering, kNone,
              100 * c.buffering.fnr(), "given to the generator");
  // Where the paper gives a Bloom filter more than a per cent, which has none, its SBF is as
  // doubtful.
  const bool strange = printed.bloom > 1 && m.bloom.fpr() < 0.005;
  if (strange)
    report.show("sbf-fig4", setting, "FPR of SBF", printed.fpr, kNone, 100 * c.sbf.fpr(),
                "print not explained");
  else
    report.judge("sbf-fig4", setting, "FPR of SBF", printed.fpr, kNone, 100 * c.sbf.fpr(),
                 is_near(c.sbf.fpr(), printed.fpr, c.sbf.fresh, 1));
  report.show("sbf-fig4", setting, "FPR of a Bloom filter", printed.bloom, kNone,
              100 * m.bloom.fpr(), strange ? "print not explained" : "other K possible");
  const bool less = printed.sbf < printed.fpbuffering;
  report.judge("sbf-fig4", setting, less ? "SBF misses less, points" : "the same, buffers better",
               printed.fpbuffering - printed.sbf, kNone, 100 * (c.fpbuffering.fnr() - c.sbf.fnr()),
               less ? is_less(c.sbf, c.fpbuffering) : is_less(c.fpbuffering, c.sbf));
}

inline void judge_bound(ModelReport& report, const std::string& setting, const Comparison& c) {
  report.judge("sbf-fig4", setting, "FPR of SBF, at most Eq. 8", kNone, 100 * c.bound(),
               100 * c.sbf.fpr(), is_at_most(c.sbf, c.bound()));
}

// A real stream for comparison, if it is there.
inline void figure_4_on_a_trace(ModelReport& report, DataFile& data, const char* name) {
  StoredStream stream;
  std::unordered_map<std::string, std::uint32_t> numbers;
  Trace trace(name);
  for (std::string key; trace.next(key);) stream.add(key, numbers);
  if (stream.rows() == 0) {
    report.note(
        text("no %s in %s (STREAMFILTER_TRACES): left out", name, trace_directory().c_str()));
    return;
  }
  data.block(name);
  for (const double bits : {0x1p14, 0x1p16, 0x1p18, 0x1p20, 0x1p22, 0x1p24}) {
    const Methods m = all_methods(data, stream, {bits, kNone, kNone, kNone, kNone, kNone}, bits);
    const std::string setting = text("%s, %.0f bits", name, bits);
    judge_bound(report, setting, m.c);
    report.show("sbf-fig4", setting, "FNR of SBF; model: Eq. 15", kNone, 100 * m.c.predicted,
                100 * m.c.sbf.fnr(), "real stream");
    report.show("sbf-fig4", setting, "SBF misses less, points", kNone, kNone,
                100 * (m.c.fpbuffering.fnr() - m.c.sbf.fnr()),
                is_less(m.c.fpbuffering, m.c.sbf) ? "buffers are better" : "real stream");
  }
}

// The settings of figure 5, P as printed: Eq. 17 rounded down.
inline void figure_5(const Arguments& arguments, ModelReport& report, const PrintedSet& set,
                     double scale, const StoredStream& stream) {
  DataFile data(arguments, "sbf-fig5", "bits; points that SBF misses less, FPS 0.5, 1, 10, 20 %");
  const struct {
    double fps;
    unsigned max, k;
  } settings[] = {{0.005, 3, 4}, {0.01, 3, 4}, {0.1, 1, 2}, {0.2, 1, 2}};
  for (const PrintedErrors& row : set.errors) {
    const double bits = row.bits / scale;
    if (bits < kLeastBits) continue;
    double gains[4];
    for (unsigned i = 0; i < 4; ++i) {
      const auto& s = settings[i];
      const double p = std::floor(stable_model::decrements(s.fps, s.max, s.k, INFINITY));
      const Comparison c = compare(stream, s.max, s.k, p, bits, kEntryBits);
      gains[i] = 100 * (c.fpbuffering.fnr() - c.sbf.fnr());
      const std::string setting = text("FPS %g %%, P %.0f, %.0f bits", 100 * s.fps, p, row.bits);
      report.judge("sbf-fig5", setting, "FPR, at most Eq. 8", 100 * s.fps, 100 * c.bound(),
                   100 * c.sbf.fpr(), is_at_most(c.sbf, c.bound()));
      const double noise = 200 * five_errors(0.5, c.sbf.repeats);
      if (i == 0 || arguments.quick)
        report.show("sbf-fig5", setting, "SBF misses less, points", kNone, kNone, gains[i], "");
      else
        report.judge("sbf-fig5", setting, "above that for a smaller FPS", kNone, kNone, gains[i],
                     gains[i] > gains[i - 1] + noise);
    }
    data.row({row.bits, gains[0], gains[1], gains[2], gains[3]});
  }
}

// The share of zeros in a filter, at numbers of rows that grow by a quarter.
struct Zeros {
  double row, share;
};

inline std::vector<Zeros> zeros_of(const StoredStream& stream, const Cells& cells) {
  Filter filter(cells.definition());
  std::vector<Zeros> zeros;
  double next = 1;
  stream.run(filter, [&](std::size_t row) {
    if (static_cast<double>(row) < next) return;
    next = std::ceil(next * 1.25);
    zeros.push_back({static_cast<double>(row), filter.zeros()});
  });
  return zeros;
}

inline void figure_3(const Arguments& arguments, ModelReport& report, const PrintedSet& set,
                     double scale, const StoredStream& stream) {
  DataFile data(arguments, "sbf-fig3",
                "rows at full scale, zeros on the crawl, on new keys, by Eq. 1");
  StoredStream fresh;
  for (double row = 0; row < stream.rows(); ++row) fresh.add_number(fresh.new_number());
  double converged_last = 0;
  for (const PrintedErrors& row : set.errors) {
    if (row.bits / scale < kLeastBits) continue;
    const Cells cells{kMax, kHashes, kTaken, std::ceil(row.bits / scale / 512) * 512};
    const std::vector<Zeros> ours = zeros_of(stream, cells), alone = zeros_of(fresh, cells);
    const double point = stable_model::stable_point(kMax, kHashes, kTaken, cells.m);
    const auto expected = [&](double n) {  // Eq. 1 for Max 1
      const double k = kHashes / cells.m, p = kTaken / cells.m;
      return stable_model::pr_zero(n, k, p, kMax) + std::exp(n * (std::log1p(-k) + std::log1p(-p)));
    };
    // P adjacent cells are decremented together.
    const auto allowed = [&](double share) { return five_errors(share, cells.m, kTaken); };
    const std::string setting = text("%.0f bits", row.bits);
    data.block(text("%.0f * 64 bits", row.bits / 64));
    bool as_eq_1 = true, above = true;
    double least = 1, converged = 0;
    for (std::size_t i = 0; i < ours.size(); ++i) {
      const double model = expected(alone[i].row);
      as_eq_1 &= std::fabs(alone[i].share - model) <= allowed(model) + 1e-12;
      above &= ours[i].share >= point - allowed(point);
      least = std::min(least, ours[i].share);
      data.row({ours[i].row * scale, ours[i].share, alone[i].share, model});
    }
    for (const Zeros& z : ours)
      if (converged == 0 && z.share < 1 - 0.9 * (1 - ours.back().share)) converged = z.row;
    report.judge("sbf-fig3", setting, "zeros on new keys, as Eq. 1", kNone,
                 expected(alone.back().row), alone.back().share, as_eq_1);
    report.judge("sbf-fig3", setting, "least zeros on the crawl", kNone, point, least, above);
    report.judge("sbf-fig3", setting, "M rows until 90 % of the fall", kNone, kNone,
                 converged * scale / 1e6, converged > converged_last);
    converged_last = converged;
  }
}

inline void figures_3_to_5(const Arguments& arguments, ModelReport& report) {
  DataFile data(arguments, "sbf-fig4",
                "bits; FNR of SBF, FPBuffering, Buffering; FPR of SBF and FPBuffering, of a Bloom "
                "filter; FNR of SBF by Eq. 15; the same five as printed");
  for (const PrintedSet& set : printed_sets()) {
    const double scale = arguments.quick ? set.quick_scale : set.scale;
    const StoredStream stream = crawl(set, scale);
    report.note(text("%s, divided by %g: %.0f rows, %.2f %% distinct", set.name, scale,
                     stream.rows(), 100 * stream.distinct() / stream.rows()));
    data.block(set.name);
    for (const PrintedErrors& row : set.errors) {
      if (row.bits / scale < kLeastBits) continue;
      const Methods m = all_methods(data, stream, row, row.bits / scale);
      const std::string setting = text("%s, %.0f bits", set.name, row.bits);
      judge_row(report, setting, m, row);
      judge_bound(report, setting, m.c);
    }
    if (set.rows < 1e8) continue;
    figure_3(arguments, report, set, scale, stream);
    figure_5(arguments, report, set, scale, stream);
  }
  if (!arguments.quick) figure_4_on_a_trace(report, data, "scarab_recs.csv.gz");
}

}  // namespace bench
