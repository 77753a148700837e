// Turns a user's request into the parameters of a filter.
#pragma once

#include "core/filter/common_options.hpp"
#include "core/filter/definition_text.hpp"
#include "core/filter/derivation.hpp"
#include "core/filter/option_values.hpp"
#include "core/filter/options.hpp"
#include "core/filter/promise.hpp"

namespace streamfilter {

// Derives everything not given: the kind, if it is `auto`, and the rest (derive_parameters).
bool complete(Definition& definition, Problem& problem) noexcept;

// Can the filters be merged: same kind, shape, seed and parameters? Ignores `nulls`, and the
// requests `keys` and `fpr`.
bool mergeable(const Parameters& a, const Parameters& b, Problem& problem) noexcept;

}  // namespace streamfilter
