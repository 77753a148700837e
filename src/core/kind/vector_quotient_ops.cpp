// Kind vqf: the steps of a key for the shapes of lines that fpr asks for and the instructions that
// the processor has; sweeps, merging, and another size.
#include "core/kind/vector_quotient_steps.hpp"

namespace streamfilter::vqf {
namespace {

using PlainLine = QuotientLine<AnyShape, false, unsigned char>;
using ReadLine = QuotientLine<AnyShape, false, const unsigned char>;

// The functions for one shape.
struct Steps {
  bool (*test)(const Parameters&, ConstSlice, const Element&) noexcept;
  bool (*insert)(const Parameters&, Slice, const Element&, bool always) noexcept;
  unsigned buckets;
};

template <typename Shape>
FOR_BMI2 bool test_bmi2(const Parameters& p, ConstSlice slice, const Element& element) noexcept {
  return test_lines<Shape, true>(p, slice, element);
}
template <typename Shape>
bool test_plain(const Parameters& p, ConstSlice slice, const Element& element) noexcept {
  return test_lines<Shape, false>(p, slice, element);
}
template <typename Shape, bool kWindow>
FOR_BMI2 bool insert_bmi2(const Parameters& p, Slice slice, const Element& element,
                          bool always) noexcept {
  if constexpr (kWindow) return insert_in_window<Shape, true>(p, slice, element, always);
  return insert_known<Shape, true>(p, slice, element);
}
template <typename Shape, bool kWindow>
bool insert_plain(const Parameters& p, Slice slice, const Element& element, bool always) noexcept {
  if constexpr (kWindow) return insert_in_window<Shape, false>(p, slice, element, always);
  return insert_known<Shape, false>(p, slice, element);
}

template <typename Shape, bool kBmi2, bool kWindow>
constexpr Steps steps(unsigned buckets) noexcept {
  if constexpr (kBmi2) return {test_bmi2<Shape>, insert_bmi2<Shape, kWindow>, buckets};
  return {test_plain<Shape>, insert_plain<Shape, kWindow>, buckets};
}

constexpr unsigned kUsualAges = 4;

#if defined(__x86_64__)
constexpr bool kMayHaveBmi2 = true;
#else
constexpr bool kMayHaveBmi2 = false;
#endif

template <bool kBmi2>
struct StepTable {
  Steps usual[2][kMaxRemainder + 1] = {};  // without and with a window, by the bits
  Steps any[2] = {steps<AnyShape, kBmi2, false>(0), steps<AnyShape, kBmi2, true>(0)};

  template <unsigned slots, unsigned buckets, unsigned bits, unsigned ages>
  constexpr void add(FixedShape<slots, buckets, bits, ages> shape) noexcept {
    static_assert(slots == vector_quotient_model::slots_of(bits, buckets, ages));
    usual[ages > 0][bits] = steps<decltype(shape), kBmi2, (ages > 0)>(buckets);
  }

  // What is derived for an fpr of 1e-1 to 1e-6. Code for old processors is for any shape only.
  constexpr StepTable() noexcept {
    if (!kBmi2 && kMayHaveBmi2) return;
    add(FixedShape<63, 71, 6, 0>{});
    add(FixedShape<53, 88, 7, 0>{});
    add(FixedShape<39, 44, 11, 0>{});
    add(FixedShape<31, 47, 14, 0>{});
    add(FixedShape<26, 44, 17, 0>{});
    add(FixedShape<22, 28, 21, 0>{});
    add(FixedShape<49, 71, 4, kUsualAges>{});
    add(FixedShape<37, 68, 7, kUsualAges>{});
    add(FixedShape<30, 32, 11, kUsualAges>{});
    add(FixedShape<25, 37, 14, kUsualAges>{});
    add(FixedShape<21, 29, 18, kUsualAges>{});
    add(FixedShape<19, 37, 20, kUsualAges>{});
  }

