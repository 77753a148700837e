// The cache-line queue: a key's hash names one 64-byte line and a bucket in it, B fingerprints of f
// bits in the order of last sight. A key that is found moves to the front (LRU) or stays (FIFO);
// one that is not enters at the front, and the last falls out. The place is the age: there is no
// other metadata, and an element touches one cache line.
//
// 0 stands for no fingerprint, so a new key meets one of the B others with probability B/(2^f - 1),
// for ever and on any stream. (Queues of fingerprints in buckets: Quotient Hash Tables,
// arXiv:1901.04358.)
//
// With a window, every fingerprint has an age in ticks (line_ages.hpp), of which a window takes at
// most 16, and one that has left the window is absent: it is skipped by tests and removed by the
// next insertion into its line. As in kind timer, the window counts from the row that was accepted:
// a repeat moves to the front of its bucket with the age it has. Time is what elements say, a
// slice's clock the latest of it, infinite times mean the present, and an element that is late by d
// ticks enters with age d, or not at all.
//
// With an importance, a key enters the further back in its bucket, the less it matters: the most
// important ones at the front, the least important after three quarters of the places. A key that
// is found moves up to that place, or stays where it is if that is further in front.
//
// A stamp says which tick it is modulo 2^32. A line that is left alone for so long could show what
// was in it once more; the false-positive rate holds whatever is in it.
#include <algorithm>
#include <cmath>
#include <limits>

#include "streamfilter/core/cache_line.hpp"
#include "streamfilter/core/importance.hpp"
#include "streamfilter/core/kinds.hpp"
#include "streamfilter/core/line_ages.hpp"
#include "streamfilter/core/queue_model.hpp"
#include "streamfilter/core/quotient.hpp"
#include "streamfilter/core/ticks.hpp"
#include "streamfilter/core/wide_line.hpp"

#include "streamfilter/core/no_postgres.hpp"

