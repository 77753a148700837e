// Where copies of a key may lie in a state that was converted to another size (spread.hpp). A kind
// that stores only a key's place puts it into all new places that come from it; one of these is the
// key's own. The others are harmless until these places become one again: then a copy is as good as
// the key. So removing a key must remove its copies. They are in places that share a cell of a
// coarser division with the key's own place, with as many cells as there were places when they were
// fewest. If sizes are no multiples of each other, places span two cells, and copies may lie beyond
// the key's cell.
#pragma once

#include <algorithm>

#include "core/base/hash.hpp"

namespace streamfilter {

struct Copies {
  std::uint64_t cells = 0;  // 0: there are no copies
  std::uint64_t reach = 0;  // places beyond the cell, on either side
};

struct PlaceRange {
  std::uint64_t first, end;
};

inline std::uint64_t divide_up(unsigned __int128 number, std::uint64_t by) noexcept {
  return static_cast<std::uint64_t>((number + by - 1) / by);
}

// The range of places, among n, of a key at scale(word, n) and its copies.
inline PlaceRange range_of(const Copies& copies, std::uint64_t n, std::uint64_t word) noexcept {
  using Wide = unsigned __int128;
  const std::uint64_t cell = scale(word, copies.cells);
  const std::uint64_t first = static_cast<std::uint64_t>(Wide{cell} * n / copies.cells),
                      end = divide_up(Wide{cell + 1} * n, copies.cells);
  return {first - std::min(first, copies.reach), std::min(n, end + copies.reach)};
}

// Maximum number of places of such a range.
inline std::uint64_t most_places(const Copies& copies, std::uint64_t n) noexcept {
  return std::min(n, n / copies.cells + (n % copies.cells != 0 ? 2 : 0) + 2 * copies.reach);
}

// From n places to m. The places of a cell reach over its ends by less than one place, or not at
// all; and m cells may begin and end elsewhere than more of them did.
inline Copies resized(const Copies& before, std::uint64_t n, std::uint64_t m) noexcept {
  using Wide = unsigned __int128;
  const std::uint64_t cells = before.cells != 0 ? before.cells : n,
                      beyond = before.reach + (n % cells != 0);
  const Copies after = {std::min(cells, m), std::min(m, divide_up(Wide{beyond} * m, n) +
                                                            (m < cells && cells % m != 0))};
  return after.cells == m && after.reach == 0 ? Copies{} : after;
}

// For two states of n places that have become one.
inline Copies joined(const Copies& a, const Copies& b, std::uint64_t n) noexcept {
  if (a.cells == 0 || b.cells == 0) return a.cells != 0 ? a : b;
  const Copies &coarse = a.cells < b.cells ? a : b, &fine = a.cells < b.cells ? b : a;
  const std::uint64_t across = fine.cells % coarse.cells != 0 ? divide_up(n, fine.cells) : 0;
  return {coarse.cells, std::min(n, std::max(coarse.reach, fine.reach + across))};
}

}  // namespace streamfilter
