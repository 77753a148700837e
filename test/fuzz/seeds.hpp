// The inputs that fuzzing starts from, made from the table of kinds: every kind, in every layout
// and slicing that it has, so that a new kind is fuzzed from its first day.
#pragma once

#include <functional>
#include <string>

namespace fuzz {

struct Seed {
  std::string target, name, bytes;
};
void make_seeds(const std::function<void(const Seed&)>& take);

}  // namespace fuzz
