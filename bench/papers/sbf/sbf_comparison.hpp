// SBF, FPBuffering, Buffering and a Bloom filter in the same space (Deng, Rafiei 2006 §5.2).
#pragma once

#include <algorithm>
#include <cmath>
#include <string>

#include "bench/lib/model_report.hpp"
#include "bench/lib/stored_stream.hpp"
#include "bench/papers/sbf/sbf_formulas.hpp"

namespace bench {

constexpr unsigned kMax = 1, kHashes = 2, kTaken = 4;  // Deng, Rafiei 2006 §5.2 for 10 %

// The least memory for a buffer of that many entries, including what finding and replacing them
// takes; the paper does not count that.
inline std::string buffer(const char* kind, double entries, unsigned entry_bits,
                          const std::string& rest) {
  const double links = 4 * std::ceil(std::log2(entries + 1));
  return std::string(kind) + "(entry_bits=" + std::to_string(entry_bits) + ", seed=1, " + rest +
         one_slice(entries * (entry_bits + links) + 64) + ")";
}

// SBF and the buffers in the same space.
struct Comparison {
  Cells cells;
  Errors sbf, buffering, fpbuffering;
  double predicted;  // FNR by Eq. 15 with phi 0
  double bound() const { return stable_model::fpr_bound(cells.max, cells.k, cells.p, cells.m); }
};

inline Comparison compare(const StoredStream& stream, unsigned max, unsigned k, double p,
                          double bits, unsigned entry_bits) {
  Comparison c{{max, k, p, bits}, {}, {}, {}, 0};
  c.cells.m = std::ceil(bits / 512) * 512 / c.cells.bits();
  Filter sbf(c.cells.definition());
  c.sbf = stream.run(sbf);
  Filter lru(buffer("lru", bits / entry_bits, entry_bits, ""));
  c.buffering = stream.run(lru);
  Filter fplru(buffer("fplru", bits / entry_bits, entry_bits, text("q=%.17g, ", c.sbf.fpr())));
  c.fpbuffering = stream.run(fplru);
  c.predicted = stream.mean_over_gaps([&](double gap) { return c.cells.fnr(gap); });
  return c;
}

// True if a misses less than b by more than five standard errors of the difference.
inline bool is_less(const Errors& a, const Errors& b) {
  return a.fnr() + std::hypot(five_errors(a.fnr(), a.repeats), five_errors(b.fnr(), b.repeats)) <
         b.fnr();
}

inline bool is_at_most(const Errors& counts, double bound) {
  return counts.fpr() <= bound + five_errors(bound, counts.fresh);
}

inline Errors run_bloom(const StoredStream& stream, double bits) {
  const double k = std::clamp(std::round(std::log(2.) * bits / stream.distinct()), 1., 64.);
  Filter bloom(text("bloom(seed=1, k=%.0f, ", k) + one_slice(bits) + ")");
  return stream.run(bloom);
}

}  // namespace bench
