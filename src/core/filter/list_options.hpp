// Lists the options of a definition as text, for hosts that store them one by one.
#pragma once

#include "core/format/parameters.hpp"

namespace streamfilter {

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