namespace streamfilter {
namespace {

enum Slot : unsigned {
  kBits,
  kBucket,
  kPolicy,
  kBuckets,               // derived: of one line
  kWindow,                // and its unit
  kTicks = 6,             // derived: of the window; 0 without one
  kTickLength,            // in microseconds
  kRange,                 // two numbers in the next slots
  kLevels = kRange + 3,   // up to 14 numbers in the next slots
  kParts = kLevels + 15,  // derived: of importance, one less than there are levels; 0 without
};

constexpr double kLongestWindow = 1e18;
constexpr unsigned kPartsOfRange = 7;
constexpr importance::Slots kImportanceSlots = {kRange, kLevels};

enum Policy : std::uint64_t { lru, fifo };

constexpr const char* kPolicies[] = {"lru", "fifo", nullptr};

constexpr OptionSpec kOptions[] = {
    {kBits, "bits", OptionType::integer, queue_model::kFewestBits, kWidestFingerprint, nullptr, 0},
    {kBucket, "bucket", OptionType::integer, 1, queue_model::kLongestQueue, nullptr, 0},
    {kPolicy, "policy", OptionType::choice, 0, 0, kPolicies, 0},
    {kWindow, "window", OptionType::span, 1, kLongestWindow, nullptr, 0},
    {kRange, "importance_range", OptionType::reals, -importance::kLargest, importance::kLargest,
     nullptr, 2},
    {kLevels, "importance_levels", OptionType::reals, -importance::kLargest, importance::kLargest,
     nullptr, 14},
};

constexpr unsigned kBucketHash = 0, kFingerprintHash = 1;

std::uint64_t& used(SliceState& state) noexcept { return state.own[0]; }  // places taken
std::uint64_t used(const SliceState& state) noexcept { return state.own[0]; }

std::uint64_t& clock(SliceState& state) noexcept {
  return state.own[1];
}  // with a window: the tick
std::uint64_t clock(const SliceState& state) noexcept { return state.own[1]; }

bool has_window(const Parameters& p) noexcept { return p.integer(kTicks) != 0; }
bool has_importance(const Parameters& p) noexcept { return p.integer(kParts) != 0; }

queue_model::Shape shape_of(const Parameters& p) noexcept {
  return {static_cast<unsigned>(p.integer(kBits)), static_cast<unsigned>(p.integer(kBucket)),
          has_window(p)};
}

double buckets_of_slice(const Parameters& p) noexcept {
  return static_cast<double>((p.slice_bytes - sizeof(SliceState)) / kLineBytes) *
         shape_of(p).buckets();
}

bool cannot_keep(const Definition& definition, Problem& problem) noexcept {
  problem.set(Error::conflict, "kind clq cannot keep fpr %g", definition.wanted_fpr());
  if (definition.given == 0)
    return problem.add_hint("The least it can keep is %.3g.",
                            queue_model::Shape{kWidestFingerprint, 1}.fpr());
  return problem.add_hint("Leave out bits and bucket, or use a larger fpr.");
}

// If it cannot remember all keys that there will be, it does not matter how surely it remembers the
// latest ones.
bool find_shape(const Definition& definition, queue_model::Shape& shape) noexcept {
  const Parameters& p = definition.parameters;
  const unsigned bits = definition.has(kBits) ? shape.bits : 0,
                 length = definition.has(kBucket) ? shape.length : 0;
  const double fpr = definition.wanted_fpr(),
               lines = static_cast<double>((p.slice_bytes - sizeof(SliceState)) / kLineBytes) *
                       p.slices,
               keys = static_cast<double>(p.keys) / lines;
  if (!queue_model::best_shape(fpr, bits, length, shape, has_window(p))) return false;
  if (queue_model::fnr(keys, shape.length, shape.buckets()) <= 0.01) return true;
  return queue_model::best_shape_for(keys, fpr, bits, length, shape, has_window(p));
}

// The shortest ticks with which ages fit. A key that was accepted at the end of a tick stays for
// the whole window, one at its beginning up to a tick longer.
bool derive_ticks(Definition& definition, Problem& problem) noexcept {
  Parameters& p = definition.parameters;
  if (!definition.has(kWindow)) return true;
  if (p.integer(kWindow + 1) != 0) {
    problem.set(Error::unsupported, "kind clq has no windows of rows");
    problem.add_detail("Its fingerprints have ages in time; rows push the oldest out of a bucket.");
    return problem.add_hint("Use a time, for example window '10 minutes', or kind timer.");
  }
  const std::uint64_t rest = p.integer(kWindow) - 1;
  const std::uint64_t tick = std::max<std::uint64_t>(1, (rest + kAges - 2) / (kAges - 1));
  p.set_integer(kTickLength, tick);
  p.set_integer(kTicks, (rest + tick - 1) / tick + 1);
  return true;
}

bool derive_importance(Definition& definition, Problem& problem) noexcept {
  if (!definition.has(kRange) && !definition.has(kLevels)) return true;
  if (!importance::check(definition, kImportanceSlots, problem)) return false;
  Parameters& p = definition.parameters;
  p.set_integer(kParts, definition.has(kLevels) ? p.integer(kLevels) : kPartsOfRange);
  return true;
}

bool derive(Definition& definition, Problem& problem) noexcept {
  Parameters& p = definition.parameters;
  if (!derive_ticks(definition, problem) || !derive_importance(definition, problem)) return false;
  if (!definition.has(kPolicy)) p.set_integer(kPolicy, lru);
  queue_model::Shape shape = shape_of(p);
  if (!definition.has(kBits) || !definition.has(kBucket)) {
    if (!find_shape(definition, shape)) return cannot_keep(definition, problem);
    p.set_integer(kBits, shape.bits);
    p.set_integer(kBucket, shape.length);
  }
  if (shape.is_possible()) {
    p.set_integer(kBuckets, shape.buckets());
    return true;
  }
  problem.set(Error::conflict, "a line has no room for a bucket of %u fingerprints of %u bits",
              shape.length, shape.bits);
  problem.add_detail("A line has %u bits%s, and the fingerprints of a bucket are all different.",
                     kLineBits,
                     has_window(p) ? ", of which a window takes 32 and 4 per fingerprint" : "");
  return problem.add_hint("Leave out bucket, or set it to at most %u.",
                          queue_model::longest(shape.bits, has_window(p)));
}

// Where the bucket of a key is, and its fingerprint. The two come from different hash functions.
struct Place {
  [[gnu::always_inline]] Place(const Parameters& p, std::uint64_t bytes,
                               std::uint64_t hash) noexcept
      : width(static_cast<unsigned>(p.integer(kBits))),
        length(static_cast<unsigned>(p.integer(kBucket))) {
    const unsigned __int128 at =
        static_cast<unsigned __int128>(mix64(hash + (kBucketHash + 1) * kGoldenRatio)) *
        (bytes / kLineBytes);
    line = static_cast<std::uint64_t>(at >> 64) * kLineBytes;
    start = static_cast<unsigned>(scale(static_cast<std::uint64_t>(at), p.integer(kBuckets))) *
            width * length;
    fingerprint = 1 + position(hash, kFingerprintHash, low_bits(width));
  }

