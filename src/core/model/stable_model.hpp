// The formulas of "Approximately Detecting Duplicates for Streaming Data using Stable Bloom
// Filters" (Deng, Rafiei, SIGMOD 2006), with the paper's symbols: m cells of at most Max, K cells
// set and P cells decremented per element.
#pragma once

#include <cstdint>

#include "core/model/stream.hpp"

namespace streamfilter::stable_model {

// Eq. 7 (Theorem 3): the stable point, a lower bound of the share of zeros on any stream, reached
// on streams of distinct keys.
double stable_point(double max, double k, double p, double m) noexcept;

// Eq. 8: an upper bound of the false-positive rate at any time on any stream.
double fpr_bound(double max, double k, double p, double m) noexcept;

// Eq. 17 as a real number: the P that makes Eq. 8 equal to fps.
double decrements(double fps, double max, double k, double m) noexcept;

// m for Eq. 8 and 17: infinity where 1/m is negligible beside 1/K (K/m < 1e-4), as the paper has
// it.
double effective_cells(double k, double m) noexcept;

// Eq. 17 for effective_cells, rounded up, so that Eq. 8 stays a bound. The paper rounds down.
std::uint64_t whole_decrements(double fps, double max, double k, double m) noexcept;

// Eq. 9: the probability that a cell set `gap` elements ago is zero now, if it is set with
// probability k_set and decremented with probability p_taken per element. In closed form, by the
// negative binomial distribution of the time of the Max-th decrement.
double pr_zero(double gap, double k_set, double p_taken, double max) noexcept;

// Eq. 16 with the paper's testing value 0 for the deviation phi: the false-negative rate of a key
// last seen `gap` elements ago.
double fnr(double gap, double max, double k, double p, double m) noexcept;

// §4.1: the K that minimises Eq. 16 under Eq. 17. By Observation 1 it depends on Max and FPS
// almost alone, so it is computed at fixed testing values, m = 1e5 and gap = 5000.
unsigned best_k(double fps, double max) noexcept;

// §4.1: the Max among 1, 3, 7 that minimises Eq. 16 for a typical gap in `bits` bits.
unsigned best_max(double fps, double gap, double bits) noexcept;

}  // namespace streamfilter::stable_model

// Filters whose every element sets its K cells and decrements others at random (sbf, ibf): their
// error rates over a finite stream with repeats. The models of the papers (stable_model.hpp,
// importance_model.hpp) are the limits of this one on endless streams of new keys.

namespace streamfilter::cells_model {

struct Setting {
  double k, m;
  unsigned max;   // value that cells are set to
  double taken;   // probability that an element decrements a given cell of value 1
  bool by_value;  // for value j: 1/j of it; otherwise the same
};

// A cell is not zero if fewer than `max` decrements came since an element last set it. Other keys
// set it as often as the stream brings rows that have not come again since (Stream::fresh), K/m of
// them; so the probabilities are integrals over the age of the last setting. A new key is a false
// positive if its K cells are not zero; a repeat set them itself, when it came last. Assumptions:
// many cells, the K cells of a key independent.
Prediction predict(const Setting& setting, const Stream& stream) noexcept;

}  // namespace streamfilter::cells_model
