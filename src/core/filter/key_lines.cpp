#include "core/filter/key_lines.hpp"

#include "core/filter/filter.hpp"

#include "core/base/layer_wall.hpp"

namespace streamfilter {
bool uses_one_line(const Parameters& parameters, const SliceState& state) noexcept {
  const FilterOps* ops = find_ops(parameters.kind);
  return ops->in_one_line != nullptr && ops->in_one_line(parameters, state);
}

std::uint64_t line_of_key(const Header* header, std::uint64_t hash) noexcept {
  const Parameters& parameters = header->parameters;
  const ConstSlice slice = slice_at(header, slice_of(parameters, hash));
  Prefetches lines;
  find_ops(parameters.kind)->prefetch(parameters, slice, Element{hash}, lines);
  return static_cast<std::uint64_t>(static_cast<const char*>(lines.at(0)) -
                                    reinterpret_cast<const char*>(slice.state));
}

}  // namespace streamfilter