  [[gnu::always_inline]] FingerprintQueue queue(const unsigned char* body) const noexcept {
    return {width, length, body + line, start};
  }

  unsigned width, length;
  unsigned start;      // bit of the line
  std::uint64_t line;  // byte of the body
  std::uint64_t fingerprint;
};

[[gnu::always_inline]] inline bool find(const Parameters& p, const ConstSlice& slice,
                                        const Element& element) noexcept {
  const Place place(p, slice.bytes, element.hash);
  LineVector reach;
  return place.queue(slice.body).find(place.fingerprint, reach);
}

[[gnu::always_inline]] inline bool enter(const Parameters& p, const Slice& slice,
                                         const Element& element) noexcept {
  const Place place(p, slice.bytes, element.hash);
  unsigned char* line = slice.body + place.line;
  FingerprintQueue queue = place.queue(slice.body);
  LineVector reach;
  const bool seen = queue.find(place.fingerprint, reach);
  if (p.integer(kPolicy) == fifo && seen) return true;  // in this order: it can be foretold
  const std::uint64_t oldest =
      PackedFields(line, kLineBytes)
          .get(place.start + (place.length - 1) * place.width, place.width);
  used(*slice.state) += !seen & (oldest == 0);
  queue.push(place.fingerprint, reach);
  queue.store(line, place.start);
  return seen;
}

// The place of a bucket where an element enters.
unsigned entrance(const Parameters& p, double importance) noexcept {
  if (!has_importance(p)) return 0;
  unsigned parts = kPartsOfRange;
  const unsigned part = importance::part(p, kImportanceSlots, importance, parts);
  return (parts - part) * (static_cast<unsigned>(p.integer(kBucket)) * 3 / 4) / parts;
}

// ---- with a window or an importance

std::uint64_t tick(const Parameters& p, std::int64_t time) noexcept {
  return tick_at(time, p.integer(kTickLength));
}

// The tick of an element; the present for one without.
std::uint64_t tick_of(const Parameters& p, const SliceState& state,
                      const Element& element) noexcept {
  return is_finite(element.time) ? tick(p, element.time) : clock(state);
}

template <typename Byte>
LineAges<Byte> ages_of(const Parameters& p, Byte* line) noexcept {
  return {line, static_cast<unsigned>(p.integer(kBuckets) * p.integer(kBucket))};
}

// Is what had this age at a line's stamp still in the window, so many ticks later?
bool is_live(const Parameters& p, unsigned age, std::uint64_t later) noexcept {
  return later < p.integer(kTicks) && age + later < p.integer(kTicks);
}

// Has the ages of a line refer to the slice's clock, without what has left the window.
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

// Where `reach` ends, in places of a bucket.
[[gnu::always_inline]] inline unsigned last_place(const LineVector& reach,
                                                  unsigned width) noexcept {
  std::uint64_t words[kLineWords];
  std::memcpy(words, &reach, sizeof words);
  unsigned bits = 0;
  for (const std::uint64_t word : words) bits += static_cast<unsigned>(__builtin_popcountll(word));
  return bits / width - 1;
}

[[gnu::always_inline]] inline bool find_in_window(const Parameters& p, const ConstSlice& slice,
                                                  const Element& element) noexcept {
  const Place place(p, slice.bytes, element.hash);
  LineVector reach;
  if (!place.queue(slice.body).find<true>(place.fingerprint, reach)) return false;
  const auto ages = ages_of(p, slice.body + place.line);
  const std::uint64_t present = clock(*slice.state),
                      now = std::max(present, tick_of(p, *slice.state, element));
  return is_live(p, ages.get(place.start / place.width + last_place(reach, place.width)),
                 ages.since_stamp(present) + (now - present));
}

[[gnu::always_inline]] inline bool enter_specially(const Parameters& p, const Slice& slice,
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
  FingerprintQueue queue = place.queue(slice.body);
  LineVector reach;
  const bool seen = queue.find<true>(place.fingerprint, reach);
  if (p.integer(kPolicy) == fifo && seen) return true;
  if (!seen && has_window(p) && late >= p.integer(kTicks)) return false;
  const bool is_full = queue.is_full();
  const unsigned last = last_place(reach, place.width);
  unsigned to = entrance(p, element.importance);
  if (to > last) return true;
  if (to > 0 && !seen && !is_full) to = std::min(to, queue.size());
  used(state) += !seen && !is_full;
  queue.push_to(to, place.fingerprint, reach);
  queue.store(line, place.start);
  if (has_window(p)) {
    const auto ages = ages_of(p, line);
    const unsigned first = place.start / place.width;
    const unsigned age = seen ? ages.get(first + last) : static_cast<unsigned>(late);
    ages.push(first + to, first + last, age);
  }
  return seen;
}

// ---- operations

// Places are in the order of last sight unless another one is asked for.
unsigned places(const Parameters& p) noexcept {
  return p.integer(kPolicy) == lru && !has_importance(p)
             ? static_cast<unsigned>(p.integer(kBucket))
             : 0;
}

[[gnu::always_inline]] inline unsigned find_place(const Parameters& p, const ConstSlice& slice,
                                                  const Element& element) noexcept {
  if (has_window(p) && !find_in_window(p, slice, element)) return kNoPlace;
  const Place place(p, slice.bytes, element.hash);
  LineVector reach;
  if (!place.queue(slice.body).find<true>(place.fingerprint, reach)) return kNoPlace;
  return last_place(reach, place.width);
}

// Where the machine has registers of 64 bytes a line takes one; the same source is compiled for
// them, too.
#if defined(__x86_64__)
#define FOR_WIDE_REGISTERS [[gnu::target("avx512f")]]
const bool kHasWideRegisters = __builtin_cpu_supports("avx512f");
#else
#define FOR_WIDE_REGISTERS
constexpr bool kHasWideRegisters = false;
#endif

FOR_WIDE_REGISTERS bool find_wide(const Parameters& p, const ConstSlice& slice,
                                  const Element& element) noexcept {
  if (p.integer(kBuckets) > 1) return find(p, slice, element);
  const Place place(p, slice.bytes, element.hash);
  __m512i reach;
  return WideLine(place.width, place.length, slice.body + place.line).find(place.fingerprint, reach);
}

FOR_WIDE_REGISTERS bool enter_wide(const Parameters& p, const Slice& slice,
                                   const Element& element) noexcept {
  if (p.integer(kBuckets) > 1) return enter(p, slice, element);
  const Place place(p, slice.bytes, element.hash);
  unsigned char* line = slice.body + place.line;
  WideLine queue(place.width, place.length, line);
  __m512i reach;
  const bool seen = queue.find(place.fingerprint, reach);
  if (p.integer(kPolicy) == fifo && seen) return true;
  const std::uint64_t oldest =
      PackedFields(line, kLineBytes).get((place.length - 1) * place.width, place.width);
  used(*slice.state) += !seen & (oldest == 0);
  queue.push(place.fingerprint, reach);
  queue.store(line);
  return seen;
}

FOR_WIDE_REGISTERS bool find_in_window_wide(const Parameters& p, const ConstSlice& slice,
                                            const Element& element) noexcept {
  return find_in_window(p, slice, element);
}

FOR_WIDE_REGISTERS bool enter_specially_wide(const Parameters& p, const Slice& slice,
                                             const Element& element) noexcept {
  return enter_specially(p, slice, element);
}

FOR_WIDE_REGISTERS unsigned find_place_wide(const Parameters& p, const ConstSlice& slice,
                                            const Element& element) noexcept {
  return find_place(p, slice, element);
}

[[gnu::noinline]] bool test_in_window(const Parameters& p, const ConstSlice& slice,
                                      const Element& element) noexcept {
  return kHasWideRegisters ? find_in_window_wide(p, slice, element)
                           : find_in_window(p, slice, element);
}

[[gnu::noinline]] bool insert_specially(const Parameters& p, const Slice& slice,
                                        const Element& element) noexcept {
  return kHasWideRegisters ? enter_specially_wide(p, slice, element)
                           : enter_specially(p, slice, element);
}

void prefetch(const Parameters& p, ConstSlice slice, const Element& element) noexcept {
  __builtin_prefetch(slice.body + Place(p, slice.bytes, element.hash).line);
}

bool test(const Parameters& p, ConstSlice slice, const Element& element) noexcept {
  if (has_window(p)) return test_in_window(p, slice, element);
  return kHasWideRegisters ? find_wide(p, slice, element) : find(p, slice, element);
}

bool insert(const Parameters& p, Slice slice, const Element& element) noexcept {
  if (has_window(p) || has_importance(p)) return insert_specially(p, slice, element);
  return kHasWideRegisters ? enter_wide(p, slice, element) : enter(p, slice, element);
}

unsigned place(const Parameters& p, const ConstSlice& slice, const Element& element) noexcept {
  return kHasWideRegisters ? find_place_wide(p, slice, element) : find_place(p, slice, element);
}

// A key without a time had the clock's, which is not known any more: rather accept a repeat.
bool expired(const Parameters& p, const Element& added, const Element& present,
             std::uint64_t) noexcept {
  if (!has_window(p)) return false;
  if (!is_finite(added.time)) return true;
  return is_finite(present.time) &&
         tick(p, present.time) >= tick(p, added.time) + p.integer(kTicks);
}

// The older ones move up. Another key of the same bucket and fingerprint is forgotten with it.
bool erase(const Parameters& p, Slice slice, const Element& element) noexcept {
  const Place place(p, slice.bytes, element.hash);
  FingerprintQueue queue = place.queue(slice.body);
  const unsigned at = queue.place(place.fingerprint), last = queue.length() - 1;
  if (at > last) return false;
  const bool was_there = !has_window(p) || find_in_window(p, as_const(slice), element);
  for (unsigned i = at; i < last; ++i) queue.set(i, queue.get(i + 1));
  queue.set(last, 0);
  queue.store(slice.body + place.line, place.start);
  if (has_window(p)) {
    const auto ages = ages_of(p, slice.body + place.line);
    const unsigned first = place.start / place.width;
    for (unsigned i = first + at; i < first + last; ++i) ages.set(i, ages.get(i + 1));
    ages.set(first + last, 0);
  }
  --used(*slice.state);
  return was_there;
}

// Calls visit(line, start) for every bucket: a byte of the body and a bit of the line.
template <typename Visit>
void for_each_bucket(const Parameters& p, std::uint64_t bytes, Visit visit) noexcept {
  const queue_model::Shape shape = shape_of(p);
  for (std::uint64_t line = 0; line < bytes; line += kLineBytes)
    for (unsigned i = 0; i < shape.buckets(); ++i) visit(line, i * shape.bits * shape.length);
}

// The ages of two streams cannot be compared, so the two queues are taken for equally old: their
// fingerprints alternate, front to front, `into` first, and those that are in both count once.
unsigned interleave(const FingerprintQueue& a, const FingerprintQueue& b,
                    FingerprintQueue& result) noexcept {
  unsigned count = 0;
  const auto add = [&](std::uint64_t fingerprint) {
    if (fingerprint == 0 || count == result.length()) return;
    for (unsigned i = 0; i < count; ++i)
      if (result.get(i) == fingerprint) return;
    result.set(count++, fingerprint);
  };
  for (unsigned i = 0; i < result.length(); ++i) {
    add(a.get(i));
    add(b.get(i));
  }
  return count;
}

// The ages of a bucket by its places.
struct Ages {
  unsigned of[queue_model::kLongestQueue + 1];

