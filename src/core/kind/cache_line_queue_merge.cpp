// Kind clq: merges two filters of equal size, or takes over the keys of another size.
#include "core/format/slice_counters.hpp"
#include "core/format/spread.hpp"
#include "core/kind/cache_line_copies.hpp"
#include "core/kind/cache_line_queue.hpp"

#include "core/base/layer_wall.hpp"

namespace streamfilter::clq {
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