  const Steps& of(const Parameters& p) const noexcept {
    const unsigned aged = has_window(p);
    const Steps& row = usual[aged][p.integer(kBits)];
    return row.buckets == p.integer(kBuckets) && p.integer(kAges) == aged * kUsualAges ? row
                                                                                       : any[aged];
  }
};
constexpr StepTable<kMayHaveBmi2> kStepsBmi2;
constexpr StepTable<false> kStepsPlain;

const bool kHasBmi2 = has_bmi2();

inline const Steps& steps_of(const Parameters& p) noexcept {
  return kHasBmi2 ? kStepsBmi2.of(p) : kStepsPlain.of(p);
}

}  // namespace

bool test(const Parameters& p, ConstSlice slice, const Element& element) noexcept {
  return steps_of(p).test(p, slice, element);
}

void insert_unconditionally(const Parameters& p, Slice slice, const Element& element) noexcept {
  steps_of(p).insert(p, slice, element, /*always=*/true);
}

bool insert(const Parameters& p, Slice slice, const Element& element) noexcept {
  return steps_of(p).insert(p, slice, element, /*always=*/false);
}

bool renews(const Parameters& p, ConstSlice slice, const Element& element) noexcept {
  if (!is_extended(p)) return false;
  KeyLines<AnyShape, false, const SliceState, const unsigned char> key(p, slice, element);
  key.look();
  return key.has_key() && key.epoch(key.which(), key.slot()) < tick_of(p, *slice.state, element);
}

void prefetch(const Parameters& p, ConstSlice slice, const Element& element,
              Prefetches& prefetches) noexcept {
  const Lines<const SliceState, const unsigned char> lines(p, slice);
  const Place place = place_of(p, static_cast<unsigned>(p.integer(kBuckets)),
                               static_cast<unsigned>(p.integer(kBits)), lines.count, element.hash);
  prefetches.add(lines.at(place.line[0]));
  prefetches.add(lines.at(place.line[1]));
  if (!has_window(p)) return;
  prefetches.add(lines.stamp_at(place.line[0]));
  prefetches.add(lines.stamp_at(place.line[1]));
}

// After a resize or a merge both lines may have an entry with the key's tag.
bool erase(const Parameters& p, Slice slice, const Element& element) noexcept {
  KeyLines<AnyShape, false, SliceState, unsigned char> key(p, slice, element);
  bool was_there = false;
  for (unsigned i = 0; i < 2; ++i) {
    PlainLine line = key.line(i);
    const auto spot = line.look(key.place.bucket, key.place.remainder);
    if (!spot.hit) continue;
    was_there = was_there || !has_window(p) ||
                key.epoch(i, spot.slot) + window_ticks(p) >= clock(*slice.state);
    line.take_out(spot.slot);
    --used(*slice.state);
  }
  return was_there;
}

void sweep(const Parameters& p, Slice slice, std::uint64_t line) noexcept {
  SliceState& state = *slice.state;
  const Lines<SliceState, unsigned char> lines(p, slice);
  const AnyShape shape = shape_of(p);
  const std::uint64_t base = lines.stamp(line), to = clock(state) - kept_ticks(p) + 1,
                      first = line / kGroupLines * kGroupLines,
                      end = std::min(first + kGroupLines, lines.count);
  for (std::uint64_t i = first; i < end; ++i) {
    PlainLine at(shape, lines.at(i));
    if (at.count() == 0) continue;
    std::uint64_t old = at.within(base, to - base);
    used(state) -= count_ones<false>(old);
    if (old == at.in_use()) std::memset(lines.at(i), 0, kLineBytes);
    while (old != 0 && at.count() > 0) {
      const unsigned slot = 63 - static_cast<unsigned>(__builtin_clzll(old));
      at.take_out(slot);
      old ^= std::uint64_t{1} << slot;
    }
  }
  std::memcpy(lines.stamp_at(line), &to, sizeof to);
}

// ---- full lines -------------------------------------------------------------------------------

static void replace(const Parameters& p, Slice slice, const Place& place, unsigned i, unsigned slot,
                    std::uint64_t code) noexcept {
  PlainLine line(shape_of(p), Lines<SliceState, unsigned char>(p, slice).at(place.line[i]));
  line.take_out(slot);
  line.put(line.look(place.bucket, place.remainder), place.bucket, place.remainder, code);
}

void replace_any(const Parameters& p, Slice slice, const Place& place) noexcept {
  const std::uint64_t chance = mix64(place.remainder + place.line[0]);
  count_evicted(*slice.state, 1);
  replace(p, slice, place, 0, static_cast<unsigned>(scale(chance, shape_of(p).slots)), 0);
}

// The least epoch in two full lines, and the slots that have it.
static std::uint64_t find_oldest(const Parameters& p, Slice slice, const Place& place,
                                 std::uint64_t (&slots)[2]) noexcept {
  const Lines<SliceState, unsigned char> lines(p, slice);
  std::uint64_t epochs[2];
  for (unsigned i = 0; i < 2; ++i) {
    const std::uint64_t base = lines.stamp(place.line[i]);
    slots[i] = PlainLine(shape_of(p), lines.at(place.line[i])).least_ahead(base, epochs[i]);
    epochs[i] += base;
  }
  if (epochs[0] > epochs[1]) slots[0] = 0;
  if (epochs[1] > epochs[0]) slots[1] = 0;
  return std::min(epochs[0], epochs[1]);
}

static bool is_kept(const Parameters& p, const SliceState& state, std::uint64_t epoch) noexcept {
  return clock(state) - epoch < kept_ticks(p);
}

void replace_oldest(const Parameters& p, Slice slice, const Place& place,
                    std::uint64_t then) noexcept {
  std::uint64_t slots[2];
  const std::uint64_t epoch = find_oldest(p, slice, place, slots);
  count_evicted(*slice.state, is_kept(p, *slice.state, std::min(then, epoch)));
  if (then < epoch) return;
  const unsigned first = count_ones<false>(slots[0]), all = first + count_ones<false>(slots[1]),
                 which = static_cast<unsigned>(scale(mix64(place.remainder + place.line[0]), all));
  const unsigned slot =
      which < first ? find_one<false>(slots[0], which) : find_one<false>(slots[1], which - first);
  replace(p, slice, place, which >= first, slot, then);
}

// ---- another size -------------------------------------------------------------------------------

using Wide = unsigned __int128;

std::uint64_t moved(std::uint64_t line, std::uint64_t tag, unsigned level, std::uint64_t from,
                    std::uint64_t to) noexcept {
  return static_cast<std::uint64_t>(
      (Wide{line} << 32 | (mix64(~tag + level * kGoldenRatio) >> 32)) * to / from >> 32);
}

std::uint64_t moved_back(std::uint64_t line, std::uint64_t tag, unsigned level, std::uint64_t from,
                         std::uint64_t to) noexcept {
  std::uint64_t before = static_cast<std::uint64_t>(Wide{line} * from / to);
  before -= before > 0;
  while (moved(before, tag, level, from, to) < line) ++before;
  return before;
}

std::uint64_t moved_on(const Parameters& p, std::uint64_t line, std::uint64_t tag,
                       std::uint64_t n) noexcept {
  const unsigned last = levels(p) - 1;
  for (unsigned i = 0; i < last; ++i) line = moved(line, tag, i, level(p, i), level(p, i + 1));
  return moved(line, tag, last, level(p, last), n);
}

Place place_of_entry(const Parameters& p, std::uint64_t n, std::uint64_t line, unsigned bucket,
                     std::uint64_t remainder) noexcept {
  Place place = {bucket, remainder, {line, line}};
  const std::uint64_t tag = tag_of(p, bucket, remainder);
  if (levels(p) == 0) place.line[1] = partner(line, tag, n);
  if (levels(p) == 1) {
    const std::uint64_t first = level(p, 0);
    place.line[1] = moved_on(p, partner(moved_back(line, tag, 0, first, n), tag, first), tag, n);
  }
  return place;
}

bool inherit(const Parameters& from, Parameters& p) noexcept {
  const std::uint64_t before = lines_of(from, body_bytes(from)), now = lines_of(p, body_bytes(p));
  for (unsigned i = 0; i < levels(p); ++i)  // another origin was asked for
    if (i >= levels(from) || level(p, i) != level(from, i)) return false;
  for (unsigned i = 0; i <= kMaxLevels; ++i) p.set_integer(kOrigin + i, from.integer(kOrigin + i));
  if (before == now) return true;
  const auto add = [&](std::uint64_t lines) {
    if (levels(p) == kMaxLevels) return false;
    p.set_real(kOrigin + 1 + levels(p), to_real(lines));
    p.set_integer(kOrigin, levels(p) + 1);
    return true;
  };
  return (levels(p) > 0 || add(before)) && (now >= least_lines(p) || add(now));
}

// ---- merging ------------------------------------------------------------------------------------

namespace {

// Calls visit(line, bucket, remainder, epoch) for each entry.
template <typename Visit>
void for_each_entry(const Parameters& p, ConstSlice slice, Visit visit) noexcept {
  const Lines<const SliceState, const unsigned char> lines(p, slice);
  const AnyShape shape = shape_of(p);
  for (std::uint64_t i = 0; i < lines.count; ++i) {
    const ReadLine line(shape, lines.at(i));
    const std::uint64_t base = has_window(p) ? lines.stamp(i) : 0;
    line.for_each_entry([&](unsigned slot, unsigned bucket, std::uint64_t remainder) {
      visit(i, bucket, remainder, base + ((line.code(slot) - base) & low_bits(shape.ages)));
    });
  }
}

// Enters entries of another slice.
class Absorption {
 public:
  Absorption(const Parameters& p, Slice into, ConstSlice from) noexcept
      : p_(p),
        slice_(into),
        key_(p, into, Element{}),
        salt_(mix64(into.state->insertions + from.state->insertions)) {}

