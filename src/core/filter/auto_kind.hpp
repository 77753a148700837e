// `auto`, the kind of a definition that names none.
#pragma once

#include "core/format/parameters.hpp"

namespace streamfilter {

// Sets the kind (and the layout, where it was not given) that keeps fpr and is expected to miss the
// fewest repeats, and why. derive_parameters does the rest.
void choose_kind(Definition& definition) noexcept;

// Lines of kind capped that fill up to the cap with which they keep fpr on any stream.
struct CappedLines {
  unsigned k = 0, ones = 0;  // 0: there are none
  double filling = 0;        // keys that a line takes before it forgets
};

// Those that take the most keys before they forget any.
CappedLines roomiest_lines(double fpr) noexcept;

// Once lines are full, clq forgets fewer than capped, but capped has room for more keys until then.
// By k, the number of keys to a line, as a multiple of those that fill it, up to which capped is
// predicted to miss fewer over a stream in which each key comes twice, at any time: what
// bench/quality/auto_rule.cpp finds, rounded; never from k = 8 on.
constexpr double kMaxKeysToFilling[] = {0, 5, 1.75, 1.5, 1.33, 1.2, 1.12, 1.05};

}  // namespace streamfilter
