// Kind clq: the operations on a bucket, for the registers that the processor has.
#include "core/kind/cache_line_queue_ops.hpp"
#include "core/format/spread.hpp"
#include "core/kind/cache_line_choice.hpp"
#include "core/kind/cache_line_copies.hpp"

namespace streamfilter::clq {
namespace {

const bool kIsWide = has_wide_registers();

// A step of cache_line_queue_ops.hpp or cache_line_choice.hpp in a function of its own, so that one
// does not use up the registers and stack of another.
template <auto kStep, typename AnySlice>
FOR_WIDE_REGISTERS auto wide(const Parameters& p, AnySlice slice, const Element& element) noexcept {
  return kStep(p, slice, element);
}
template <auto kStep, typename AnySlice>
[[gnu::noinline]] auto portable(const Parameters& p, AnySlice slice,
                                const Element& element) noexcept {
  return kStep(p, slice, element);
}

// Takes the step for the registers that the processor has.
template <auto kWideStep, auto kPortableStep, typename AnySlice>
auto take(const Parameters& p, AnySlice slice, const Element& element) noexcept {
  return kIsWide ? wide<kWideStep>(p, slice, element) : portable<kPortableStep>(p, slice, element);
}

bool insert_specially(const Parameters& p, Slice slice, const Element& element) noexcept {
  return take<clq::enter_specially<true>, clq::enter_specially<false>>(p, slice, element);
}

}  // namespace

unsigned entrance(const Parameters& p, double importance) noexcept {
  if (!has_importance(p)) return p.integer(kPolicy) == second && p.integer(kBucket) > 1;
  unsigned parts = kPartsOfRange;
  const unsigned part = importance::part(p, kImportanceWords, importance, parts);
  return (parts - part) * (static_cast<unsigned>(p.integer(kBucket)) * 3 / 4) / parts;
}

void bring_up(const Parameters& p, SliceState& state, std::uint64_t former,
              unsigned char* line) noexcept {
  const auto ages = ages_of(p, line);
  const std::uint64_t later = ages.since_stamp(former) + (clock(state) - former);
  if (later == 0) return;
  const clq_model::LineShape shape = shape_of(p);
  const PackedFields fields(line, kLineBytes);
  for (unsigned first = 0; first < shape.buckets() * shape.length; first += shape.length) {
    unsigned kept = first;
    for (unsigned i = first; i < first + shape.length; ++i) {
      const std::uint64_t fingerprint = fields.get(i * shape.bits, shape.bits);
      if (fingerprint == 0) break;
      const unsigned age = ages.get(i);
      fields.set(i * shape.bits, shape.bits, 0);
      ages.set(i, 0);
      if (!is_live(p, age, later)) {
        --used(state);
        continue;
      }
      fields.set(kept * shape.bits, shape.bits, fingerprint);
      ages.set(kept++, age + static_cast<unsigned>(later));
    }
  }
  ages.set_stamp(clock(state));
}

void prefetch(const Parameters& p, ConstSlice slice, const Element& element,
              Prefetches& prefetches) noexcept {
  if (has_choice(p)) {
    const KeyLines key(p, slice.bytes, element.hash);
    prefetches.add(slice.body() + key.first);
    prefetches.add(slice.body() + key.second);
    return;
  }
  prefetches.add(slice.body() + KeyBucket<>(p, slice.bytes, element.hash).line);
}

unsigned find_rank(const Parameters& p, ConstSlice slice, const Element& element) noexcept {
  if (has_choice(p))
    return take<clq::find_in_either<true>, clq::find_in_either<false>>(p, slice, element);
  return take<clq::find<true>, clq::find<false>>(p, slice, element);
}

bool test(const Parameters& p, ConstSlice slice, const Element& element) noexcept {
  if (has_window(p)) return find_rank(p, slice, element) != kNoRank;
  if (is_alone(p))
    return take<clq::find_any<true, true>, clq::find_any<false, true>>(p, slice, element);
  if (has_choice(p))
    return take<clq::is_in_either<true>, clq::is_in_either<false>>(p, slice, element);
  return take<clq::find_any<true, false>, clq::find_any<false, false>>(p, slice, element);
}

bool insert(const Parameters& p, Slice slice, const Element& element) noexcept {
  if (has_window(p) || has_importance(p) || p.integer(kPolicy) == second)
    return insert_specially(p, slice, element);
  if (is_alone(p)) return take<clq::enter<true, true>, clq::enter<false, true>>(p, slice, element);
  if (has_choice(p))
    return take<clq::enter_either<true>, clq::enter_either<false>>(p, slice, element);
  return take<clq::enter<true, false>, clq::enter<false, false>>(p, slice, element);
}

bool promote(const Parameters& p, Slice slice, const Element& element, unsigned& rank) noexcept {
  unsigned at;
  if (has_window(p) || has_importance(p)) {
    at = find_rank(p, as_const(slice), element);
    if (at != kNoRank) insert_specially(p, slice, element);
  } else if (is_alone(p)) {
    at = take<clq::promote_line<true, true>, clq::promote_line<false, true>>(p, slice, element);
  } else if (has_choice(p)) {
    at = take<clq::promote_in_either<true>, clq::promote_in_either<false>>(p, slice, element);
  } else {
    at = take<clq::promote_line<true, false>, clq::promote_line<false, false>>(p, slice, element);
  }
  rank = ranks(p) > 0 ? at : kNoRank;
  return at != kNoRank;
}

WindowTicks window(const Parameters& p) noexcept {
  if (!has_window(p)) return {};
  const std::uint64_t length = p.integer(kTickLength),
                      late = ticks_of(p.integer(kLateness), length);
  return {.length = length,
          .near = p.integer(kTicks) - 1 - late,
          .late = std::max<std::uint64_t>(1, late)};
}

// Removes from both lines: after a merge or a resize a key can be in either.
static bool erase_from_both(const Parameters& p, Slice slice, const Element& element) noexcept {
  const KeyLines key(p, slice.bytes, element.hash);
  bool was_there = false;
  for (const std::uint64_t at : {key.first, key.second}) {
    unsigned char* line = slice.body() + at;
    const unsigned rank = FingerprintQueue(key.width, key.length, line, 0).rank(key.fingerprint);
    if (rank == key.length) continue;
    take_out(p, *slice.state, line, 0, rank);
    was_there = true;
  }
  return was_there;
}

// Another key of the same bucket and fingerprint is forgotten as well.
bool erase(const Parameters& p, Slice slice, const Element& element) noexcept {
  erase_copies(p, slice, element.hash);
  if (has_choice(p)) return erase_from_both(p, slice, element);
  const KeyBucket<> bucket(p, slice.bytes, element.hash);
  unsigned char* line = slice.body() + bucket.line;
  const unsigned rank =
      FingerprintQueue(bucket.width, bucket.length, line, bucket.start).rank(bucket.fingerprint);
  if (rank == bucket.length) return false;
  const bool was_there = !has_window(p) || test(p, as_const(slice), element);
  take_out(p, *slice.state, line, bucket.start, rank);
  return was_there;
}

// ---- merging ------------------------------------------------------------------------------------

// Kind clq: merges two filters of equal size, or takes over the keys of another size.

namespace {

// Ages of two streams cannot be compared, so both queues count as equally old: their fingerprints
// alternate from the front, and those in both queues count once. Buckets take turns in whose
// fingerprint is first, because that queue keeps one more if the length is odd.
unsigned interleave(const FingerprintQueue& a, const FingerprintQueue& b, FingerprintQueue& result,
                    bool turned) noexcept {
  unsigned count = 0;
  const auto add = [&](std::uint64_t fingerprint) {
    if (fingerprint == 0 || count == result.length()) return;
    for (unsigned i = 0; i < count; ++i)
      if (result.get(i) == fingerprint) return;
    result.set(count++, fingerprint);
  };
  for (unsigned i = 0; i < result.length(); ++i) {
    add((turned ? b : a).get(i));
    add((turned ? a : b).get(i));
  }
  return count;
}

// The ages of a bucket, by rank.
struct Ages {
  unsigned of[clq_model::kMaxQueue + 1];

