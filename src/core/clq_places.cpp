// Kind clq: where a key lies, and what happens there.
#include "streamfilter/core/cache_line_queue.hpp"
#include "streamfilter/core/hash.hpp"

#include "streamfilter/core/no_postgres.hpp"

namespace streamfilter::clq {
namespace {

#define ALWAYS_INLINE [[gnu::always_inline]] inline

constexpr unsigned kBucketHash = 0, kFingerprintHash = 1;

// Where the bucket of a key is, and its fingerprint. The two come from different hash functions.
struct Place {
  ALWAYS_INLINE Place(const Parameters& p, std::uint64_t bytes, std::uint64_t hash) noexcept
      : width(static_cast<unsigned>(p.integer(kBits))),
        length(static_cast<unsigned>(p.integer(kBucket))) {
    const unsigned __int128 at =
        static_cast<unsigned __int128>(mix64(hash + (kBucketHash + 1) * kGoldenRatio)) *
        (bytes / kLineBytes);
    line = static_cast<std::uint64_t>(at >> 64) * kLineBytes;
    start = static_cast<unsigned>(scale(static_cast<std::uint64_t>(at), p.integer(kBuckets))) *
            width * length;
    fingerprint = 1 + position(hash, kFingerprintHash, (std::uint64_t{1} << width) - 1);
  }

