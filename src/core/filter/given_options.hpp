// The options that a definition gives, for hosts that keep them one by one.
#pragma once

#include "core/format/parameters.hpp"

namespace streamfilter {

// Goes over the options of a definition that was parsed, `kind` first; each as set_option reads it.
class GivenOptions {
 public:
  explicit GivenOptions(const Definition& definition) noexcept : definition_(definition) {}

  // Goes to the next one; false: there are no more.
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
