#include "core/kind/kind_registry.hpp"

#include <cstdio>
#include <iterator>

#include "core/kind/kind_list.hpp"

namespace streamfilter {

// Built by the compiler, so that no caller has to initialise it. Numbers begin with 1.
constexpr OpsByNumber rows_by_number() noexcept {
  OpsByNumber rows{};
  for (unsigned i = 0; i < std::size(kKinds); ++i) rows.of[i + 1] = kKinds[i];
  return rows;
}
constexpr OpsByNumber kOpsByNumber = rows_by_number();

const FilterOps* find_ops(const char* name) noexcept {
  for (const FilterOps* ops : kKinds)
    if (std::strcmp(ops->name, name) == 0) return ops;
  return nullptr;
}

std::span<const OptionSpec> options_of(const FilterOps* ops) noexcept {
  return ops != nullptr ? ops->options : std::span<const OptionSpec>();
}

std::span<const FilterOps* const> all_ops() noexcept { return kKinds; }

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
