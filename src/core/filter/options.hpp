// Options by name, the common ones and those of a kind.
#pragma once

#include "core/base/status.hpp"
#include "core/format/parameters.hpp"
#include "core/kind/filter_kind.hpp"

namespace streamfilter {

// One `name = value` of a definition, as text. The kind's own options need `kind` to be set first:
// hosts that take options in any order call this for `kind` before the others.
// Errors: unknown_name (with the nearest name as a hint), syntax, out_of_range.
bool set_option(Definition& definition, const char* name, const char* value,
                Problem& problem) noexcept;

// An option of the kind's own by its name; nullptr: it has none of that name.
const OptionSpec* find_option(const FilterOps& ops, const char* name) noexcept;

// Does any kind have an option of this name, or all of them?
bool is_option(const char* name) noexcept;

// The kind whose own options the definition has; nullptr: none.
const FilterOps* kind_of_options(const Definition& definition) noexcept;

// Does every parameter lie in the range that set_option allows? Safe on any bytes.
bool in_range(const Parameters& parameters) noexcept;

}  // namespace streamfilter