  Ages(const Parameters& p, const unsigned char* line, unsigned start) noexcept {
    const auto ages = ages_of(p, line);
    const unsigned first = start / static_cast<unsigned>(p.integer(kBits)),
                   length = static_cast<unsigned>(p.integer(kBucket));
    for (unsigned i = 0; i < length; ++i) of[i] = ages.get(first + i);
    of[length] = kAges;  // of what is not there
  }
};

// Lets the copy of a bucket grow older and be without what has left the window.
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

// With a window a key is as old as in the queue where it is younger.
void merge(const Parameters& p, Slice into, ConstSlice from) noexcept {
  const queue_model::Shape shape = shape_of(p);
  SliceState& state = *into.state;
  std::uint64_t added = 0, taken = 0;
  if (has_window(p)) clock(state) = std::max(clock(state), clock(*from.state));
  for_each_bucket(p, into.bytes, [&](std::uint64_t at, unsigned start) {
    unsigned char* line = into.body + at;
    if (has_window(p)) bring_up(p, state, line);
    const FingerprintQueue a(shape.bits, shape.length, line, start);
    FingerprintQueue b(shape.bits, shape.length, from.body + at, start), both = a;
    if (!has_window(p)) {
      for (unsigned i = 0; i < b.size(); ++i) added += a.place(b.get(i)) == a.length();
      taken += interleave(a, b, both);
      both.store(line, start);
      return;
    }
    const Ages ages_a(p, line, start);
    Ages ages_b(p, from.body + at, start);
    grow_older(p,
               ages_of(p, from.body + at).since_stamp(clock(*from.state)) +
                   (clock(state) - clock(*from.state)),
               b, ages_b);
    for (unsigned i = 0; i < b.size(); ++i) added += a.place(b.get(i)) == a.length();
    const unsigned count = interleave(a, b, both), first = start / shape.bits;
    both.store(line, start);
    for (unsigned i = 0; i < count; ++i)
      ages_of(p, line).set(
          first + i, std::min(ages_a.of[a.place(both.get(i))], ages_b.of[b.place(both.get(i))]));
    taken += count;
  });
  used(state) = taken;
  state.novel = quotient::merged_novel(state.novel, from.state->novel, added, used(*from.state));
}

// Are the fingerprints different, and in front of the places that are free?
bool is_valid(const FingerprintQueue& queue) noexcept {
  const unsigned size = queue.size();
  for (unsigned i = 0; i < size; ++i)
    if (queue.get(i) == 0 || queue.place(queue.get(i)) != i) return false;
  return true;
}

// Ages that can be, none where there is no fingerprint, and a stamp that is not in the future.
bool has_valid_ages(const Parameters& p, const SliceState& state,
                    const unsigned char* line) noexcept {
  const auto ages = ages_of(p, line);
  if (ages.since_stamp(clock(state)) > clock(state)) return false;
  const PackedFields fields(line, kLineBytes);
  const unsigned width = static_cast<unsigned>(p.integer(kBits));
  for (unsigned i = 0; i < p.integer(kBuckets) * p.integer(kBucket); ++i)
    if (ages.get(i) >= (fields.get(i * width, width) != 0 ? p.integer(kTicks) : 1)) return false;
  return true;
}

bool check(const Parameters& p, ConstSlice slice) noexcept {
  const queue_model::Shape shape = shape_of(p);
  const PackedFields fields(slice.body, slice.bytes);
  std::uint64_t taken = 0;
  bool valid = true;
  for_each_bucket(p, slice.bytes, [&](std::uint64_t line, unsigned start) {
    const FingerprintQueue queue(shape.bits, shape.length, slice.body + line, start);
    taken += queue.size();
    valid = valid && is_valid(queue);
  });
  for (std::uint64_t line = 0; line < slice.bytes; line += kLineBytes) {
    const unsigned end = has_window(p) ? ages_of(p, slice.body + line).start() : kLineBits;
    for (unsigned bit = shape.bits * shape.length * shape.buckets(); bit < end; ++bit)
      valid = valid && fields.get(line * 8 + bit, 1) == 0;
    if (has_window(p)) valid = valid && has_valid_ages(p, *slice.state, slice.body + line);
  }
  const std::uint64_t(&own)[5] = slice.state->own;
  return valid && taken == used(*slice.state) &&
         clock(*slice.state) <= (has_window(p) ? kLastTick : 0) && (own[2] | own[3] | own[4]) == 0;
}

// The share of places that are taken by what is in the window as of the latest element, in up to
// 1024 lines that are looked at.
double live_share(const Parameters& p, const ConstSlice& slice) noexcept {
  constexpr std::uint64_t kMostLooks = 1024;
  const std::uint64_t lines = slice.bytes / kLineBytes, looks = std::min(lines, kMostLooks);
  const unsigned width = static_cast<unsigned>(p.integer(kBits)),
                 places = static_cast<unsigned>(p.integer(kBuckets) * p.integer(kBucket));
  std::uint64_t count = 0;
  for (std::uint64_t i = 0; i < looks; ++i) {
    const unsigned char* line =
        slice.body +
        static_cast<std::uint64_t>(static_cast<unsigned __int128>(i) * lines / looks) * kLineBytes;
    const auto ages = ages_of(p, line);
    const PackedFields fields(line, kLineBytes);
    const std::uint64_t later = ages.since_stamp(clock(*slice.state));
    for (unsigned place = 0; place < places; ++place)
      count += fields.get(place * width, width) != 0 && is_live(p, ages.get(place), later);
  }
  return static_cast<double>(count) / static_cast<double>(looks * places);
}

// A key is counted as distinct when it is reported as new; with a window, that can be many times.
Estimate estimate(const Parameters& p, ConstSlice slice) noexcept {
  if (has_window(p)) {
    const double share = live_share(p, slice);
    return {share, share * shape_of(p).fpr(), std::numeric_limits<double>::quiet_NaN()};
  }
  const double fill = static_cast<double>(used(*slice.state)) /
                      (buckets_of_slice(p) * static_cast<double>(p.integer(kBucket)));
  return {fill, fill * shape_of(p).fpr(), static_cast<double>(slice.state->novel)};
}

double fpr_bound(const Parameters& p) noexcept { return shape_of(p).fpr(); }

// With an importance, at most: of a key of the least importance if all others matter as much.
double fnr_at(const Parameters& p, double gap) noexcept {
  return queue_model::fnr(gap, static_cast<double>(p.integer(kBucket) - entrance(p, NAN)),
                          buckets_of_slice(p) * p.slices);
}

// With FIFO it matters how often a key came since it was inserted, which is not modelled.
Prediction predict(const Parameters& p, const Stream& stream) noexcept {
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  if (p.integer(kPolicy) == fifo || has_window(p) || has_importance(p))
    return {kUnknown, kUnknown};
  return queue_model::predict(shape_of(p), buckets_of_slice(p) * p.slices, stream);
}

}  // namespace

const FilterOps clq_ops = {
    Kind::clq,
    "clq",
    "cache-line queue: keeps its false-positive rate for ever, remembers the keys seen last",
    kOptions,
    sizeof kOptions / sizeof *kOptions,
    /*has_blocked_layout=*/false,
    /*keeps_fpr_forever=*/true,
    /*uses_importance=*/has_importance,
    /*uses_time=*/has_window,
    /*learns_from_repeats=*/true,
    derive,
    /*init=*/nullptr,
    prefetch,
    test,
    insert,
    expired,
    erase,
    merge,
    check,
    estimate,
    fpr_bound,
    fnr_at,
    predict,
    places,
    place,
};

}  // namespace streamfilter
