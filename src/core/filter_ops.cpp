#include "streamfilter/core/filter_ops.hpp"

#include <cstdio>
#include <iterator>

#include "streamfilter/core/kinds.hpp"

#include "streamfilter/core/no_postgres.hpp"

namespace streamfilter {

namespace {

// Rows by the number of their kind: every element passes here.
struct Index {
  const FilterOps* rows[256] = {};
  Index() noexcept {
    for (const FilterOps* ops : kKinds) rows[static_cast<unsigned char>(ops->kind)] = ops;
  }
};

const Index& index() noexcept {
  static const Index made;
  return made;
}

}  // namespace

const FilterOps* find_ops(Kind kind) noexcept {
  return index().rows[static_cast<unsigned char>(kind)];
}

const FilterOps* find_ops(const char* name) noexcept {
  for (const FilterOps* ops : kKinds)
    if (std::strcmp(ops->name, name) == 0) return ops;
  return nullptr;
}

bool uses_importance(const Parameters& parameters) noexcept {
  const auto uses = find_ops(parameters.kind)->uses_importance;
  return uses != nullptr && uses(parameters);
}

bool uses_time(const Parameters& parameters) noexcept {
  const auto uses = find_ops(parameters.kind)->uses_time;
  return uses != nullptr && uses(parameters);
}

const FilterOps* const* all_ops(unsigned& count) noexcept {
  count = std::size(kKinds);
  return kKinds;
}

std::size_t list_kinds(bool (*wanted)(const FilterOps&), char* buffer, std::size_t size) noexcept {
  std::size_t length = 0;
  if (size > 0) buffer[0] = '\0';
  for (const FilterOps* ops : kKinds) {
    if (!wanted(*ops) || length >= size) continue;
    length += static_cast<std::size_t>(
        std::snprintf(buffer + length, size - length, "%s%s", length > 0 ? ", " : "", ops->name));
  }
  return length < size ? length : size - 1;
}

}  // namespace streamfilter
