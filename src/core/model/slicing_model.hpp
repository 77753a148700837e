// The formulas of "One is Enough: Distributed Filtering for Duplicate Elimination" (Koloniari,
// Ntarmos, Pitoura, Souravlias, CIKM 2011), §3: false positives of sliced filters, and how many
// slices keep a bound while some are lost. Corrected where a printed formula does not give what
// slices do.
#pragma once

#include "core/model/timing_model.hpp"

namespace streamfilter::slicing_model {

// A filter whose keys are divided among `parts` by a hash; in its part, a key has k1 probes of k2
// bits, each probe in one of `slices` slices of m cells. Horizontal: k1 = slices = 1.
struct SlicingShape {
  double k1, k2;
  double parts;
  double slices;  // of a part
  double m;       // cells of a slice
};

// The rate of n keys in m cells, k bits a key: Eq. 1, or a more exact one.
using CellRate = double (*)(double k, double n, double m) noexcept;

// The shape of a filter with k bits a key and m cells a slice, which may not be derived yet.
SlicingShape shape_of(const Parameters& parameters, double k, double m) noexcept;

// The false-positive rate of one part after n of its keys. Vertical (Eq. 3) and horizontal: Eq. 1
// for all of its cells. k1 x k2 (Prop. 2): the loads of slices differ, which is averaged over.
double group_rate(const SlicingShape& shape, double n, CellRate rate = timing_model::rate) noexcept;

// The false-positive rate after n keys. Eq. 4 takes every part for equally loaded; here, Eq. 1 is
// averaged over Poisson(n / parts).
double rate(const SlicingShape& shape, double n, CellRate rate = timing_model::rate) noexcept;

// ---- failures (§3.2)

// Definition 3: the least number of slices S_f that keeps a bound while f are lost, of filters
// whose probes are spread over all slices, or horizontal ones (1 probe). `fpr` is that of the whole
// filter without failures. Infinity: no number does.
double slices_for_fpr(double probes, double fpr, double lost, double most) noexcept;  // duplicate
double slices_for_fnr(double probes, double lost, double most) noexcept;              // distinct

}  // namespace streamfilter::slicing_model

// Judging a key while some of its probes cannot be reached (Koloniari et al. 2011, §3.2, "Fault
// Tolerance"). `hybrid` is the printed rule, and `votes` asks for more: bits that are within reach
// and unset prove that a key is new, which the printed rule leaves out.

namespace streamfilter {

enum class LostRule : std::uint8_t {
  distinct,   // lost bits count as unset: no false positives more, but false negatives
  duplicate,  // lost bits count as set: Eq. 5 and 6
  votes,      // a repeat if all bits within reach are set, and at least `least` are within reach
  hybrid,     // while a slice is lost, a repeat if at least `least` bits within reach are set
  error,      // a key with lost bits is not judged: the statement fails
};
inline constexpr const char* kLostWords[] = {"distinct", "duplicate", "votes",
                                             "hybrid",   "error",     nullptr};

// What is known of the bits of a key.
struct ProbesSeen {
  unsigned set = 0;  // bits, of probes within reach; those of a probe count together
  unsigned unset = 0;
  unsigned lost = 0;
  bool slice_lost = false;  // any slice of the filter, not only one of this key
};

inline bool is_repeat(const ProbesSeen& seen, LostRule rule, unsigned least) noexcept {
  switch (rule) {
    case LostRule::duplicate: return seen.unset == 0;
    case LostRule::votes: return seen.unset == 0 && (seen.lost == 0 || seen.set >= least);
    case LostRule::hybrid:
      if (seen.slice_lost) return seen.set >= least;
      break;
    case LostRule::distinct:
    case LostRule::error: break;
  }
  return seen.unset == 0 && seen.lost == 0;
}

// Can probes that have not been asked yet still make it a repeat?
inline bool may_be_repeat(const ProbesSeen& seen, LostRule rule) noexcept {
  if (rule == LostRule::hybrid && seen.slice_lost) return true;
  return seen.unset == 0 && (seen.lost == 0 || rule != LostRule::distinct);
}

}  // namespace streamfilter
