// Judging a key while some of its probes cannot be reached (Koloniari et al. 2011, §3.2, "Fault
// Tolerance"). `hybrid` is the printed rule, and `votes` asks for more: bits that are within reach
// and unset prove that a key is new, which the printed rule leaves out.
#pragma once

#include <cstdint>

namespace streamfilter {

enum class LostRule : std::uint8_t {
  distinct,   // lost bits count as unset: no false positives more, but false negatives
  duplicate,  // lost bits count as set: Eq. 5 and 6
  votes,      // a repeat if all bits within reach are set, and at least `least` are within reach
  hybrid,     // while a slice is lost, a repeat if at least `least` bits within reach are set
  error,      // a key with lost bits is not judged: the statement fails
};

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
