// The cache-line queue: a key's hash names one 64-byte line and a bucket in it, B fingerprints of f
// bits in the order of last sight. A key that is found moves to the front (LRU) or stays (FIFO);
// one that is not enters at the front, and the last falls out. The place is the age: there is no
// other metadata, and an element touches one cache line.
//
// 0 stands for no fingerprint, so a new key meets one of the B others with probability B/(2^f - 1),
// for ever and on any stream. (Queues of fingerprints in buckets: Quotient Hash Tables,
// arXiv:1901.04358.)
#include <algorithm>
#include <cmath>
#include <limits>

#include "streamfilter/core/cache_line.hpp"
#include "streamfilter/core/kinds.hpp"
#include "streamfilter/core/queue_model.hpp"
#include "streamfilter/core/quotient.hpp"

#include "streamfilter/core/no_postgres.hpp"

namespace streamfilter {
namespace {

// kBuckets: of one line
enum Slot : unsigned { kBits, kBucket, kPolicy, kBuckets };

enum Policy : std::uint64_t { lru, fifo };

constexpr const char* kPolicies[] = {"lru", "fifo", nullptr};

constexpr OptionSpec kOptions[] = {
    {kBits, "bits", OptionType::integer, queue_model::kFewestBits, kWidestFingerprint, nullptr, 0},
    {kBucket, "bucket", OptionType::integer, 1, queue_model::kLongestQueue, nullptr, 0},
    {kPolicy, "policy", OptionType::choice, 0, 0, kPolicies, 0},
};

constexpr unsigned kBucketHash = 0, kFingerprintHash = 1;

std::uint64_t& used(SliceState& state) noexcept { return state.own[0]; }  // places taken
std::uint64_t used(const SliceState& state) noexcept { return state.own[0]; }

queue_model::Shape shape_of(const Parameters& p) noexcept {
  return {static_cast<unsigned>(p.integer(kBits)), static_cast<unsigned>(p.integer(kBucket))};
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
  if (!queue_model::best_shape(fpr, bits, length, shape)) return false;
  if (queue_model::fnr(keys, shape.length, shape.buckets()) <= 0.01) return true;
  return queue_model::best_shape_for(keys, fpr, bits, length, shape);
}

bool derive(Definition& definition, Problem& problem) noexcept {
  Parameters& p = definition.parameters;
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
  problem.add_detail("A line has %u bits, and the fingerprints of a bucket are all different.",
                     kLineBits);
  return problem.add_hint("Leave out bucket, or set it to at most %u.",
                          queue_model::longest(shape.bits));
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
  return find(p, slice, element);
}

FOR_WIDE_REGISTERS bool enter_wide(const Parameters& p, const Slice& slice,
                                   const Element& element) noexcept {
  return enter(p, slice, element);
}

void prefetch(const Parameters& p, ConstSlice slice, const Element& element) noexcept {
  __builtin_prefetch(slice.body + Place(p, slice.bytes, element.hash).line);
}

bool test(const Parameters& p, ConstSlice slice, const Element& element) noexcept {
  return kHasWideRegisters ? find_wide(p, slice, element) : find(p, slice, element);
}

bool insert(const Parameters& p, Slice slice, const Element& element) noexcept {
  return kHasWideRegisters ? enter_wide(p, slice, element) : enter(p, slice, element);
}

// The older ones move up. Another key of the same bucket and fingerprint is forgotten with it.
bool erase(const Parameters& p, Slice slice, const Element& element) noexcept {
  const Place place(p, slice.bytes, element.hash);
  FingerprintQueue queue = place.queue(slice.body);
  unsigned i = queue.place(place.fingerprint);
  if (i == queue.length()) return false;
  for (; i + 1 < queue.length(); ++i) queue.set(i, queue.get(i + 1));
  queue.set(i, 0);
  queue.store(slice.body + place.line, place.start);
  --used(*slice.state);
  return true;
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

void merge(const Parameters& p, Slice into, ConstSlice from) noexcept {
  const queue_model::Shape shape = shape_of(p);
  SliceState& state = *into.state;
  std::uint64_t added = 0, taken = 0;
  for_each_bucket(p, into.bytes, [&](std::uint64_t line, unsigned start) {
    const FingerprintQueue a(shape.bits, shape.length, into.body + line, start),
        b(shape.bits, shape.length, from.body + line, start);
    for (unsigned i = 0; i < b.size(); ++i) added += a.place(b.get(i)) == a.length();
    FingerprintQueue both = a;
    taken += interleave(a, b, both);
    both.store(into.body + line, start);
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
  for (std::uint64_t line = 0; line < slice.bytes; line += kLineBytes)
    for (unsigned bit = shape.bits * shape.length * shape.buckets(); bit < kLineBits; ++bit)
      valid = valid && fields.get(line * 8 + bit, 1) == 0;
  const std::uint64_t(&own)[5] = slice.state->own;
  return valid && taken == used(*slice.state) && (own[1] | own[2] | own[3] | own[4]) == 0;
}

// A key is counted as distinct when it is reported as new.
Estimate estimate(const Parameters& p, ConstSlice slice) noexcept {
  const double fill = static_cast<double>(used(*slice.state)) /
                      (buckets_of_slice(p) * static_cast<double>(p.integer(kBucket)));
  return {fill, fill * shape_of(p).fpr(), static_cast<double>(slice.state->novel)};
}

double fpr_bound(const Parameters& p) noexcept { return shape_of(p).fpr(); }

double fnr_at(const Parameters& p, double gap) noexcept {
  return queue_model::fnr(gap, static_cast<double>(p.integer(kBucket)),
                          buckets_of_slice(p) * p.slices);
}

// With FIFO it matters how often a key came since it was inserted, which is not modelled.
Prediction predict(const Parameters& p, const Stream& stream) noexcept {
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  if (p.integer(kPolicy) == fifo) return {kUnknown, kUnknown};
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
    /*uses_importance=*/false,
    /*uses_time=*/false,
    /*learns_from_repeats=*/true,
    derive,
    /*init=*/nullptr,
    prefetch,
    test,
    insert,
    /*expired=*/nullptr,
    erase,
    merge,
    check,
    estimate,
    fpr_bound,
    fnr_at,
    predict,
};

}  // namespace streamfilter