  // Returns true if it was not there.
  bool enter(const Place& place, std::uint64_t epoch) noexcept {
    SliceState& state = *slice_.state;
    key_.place = place;
    if (has_window(p_)) {
      if (!is_kept(p_, state, epoch)) return false;
      for (const std::uint64_t line : place.line) sweep_if_due(p_, slice_, key_.lines, line);
    }
    key_.look();
    if (key_.has_key()) {
      if (has_window(p_)) remember(p_, slice_, key_, epoch);
      return false;
    }
    if (key_.put(epoch))
      ++used(state);
    else
      replace_least(epoch);
    return true;
  }

 private:
  // Of the entries of a full line, or the oldest of both, and the new one, that of the least rank
  // goes, a function of the entry that is another in each merge: so neither side is preferred,
  // whichever comes first.
  void replace_least(std::uint64_t epoch) noexcept {
    const auto rank = [&](unsigned bucket, std::uint64_t remainder) {
      return mix64(tag_of(p_, bucket, remainder) ^ salt_);
    };
    std::uint64_t slots[2] = {low_bits(kMaxSlots), 0}, oldest = epoch;
    if (has_window(p_)) oldest = find_oldest(p_, slice_, key_.place, slots);
    count_evicted(*slice_.state, is_kept(p_, *slice_.state, std::min(epoch, oldest)));
    if (epoch < oldest) return;
    unsigned which = 2, last = 0;
    std::uint64_t least =
        epoch == oldest ? rank(key_.place.bucket, key_.place.remainder) : ~std::uint64_t{0};
    for (unsigned i = 0; i < 2; ++i)
      key_.line(i).for_each_entry([&](unsigned slot, unsigned bucket, std::uint64_t remainder) {
        const std::uint64_t its = rank(bucket, remainder);
        if ((slots[i] >> slot & 1) == 0 || its >= least) return;
        least = its, which = i, last = slot;
      });
    if (which < 2) replace(p_, slice_, key_.place, which, last, epoch);
  }

