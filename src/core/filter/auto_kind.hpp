// `auto`, the kind of a definition that names none.
#pragma once

#include "core/format/parameters.hpp"

namespace streamfilter {

// Sets the kind (and the layout, unless given) that keeps fpr and is expected to miss the fewest
// repeats, and the reason. derive_parameters does the rest.
void choose_kind(Definition& definition) noexcept;

// Lines of kind capped, filled up to a cap that keeps fpr on any stream.
struct CappedLines {
  unsigned k = 0, ones = 0;  // 0: none
  double filling = 0;        // keys that a line takes before it forgets
};

// The lines that take the most keys before they forget any.
CappedLines roomiest_lines(double fpr) noexcept;

// Once lines are full, clq forgets fewer keys than capped, but until then capped has room for more.
// For each k, the largest number of keys per line, as a multiple of those that fill it, for which
// capped is predicted to miss fewer over a stream in which each key comes twice, at any time. Found
// by bench/quality/auto_rule.cpp, rounded; never from k = 8 on.
constexpr double kMaxKeysToFilling[] = {0, 5, 1.75, 1.5, 1.33, 1.2, 1.12, 1.05};

}  // namespace streamfilter
