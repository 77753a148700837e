// `auto`, the kind of a definition that names none.
#pragma once

#include "core/format/parameters.hpp"

namespace streamfilter {

// Sets the kind (and the layout, unless given) that keeps fpr and is expected to miss the fewest
// repeats, and the reason. derive_parameters does the rest.
void choose_kind(Definition& definition) noexcept;

}  // namespace streamfilter
