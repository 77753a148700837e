// Definitions for tests that loop over the table of kinds. They are made of what the row of a kind
// says, so that a test meets a new kind without being told of it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/filter/filter.hpp"

namespace every_kind {

// A filter of the kind for so many keys: all of them, or those seen last.
inline std::string definition_of(const streamfilter::FilterOps& ops, const std::string& memory,
                                 std::uint64_t keys, const std::string& more = "") {
  const std::string number = std::to_string(keys);
  std::string text = std::string(ops.name) + "(memory=" + memory;
  if (ops.forgets == streamfilter::Forgets::after_window)
    text += ", window='" + number + " rows'";
  else if (!ops.keeps_fpr_forever && !ops.counts_only)
    text += ", keys=" + number;
  return text + (more.empty() ? ")" : ", " + more + ")");
}

// One of every kind, and one with each option that its row finds worth trying.
inline std::vector<std::string> definitions(const std::string& memory, std::uint64_t keys) {
  std::vector<std::string> all;
  for (const streamfilter::FilterOps* ops : streamfilter::all_ops()) {
    all.push_back(definition_of(*ops, memory, keys));
    for (const streamfilter::OptionToTry& option : ops->to_try)
      all.push_back(
          definition_of(*ops, memory, keys, std::string(option.name) + "=" + option.value));
  }
  return all;
}

// The same, behind those given, which a kind has for code of its own.
inline std::vector<std::string> definitions_and(std::span<const char* const> given,
                                                const std::string& memory, std::uint64_t keys) {
  std::vector<std::string> all(given.begin(), given.end());
  for (std::string& one : definitions(memory, keys)) all.push_back(std::move(one));
  return all;
}

}  // namespace every_kind