  Ages(const Parameters& p, const unsigned char* line, unsigned start) noexcept {
    const auto ages = ages_of(p, line);
    const unsigned first = start / static_cast<unsigned>(p.integer(kBits)),
                   length = static_cast<unsigned>(p.integer(kBucket));
    for (unsigned i = 0; i < length; ++i) of[i] = ages.get(first + i);
    of[length] = kAges;  // the age of a fingerprint that is not there
  }
};

// Ages the copy of a bucket, and drops keys that have left the window.
void grow_older(const Parameters& p, std::uint64_t later, FingerprintQueue& queue,
                Ages& ages) noexcept {
  const unsigned size = queue.size();
  unsigned kept = 0;
  for (unsigned i = 0; i < size; ++i) {
    const std::uint64_t fingerprint = queue.get(i);
    queue.set(i, 0);
    if (!is_live(p, ages.of[i], later)) continue;
    ages.of[kept] = ages.of[i] + static_cast<unsigned>(later);
    queue.set(kept++, fingerprint);
  }
}

}  // namespace

// With a window, a key in both queues keeps the younger age.
void merge(const Parameters& p, Slice into, ConstSlice from) noexcept {
  const clq_model::LineShape shape = shape_of(p);
  SliceState& state = *into.state;
  std::uint64_t added = 0, taken = 0;
  const std::uint64_t former = clock(state);
  if (has_window(p)) clock(state) = std::max(clock(state), clock(*from.state));
  for_each_bucket(p, into.bytes, [&](std::uint64_t at, unsigned start) {
    const bool turned = (at / kLineBytes + start / (shape.bits * shape.length)) % 2 != 0;
    unsigned char* line = into.body() + at;
    if (has_window(p) && start == 0) bring_up(p, state, former, line);  // the whole line
    const FingerprintQueue a(shape.bits, shape.length, line, start);
    FingerprintQueue b(shape.bits, shape.length, from.body() + at, start), both = a;
    if (!has_window(p)) {
      unsigned entered = 0;
      for (unsigned i = 0; i < b.size(); ++i) entered += a.rank(b.get(i)) == a.length();
      added += entered;
      taken += interleave(a, b, both, turned);
      both.store(line);
      if (has_choice(p)) add_entries(line, entered);
      return;
    }
    const Ages ages_a(p, line, start);
    Ages ages_b(p, from.body() + at, start);
    grow_older(p,
               ages_of(p, from.body() + at).since_stamp(clock(*from.state)) +
                   (clock(state) - clock(*from.state)),
               b, ages_b);
    for (unsigned i = 0; i < b.size(); ++i) added += a.rank(b.get(i)) == a.length();
    const unsigned count = interleave(a, b, both, turned), first = start / shape.bits;
    both.store(line);
    for (unsigned i = 0; i < count; ++i)
      ages_of(p, line).set(
          first + i, std::min(ages_a.of[a.rank(both.get(i))], ages_b.of[b.rank(both.get(i))]));
    taken += count;
  });
  used(state) = taken;
  join_copies(p, state, *from.state);
  state.inserted_new =
      merged_new_by_entries(state.inserted_new, from.state->inserted_new, added, used(*from.state));
}

std::uint64_t places(const Parameters& p) noexcept {
  return body_bytes(p) / kLineBytes * shape_of(p).buckets();
}

// A key that is copied to several buckets lives on in the bucket where lookups find it. In the
// others it is washed out, or removed with the key (cache_line_copies.hpp). Keys that have left the
// window are not copied.
void spread(const Parameters& old, ConstSlice from, const Parameters& p, Slice into,
            std::uint64_t layer) noexcept {
  const clq_model::LineShape shape = shape_of(p);
  const unsigned buckets = shape.buckets(), length = shape.length, bits = shape.bits;
  clock(*into.state) = clock(*from.state);
  inherit_copies(old, *from.state, p, *into.state);
  if (has_window(p))
    for (std::uint64_t line = 0; line < into.bytes; line += kLineBytes)
      ages_of(p, into.body() + line).set_stamp(clock(*into.state));
  for_each_place(places(old), places(p), layer, [&](std::uint64_t to, std::uint64_t at) {
    const unsigned char* source = from.body() + at / buckets * kLineBytes;
    unsigned char* target = into.body() + to / buckets * kLineBytes;
    const PackedFields fields(target, kLineBytes);
    const PackedFields old_fields(source, kLineBytes);
    const unsigned first = static_cast<unsigned>(at % buckets) * length;
    unsigned next = static_cast<unsigned>(to % buckets) * length;
    const std::uint64_t later =
        has_window(p) ? ages_of(p, source).since_stamp(clock(*from.state)) : 0;
    for (unsigned i = first; i < first + length; ++i) {
      const std::uint64_t fingerprint = old_fields.get(i * bits, bits);
      if (fingerprint == 0) break;
      if (has_window(p)) {
        const unsigned age = ages_of(p, source).get(i);
        if (!is_live(p, age, later)) continue;
        ages_of(p, target).set(next, age + static_cast<unsigned>(later));
      }
      fields.set(next++ * bits, bits, fingerprint);
      ++used(*into.state);
    }
    if (has_choice(p)) add_entries(target, entries(source));
  });
}

}  // namespace streamfilter::clq
