#include "core/filter/key_lines.hpp"

#include <cstring>

#include "core/filter/filter.hpp"

#include "core/base/layer_wall.hpp"

namespace streamfilter {
namespace {

std::uint64_t value_of(const Parameters& parameters, const char* name) noexcept {
  const OptionSpec* option = find_option(*find_ops(parameters.kind), name);
  return option != nullptr ? parameters.integer(option->word) : 0;
}

// A change of size may have left copies of a key in other lines.
bool has_copies(const SliceState& state) noexcept {
  return (state.own[2] | state.own[3] | state.own[4]) != 0;
}

}  // namespace

bool uses_one_line(const Parameters& parameters, const SliceState& state) noexcept {
  switch (parameters.kind) {
    case Kind::capped: return true;
    case Kind::bloom: return parameters.layout == Layout::blocked;
    case Kind::clq:
      return value_of(parameters, "lines") != 2 && value_of(parameters, "window") == 0 &&
             !has_copies(state);
    default: return false;
  }
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