  unsigned width, length;
  unsigned start;      // bit of the line
  std::uint64_t line;  // byte of the body
  std::uint64_t fingerprint;
};

// The tick of an element; the present for one without.
std::uint64_t tick_of(const Parameters& p, const SliceState& state,
                      const Element& element) noexcept {
  return is_finite(element.time) ? tick_at(element.time, p.integer(kTickLength)) : clock(state);
}

template <bool kWide>
ALWAYS_INLINE unsigned find(const Parameters& p, const ConstSlice& slice,
                            const Element& element) noexcept {
  const Place place(p, slice.bytes, element.hash);
  const BasicFingerprintQueue<kWide> queue(place.width, place.length, slice.body + place.line,
                                           place.start);
  LineVector reach;
  if (!queue.find(place.fingerprint, reach)) return kNoPosition;
  const unsigned at = queue.last_place(reach);
  if (!has_window(p)) return at;
  const std::uint64_t present = clock(*slice.state),
                      now = std::max(present, tick_of(p, *slice.state, element));
  const auto ages = ages_of(p, slice.body + place.line);
  const bool lives = is_live(p, ages.get(place.start / place.width + at),
                             ages.since_stamp(present) + (now - present));
  return lives ? at : kNoPosition;
}

// Without a window.
template <bool kWide>
ALWAYS_INLINE bool find_any(const Parameters& p, const ConstSlice& slice,
                            const Element& element) noexcept {
  const Place place(p, slice.bytes, element.hash);
  return BasicFingerprintQueue<kWide>(place.width, place.length, slice.body + place.line,
                                      place.start, p.integer(kBuckets) == 1)
      .has(place.fingerprint);
}

// Without a window and an importance.
template <bool kWide>
ALWAYS_INLINE bool enter(const Parameters& p, const Slice& slice, const Element& element) noexcept {
  const Place place(p, slice.bytes, element.hash);
  unsigned char* line = slice.body + place.line;
  BasicFingerprintQueue<kWide> queue(place.width, place.length, line, place.start,
                                     p.integer(kBuckets) == 1);
  LineVector reach;
  const bool seen = queue.find(place.fingerprint, reach);
  if (p.integer(kPolicy) == fifo && seen) return true;  // in this order: it can be foretold
  const std::uint64_t oldest =
      PackedFields(line, kLineBytes)
          .get(place.start + (place.length - 1) * place.width, place.width);
  used(*slice.state) += !seen & (oldest == 0);
  queue.push(place.fingerprint, reach);
  queue.store(line);
  return seen;
}

template <bool kWide>
ALWAYS_INLINE bool enter_specially(const Parameters& p, const Slice& slice,
                                   const Element& element) noexcept {
  SliceState& state = *slice.state;
  const Place place(p, slice.bytes, element.hash);
  unsigned char* line = slice.body + place.line;
  std::uint64_t late = 0;
  if (has_window(p)) {
    const std::uint64_t then = tick_of(p, state, element);
    clock(state) = std::max(clock(state), then);
    late = clock(state) - then;
    bring_up(p, state, line);
  }
  BasicFingerprintQueue<kWide> queue(place.width, place.length, line, place.start);
  LineVector reach;
  const bool seen = queue.find(place.fingerprint, reach);
  if (p.integer(kPolicy) == fifo && seen) return true;
  if (!seen && has_window(p) && late >= p.integer(kTicks)) return false;
  const bool is_full = queue.is_full();
  const unsigned last = queue.last_place(reach);
  unsigned to = entrance(p, element.importance);
  if (to > last) return true;
  if (to > 0 && !seen && !is_full) to = std::min(to, queue.size());
  used(state) += !seen && !is_full;
  queue.push_to(to, place.fingerprint, reach);
  queue.store(line);
  if (has_window(p)) {
    const auto ages = ages_of(p, line);
    const unsigned first = place.start / place.width;
    const unsigned age = seen ? ages.get(first + last) : static_cast<unsigned>(late);
    ages.push(first + to, first + last, age);
  }
  return seen;
}

const bool kIsWide = has_wide_registers();

FOR_WIDE_REGISTERS unsigned find_wide(const Parameters& p, const ConstSlice& slice,
                                      const Element& element) noexcept {
  return find<true>(p, slice, element);
}

FOR_WIDE_REGISTERS bool find_any_wide(const Parameters& p, const ConstSlice& slice,
                                      const Element& element) noexcept {
  return find_any<true>(p, slice, element);
}

FOR_WIDE_REGISTERS bool enter_wide(const Parameters& p, const Slice& slice,
                                   const Element& element) noexcept {
  return enter<true>(p, slice, element);
}

FOR_WIDE_REGISTERS bool enter_specially_wide(const Parameters& p, const Slice& slice,
                                             const Element& element) noexcept {
  return enter_specially<true>(p, slice, element);
}

// Apart, so that what they need does not weigh on the plain kind.
[[gnu::noinline]] bool insert_specially(const Parameters& p, const Slice& slice,
                                        const Element& element) noexcept {
  return kIsWide ? enter_specially_wide(p, slice, element)
                 : enter_specially<false>(p, slice, element);
}

#undef ALWAYS_INLINE

}  // namespace

unsigned entrance(const Parameters& p, double importance) noexcept {
  if (!has_importance(p)) return 0;
  unsigned parts = kPartsOfRange;
  const unsigned part = importance::part(p, kImportanceSlots, importance, parts);
  return (parts - part) * (static_cast<unsigned>(p.integer(kBucket)) * 3 / 4) / parts;
}

void bring_up(const Parameters& p, SliceState& state, unsigned char* line) noexcept {
  const auto ages = ages_of(p, line);
  const std::uint64_t later = ages.since_stamp(clock(state));
  if (later == 0) return;
  const queue_model::Shape shape = shape_of(p);
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
  prefetches.add(slice.body + Place(p, slice.bytes, element.hash).line);
}

[[gnu::noinline]] unsigned find_position(const Parameters& p,
                                         const ConstSlice& slice,
                                         const Element& element) noexcept {
  return kIsWide ? find_wide(p, slice, element) : find<false>(p, slice, element);
}

bool test(const Parameters& p, const ConstSlice& slice, const Element& element) noexcept {
  if (has_window(p)) return find_position(p, slice, element) != kNoPosition;
  return kIsWide ? find_any_wide(p, slice, element)
                 : find_any<false>(p, slice, element);
}

bool insert(const Parameters& p, const Slice& slice, const Element& element) noexcept {
  if (has_window(p) || has_importance(p)) return insert_specially(p, slice, element);
  return kIsWide ? enter_wide(p, slice, element) : enter<false>(p, slice, element);
}

// A key without a time had the clock's, which is not known any more: rather accept a repeat.
bool expired(const Parameters& p, const Element& added, const Element& present,
             std::uint64_t) noexcept {
  if (!has_window(p)) return false;
  if (!is_finite(added.time)) return true;
  const std::uint64_t length = p.integer(kTickLength);
  return is_finite(present.time) &&
         tick_at(present.time, length) >= tick_at(added.time, length) + p.integer(kTicks);
}

// The older ones move up. Another key of the same bucket and fingerprint is forgotten with it.
bool erase(const Parameters& p, Slice slice, const Element& element) noexcept {
  const Place place(p, slice.bytes, element.hash);
  unsigned char* line = slice.body + place.line;
  FingerprintQueue queue(place.width, place.length, line, place.start);
  const unsigned at = queue.place(place.fingerprint), last = queue.length() - 1;
  if (at > last) return false;
  const bool was_there = !has_window(p) || test(p, as_const(slice), element);
  for (unsigned i = at; i < last; ++i) queue.set(i, queue.get(i + 1));
  queue.set(last, 0);
  queue.store(line);
  if (has_window(p)) {
    const auto ages = ages_of(p, line);
    const unsigned first = place.start / place.width;
    for (unsigned i = first + at; i < first + last; ++i) ages.set(i, ages.get(i + 1));
    ages.set(first + last, 0);
  }
  --used(*slice.state);
  return was_there;
}

}  // namespace streamfilter::clq