  const Parameters& p_;
  Slice slice_;
  KeyLines<AnyShape, false, SliceState, unsigned char> key_;
  std::uint64_t salt_;
};

}  // namespace

namespace {

// Two streams whose windows count rows merge as if their rows had come by turns, each spread evenly
// over the whole.
struct Turns {
  std::uint64_t rows, tick;  // of both; rows of a tick

  // The epoch of one of `own` rows. The last row that it can stand for is taken for it.
  std::uint64_t epoch(std::uint64_t old, std::uint64_t own) const noexcept {
    const std::uint64_t age = own - std::min(own, old * tick + tick - 1);
    const Wide later = own > 0 ? Wide{age} * rows / own : 0;
    return static_cast<std::uint64_t>(later < rows ? (rows - later) / tick : 0);
  }
};

void set_present(const Parameters& p, Slice slice, const Turns& turns) noexcept {
  SliceState& state = *slice.state;
  const Lines<SliceState, unsigned char> lines(p, slice);
  const AnyShape shape = shape_of(p);
  const std::uint64_t now = turns.rows / turns.tick, first = now - std::min(now, kept_ticks(p) - 1);
  for (std::uint64_t i = 0; i < lines.count; ++i) {
    PlainLine line(shape, lines.at(i));
    const std::uint64_t base = lines.stamp(i);
    for (unsigned slot = line.count(); slot-- > 0;) {
      const std::uint64_t epoch =
          turns.epoch(base + ((line.code(slot) - base) & low_bits(shape.ages)), rows(state));
      if (epoch >= first) {
        line.set_code(slot, epoch);
      } else {
        line.take_out(slot);
        --used(state);
      }
    }
    if ((i + 1) % kGroupLines == 0 || i + 1 == lines.count)
      std::memcpy(lines.stamp_at(i), &first, sizeof first);
  }
  rows(state) = turns.rows;
  clock(state) = now;
}

}  // namespace

void merge(const Parameters& p, Slice into, ConstSlice from) noexcept {
  SliceState& state = *into.state;
  std::uint64_t added = used(*from.state);
  count_evicted(state, evicted(*from.state));
  if (used(state) == 0 && rows(state) == 0) {
    std::memcpy(into.body(), from.body(), into.bytes);
    used(state) = used(*from.state);
    rows(state) = rows(*from.state);
    clock(state) = std::max(clock(state), clock(*from.state));
  } else {
    const Turns turns = {std::min(rows(state) + rows(*from.state), kMaxInsertions),
                         p.integer(kTickLength)};
    if (counts_rows(p))
      set_present(p, into, turns);
    else
      clock(state) = std::max(clock(state), clock(*from.state));
    Absorption absorption(p, into, from);
    added = 0;
    for_each_entry(
        p, from,
        [&](std::uint64_t line, unsigned bucket, std::uint64_t remainder, std::uint64_t epoch) {
          const std::uint64_t n = lines_of(p, into.bytes);
          if (counts_rows(p)) epoch = turns.epoch(epoch, rows(*from.state));
          added += absorption.enter(place_of_entry(p, n, line, bucket, remainder), epoch);
        });
  }
  state.inserted_new =
      merged_new_by_entries(state.inserted_new, from.state->inserted_new, added, used(*from.state));
}

// From the lines that entries have had among the fewest, they follow to any other number.
void move(const Parameters& old, ConstSlice from, const Parameters& p, Slice into,
          std::uint32_t) noexcept {
  const std::uint64_t before = lines_of(old, from.bytes), now = lines_of(p, into.bytes),
                      least = least_lines(old);
  const unsigned last = levels(old) > 0 ? levels(old) - 1 : 0;
  clock(*into.state) = clock(*from.state);
  rows(*into.state) = rows(*from.state);
  evicted(*into.state) = evicted(*from.state);
  Absorption absorption(p, into, from);
  for_each_entry(
      old, from,
      [&](std::uint64_t line, unsigned bucket, std::uint64_t remainder, std::uint64_t epoch) {
        const std::uint64_t tag = tag_of(p, bucket, remainder),
                            first = moved_back(line, tag, last, least, before);
        absorption.enter(
            place_of_entry(p, now, moved(first, tag, last, least, now), bucket, remainder), epoch);
      });
}

}  // namespace streamfilter::vqf
