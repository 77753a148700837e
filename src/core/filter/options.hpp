// Options by name, common ones and a kind's own.
#pragma once

#include "core/base/text.hpp"
#include "core/kind/filter_kind.hpp"

namespace streamfilter {

// Sets one `name = value` of a definition, as text. A kind's own options need `kind` first: hosts
// that take options in any order call this for `kind` before the others. Errors: unknown_name (with
// the nearest name as a hint, also of the host's own options), syntax, out_of_range.
bool set_option(Definition& definition, const char* name, const char* value, Problem& problem,
                WordList own_options = kNoWords) noexcept;

// A kind's own option by name; nullptr if there is none.
const OptionSpec* find_option(const FilterOps& ops, const char* name) noexcept;

// The kind whose own options the definition has; nullptr: none.
const FilterOps* kind_of_options(const Definition& definition) noexcept;

// Is every parameter in the range that set_option allows? Safe on any bytes.
bool in_range(const Parameters& parameters) noexcept;

// ---- lists --------------------------------------------------------------------------------------

// Lists the options of a definition as text, for hosts that store them one by one.

// Iterates over the options of a parsed definition, `kind` first, each as set_option reads it.
class ListedOptions {
 public:
  explicit ListedOptions(const Definition& definition) noexcept : definition_(definition) {}

  // Moves to the next option; false if there is none.
  bool next() noexcept;

  const char* name() const noexcept { return name_; }
  const char* value() const noexcept { return value_; }

 private:
  bool read_common(Common id) noexcept;
  bool read_own(unsigned number) noexcept;

  const Definition& definition_;
  unsigned next_ = 0;
  const char* name_ = "";
  char value_[512] = "";
};

}  // namespace streamfilter
