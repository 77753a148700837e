#include "core/kind/cache_line_copies.hpp"

#include "core/kind/cache_line_choice.hpp"

namespace streamfilter::clq {
namespace {

// A copy looks like any other key of the same fingerprint, so removing copies may remove other
// keys. The limits: that many keys lost on average, that many places searched.
constexpr double kMostLost = 0.05;
constexpr std::uint64_t kMostPlaces = 1024;

constexpr std::uint64_t kLeft = std::uint64_t{1} << 63;  // copies of removed keys have stayed

auto& cells(auto& state) noexcept { return state.own[2]; }
auto& reach(auto& state) noexcept { return state.own[3]; }  // and the flag kLeft
auto& gone(auto& state) noexcept {
  return state.own[4];
}  // with a window: the tick from which on no copy is left

bool are_there(const Parameters& p, const SliceState& state) noexcept {
  return cells(state) != 0 && (!has_window(p) || clock(state) < gone(state));
}

Copies copies_of(const Parameters& p, const SliceState& state) noexcept {
  if (!are_there(p, state)) return {};
  return {cells(state), reach(state) & ~kLeft};
}

bool have_stayed(const Parameters& p, const SliceState& state) noexcept {
  return are_there(p, state) && (reach(state) & kLeft) != 0;
}

void set_copies(const Parameters& p, SliceState& state, const Copies& copies, bool stayed,
                std::uint64_t gone_at) noexcept {
  cells(state) = copies.cells;
  reach(state) = copies.reach | (copies.cells != 0 && stayed ? kLeft : 0);
  gone(state) = copies.cells != 0 && has_window(p) ? gone_at : 0;
}

bool are_too_many(const Parameters& p, const Copies& copies) noexcept {
  const std::uint64_t others = most_places(copies, places(p)) - 1;
  return others >= kMostPlaces || to_real(others) * shape_of(p).fpr() > kMostLost;
}

// True if the key was accepted after the last resize.
bool is_later(const Parameters& p, const SliceState& state, const unsigned char* line,
              unsigned rank) noexcept {
  if (!has_window(p)) return false;
  const auto ages = ages_of(p, line);
  return gone(state) + ages.get(rank) + ages.since_stamp(clock(state)) <
         clock(state) + p.integer(kTicks);
}

void erase_copy(const Parameters& p, Slice slice, std::uint64_t place,
                std::uint64_t fingerprint) noexcept {
  const clq_model::LineShape shape = shape_of(p);
  unsigned char* line = slice.body() + place / shape.buckets() * kLineBytes;
  const unsigned first = static_cast<unsigned>(place % shape.buckets()) * shape.length,
                 start = first * shape.bits;
  const FingerprintQueue queue(shape.bits, shape.length, line, start);
  if (!queue.has(fingerprint)) return;
  const unsigned rank = queue.rank(fingerprint);
  if (!is_later(p, *slice.state, line, first + rank)) take_out(p, *slice.state, line, start, rank);
}

}  // namespace

bool has_valid_copies(const Parameters& p, const SliceState& state) noexcept {
  const std::uint64_t n = places(p), beyond = reach(state) & ~kLeft;
  if (cells(state) == 0) return reach(state) == 0 && gone(state) == 0;
  if (gone(state) > (has_window(p) ? kLastTick + p.integer(kTicks) : 0)) return false;
  return cells(state) <= n && beyond <= n && (cells(state) < n || beyond > 0);
}

void inherit_copies(const Parameters& old, const SliceState& from, const Parameters& p,
                    SliceState& into) noexcept {
  if (used(from) == 0) return;
  set_copies(p, into, resized(copies_of(old, from), places(old), places(p)), have_stayed(old, from),
             clock(from) + p.integer(kTicks));
}

void join_copies(const Parameters& p, SliceState& into, const SliceState& from) noexcept {
  const bool stayed = have_stayed(p, into) || have_stayed(p, from);
  set_copies(p, into, joined(copies_of(p, into), copies_of(p, from), places(p)), stayed,
             std::max(gone(into), gone(from)));
}

void erase_copies(const Parameters& p, Slice slice, std::uint64_t hash) noexcept {
  SliceState& state = *slice.state;
  if (!are_there(p, state)) return;
  const Copies copies = copies_of(p, state);
  if (are_too_many(p, copies)) {
    reach(state) |= kLeft;
    return;
  }
  const std::uint64_t n = places(p),
                      fingerprint = 1 + position(hash, kFingerprintHash,
                                                 (std::uint64_t{1} << p.integer(kBits)) - 1);
  const unsigned second_hash = has_choice(p) ? kSecondHash : kBucketHash;
  const std::uint64_t own[] = {position(hash, kBucketHash, n), position(hash, second_hash, n)};
  for (const unsigned i : {kBucketHash, second_hash}) {
    const PlaceRange range = range_of(copies, n, mix64(hash + (i + 1) * kGoldenRatio));
    for (std::uint64_t place = range.first; place < range.end; ++place)
      if (place != own[0] && place != own[1]) erase_copy(p, slice, place, fingerprint);
    if (!has_choice(p)) break;
  }
}

bool may_join_places(const Parameters& p, ConstSlice slice) noexcept {
  return !have_stayed(p, *slice.state);
}

void take_out(const Parameters& p, SliceState& state, unsigned char* line, unsigned start,
              unsigned rank) noexcept {
  const unsigned width = static_cast<unsigned>(p.integer(kBits)),
                 length = static_cast<unsigned>(p.integer(kBucket)), first = start / width,
                 last = first + length - 1;
  FingerprintQueue queue(width, length, line, start);
  queue.erase(rank);
  queue.store(line);
  --used(state);
  if (has_choice(p)) add_entries(line, ~0u);
  if (!has_window(p)) return;
  const auto ages = ages_of(p, line);
  for (unsigned i = first + rank; i < last; ++i) ages.set(i, ages.get(i + 1));
  ages.set(last, 0);
}

}  // namespace streamfilter::clq
