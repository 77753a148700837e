// `auto`, the kind of a definition that names none.
#pragma once

#include "streamfilter/core/filter_ops.hpp"

namespace streamfilter {

// The kind whose option `name` auto takes, too; nullptr: it takes no such option.
const FilterOps* kind_of_auto_option(const char* name) noexcept;

// Sets the kind (and the layout, where it was not given) that keeps fpr and is expected to miss the
// fewest repeats, and why. `complete` derives the rest.
void choose_kind(Definition& definition) noexcept;

}  // namespace streamfilter
