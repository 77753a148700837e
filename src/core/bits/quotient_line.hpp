// A 64-byte line as a small quotient filter (Pandey et al., "Vector Quotient Filters", SIGMOD 2021,
// in other shapes). An entry is a tag, that is a bucket and a remainder, and perhaps an age code. A
// line of S slots, B buckets, remainders of R bits, and age codes of A bits, from bit 0 on:
//
//   S*R  remainders, in the order of their buckets; slots in use come first, the others are 0
//   A*S  age codes as A planes of S bits: bit i of plane p is bit p of the code of slot i
//   S    `ends`: bit i says that slot i is the last of its bucket's run
//   B    `occupied`: bit q says that bucket q has a run
//
// So the run of a bucket is found by counting ones in `occupied` and finding that one in `ends`.
// Ages in planes let all slots be compared at once. The bytes are the same with and without BMI2.
#pragma once

#include <bit>

#include "core/base/hash.hpp"
#include "core/bits/fingerprint_queue.hpp"

namespace streamfilter {

constexpr unsigned kMaxSlots = 63, kMaxBuckets = 127, kMaxRemainder = 32, kMaxAgeBits = 8;

template <unsigned kSlots, unsigned kBuckets, unsigned kBits, unsigned kAges>
struct FixedShape {
  static constexpr unsigned slots = kSlots, buckets = kBuckets, bits = kBits, ages = kAges;
};
struct AnyShape {  // known at run time only
  unsigned slots, buckets, bits, ages;
};

#if defined(__x86_64__)
// Only functions with this attribute can inline those below. Call them only if has_bmi2(). AVX2,
// which the same processors have, moves lines.
#define FOR_BMI2 [[gnu::target("avx2,bmi,bmi2,popcnt")]]
inline bool has_bmi2() noexcept {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
         __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
}
FOR_BMI2 inline unsigned count_ones_bmi2(std::uint64_t x) noexcept {
  return static_cast<unsigned>(_mm_popcnt_u64(x));
}
FOR_BMI2 inline unsigned find_one_bmi2(std::uint64_t x, unsigned k) noexcept {
  return static_cast<unsigned>(_tzcnt_u64(_pdep_u64(std::uint64_t{1} << k, x)));
}
#else
#define FOR_BMI2
constexpr bool has_bmi2() noexcept { return false; }
unsigned count_ones_bmi2(std::uint64_t x) noexcept;
unsigned find_one_bmi2(std::uint64_t x, unsigned k) noexcept;
#endif

namespace quotient_line {

constexpr std::uint64_t kEachByte = 0x0101010101010101;

// The number of ones in each byte.
inline std::uint64_t ones_of_bytes(std::uint64_t x) noexcept {
  x -= x >> 1 & 0x5555555555555555;
  x = (x & 0x3333333333333333) + (x >> 2 & 0x3333333333333333);
  return (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0f;
}

}  // namespace quotient_line

#define ALWAYS_INLINE [[gnu::always_inline]] inline

template <bool kBmi2>
ALWAYS_INLINE unsigned count_ones(std::uint64_t x) noexcept {
  if constexpr (kBmi2) return count_ones_bmi2(x);
  return static_cast<unsigned>(quotient_line::ones_of_bytes(x) * quotient_line::kEachByte >> 56);
}

// The place of the k-th one, from 0; any number below 64 if there are not so many.
template <bool kBmi2>
ALWAYS_INLINE unsigned find_one(std::uint64_t x, unsigned k) noexcept {
  if constexpr (kBmi2) return find_one_bmi2(x, k) & 63;
  using namespace quotient_line;
  constexpr std::uint64_t kTops = kEachByte << 7;
  const std::uint64_t sums = ones_of_bytes(x) * kEachByte,  // in all bytes up to each
      enough = ((k * kEachByte | kTops) - sums) & kTops;
  const unsigned byte = static_cast<unsigned>((enough >> 7) * kEachByte >> 53) & 56,
                 before = static_cast<unsigned>(sums << 8 >> byte) & 255;
  std::uint64_t ones = x >> byte & 255;
  for (unsigned i = before; i < k; ++i) ones &= ones - 1;
  return (byte + static_cast<unsigned>(std::countr_zero(ones))) & 63;
}

// `which` ? x : y, without a branch: which line has a key cannot be predicted.
template <typename Number>
ALWAYS_INLINE Number choose(std::uint64_t which, Number x, Number y) noexcept {
  return static_cast<Number>(y ^ ((x ^ y) & static_cast<Number>(0 - which)));
}

// `kBmi2`: the caller is FOR_BMI2. `Byte` is const-qualified for reading.
template <typename Shape, bool kBmi2, typename Byte = unsigned char>
class QuotientLine {
 public:
  ALWAYS_INLINE QuotientLine(const Shape& shape, Byte* line) noexcept
      : shape_(shape), line_(line) {}

  // Where a tag is, or would be.
  struct Spot {
    unsigned start;  // of the bucket's run
    unsigned count;  // slots in use
    unsigned slot;   // of the tag, if it is there
    unsigned hit;    // 1: it is
    std::uint64_t has_run, ends;
  };

  ALWAYS_INLINE Spot look(unsigned bucket, std::uint64_t remainder) const noexcept {
    Spot s;
    s.ends = ends();
    s.has_run = is_occupied(bucket);
    s.start = find_one<kBmi2>(s.ends << 1 | 1, runs_before(bucket));
    s.count = in_front(s.ends);
    // The first two of the run without a branch; few runs are longer.
    const std::uint64_t rest = s.ends >> s.start;
    const unsigned one = static_cast<unsigned>(s.has_run) & (this->remainder(s.start) == remainder),
                   two = static_cast<unsigned>(s.has_run & ~rest) &
                         (this->remainder(s.start + 1) == remainder);
    s.hit = one | two;
    s.slot = s.start + (one ^ 1);
    if (s.has_run & ((rest & 3) == 0)) [[unlikely]] {
      const unsigned further =
          QuotientLine(shape_, line_).find_further(remainder, s.start + 2, s.ends);
      s.hit |= further < kMaxSlots;
      s.slot = further < kMaxSlots ? further : s.slot;
    }
    return s;
  }

  ALWAYS_INLINE unsigned count() const noexcept { return in_front(ends()); }

  // A mask of the slots in use.
  ALWAYS_INLINE std::uint64_t in_use() const noexcept { return low_bits(count()); }

  // Puts a tag that is not there in front of its run; `spot`: what `look` says. Needs a free slot.
  ALWAYS_INLINE void put(const Spot& spot, unsigned bucket, std::uint64_t remainder,
                         std::uint64_t code) noexcept {
    LineVector words, below, upper;
    std::memcpy(&words, line_, kLineBytes);
    std::memcpy(&below, kFirstBits.of[spot.start * shape_.bits].words, kLineBytes);
    std::memcpy(&upper, kFirstBits.of[shape_.slots * shape_.bits].words, kLineBytes);
    upper &= ~below;
    const LineVector tail = words & upper,
                     raised = __builtin_shufflevector(tail, LineVector{}, 8, 0, 1, 2, 3, 4, 5, 6);
    words = (words & ~upper) | (((tail << shape_.bits) | raised >> (64 - shape_.bits)) & upper);
    std::memcpy(line_, &words, kLineBytes);
#pragma GCC unroll 8
    for (unsigned p = 0; p < shape_.ages; ++p)
      set(ages_at(p), shape_.slots,
          spread(get(ages_at(p), shape_.slots), spot.start, code >> p & 1));
    set(ends_at(), shape_.slots, spread(spot.ends, spot.start, spot.has_run ^ 1));
    set_bit(occupied_at() + bucket, 1);
    enter(spot.start * shape_.bits, remainder);
  }

  // Empties a slot in use.
  void take_out(unsigned slot) noexcept {
    const std::uint64_t ends = this->ends(), last = ends >> slot & 1,
                        first = (ends << 1 | 1) >> slot & 1;
    const unsigned occupied = occupied_at() + bucket_of(count_ones<kBmi2>(ends & low_bits(slot)));
    LineVector words, below, upper;
    std::memcpy(&words, line_, kLineBytes);
    std::memcpy(&below, kFirstBits.of[slot * shape_.bits].words, kLineBytes);
    std::memcpy(&upper, kFirstBits.of[shape_.slots * shape_.bits].words, kLineBytes);
    const LineVector all = words & upper,
                     lowered = __builtin_shufflevector(all, LineVector{}, 1, 2, 3, 4, 5, 6, 7, 8);
    upper &= ~below;
    words = (words & ~upper) | (((all >> shape_.bits) | lowered << (64 - shape_.bits)) & upper);
    std::memcpy(line_, &words, kLineBytes);
    for (unsigned p = 0; p < shape_.ages; ++p)
      set(ages_at(p), shape_.slots, close(get(ages_at(p), shape_.slots), slot));
    set(ends_at(), shape_.slots, close(ends, slot) | (last & (first ^ 1)) << slot >> 1);
    set_bit(occupied, (last & first) ^ 1);  // the only one of its run
  }

  // Calls visit(slot, bucket, remainder) for each entry.
  template <typename Visit>
  void for_each_entry(Visit visit) const noexcept {
    const std::uint64_t ends = this->ends();
    const unsigned count = in_front(ends);
    for (unsigned slot = 0, run = 0; slot < count; run += ends >> slot & 1, ++slot)
      visit(slot, bucket_of(run), remainder(slot));
  }

  // ---- ages

  ALWAYS_INLINE unsigned code(unsigned slot) const noexcept {
    unsigned code = 0;
#pragma GCC unroll 8
    for (unsigned p = 0; p < shape_.ages; ++p)
      code |= static_cast<unsigned>(word((ages_at(p) + slot) / 64) >> (ages_at(p) + slot) % 64 & 1)
              << p;
    return code;
  }

  ALWAYS_INLINE void set_code(unsigned slot, std::uint64_t code) noexcept {
#pragma GCC unroll 8
    for (unsigned p = 0; p < shape_.ages; ++p) set_bit(ages_at(p) + slot, code >> p & 1);
  }

  // The slots in use whose codes are less than `steps` steps ahead of `base`.
  std::uint64_t within(std::uint64_t base, std::uint64_t steps) const noexcept {
    if (steps >> shape_.ages != 0) return in_use();
    std::uint64_t ahead[kMaxAgeBits], less = 0;
    steps_ahead(base, ahead);
    for (unsigned p = 0; p < shape_.ages; ++p)
      less = steps >> p & 1 ? ~ahead[p] | less : ~ahead[p] & less;
    return less & in_use();
  }

  // Those with the code that is least ahead of it; `steps`: by how many. None has to be free.
  std::uint64_t least_ahead(std::uint64_t base, std::uint64_t& steps) const noexcept {
    std::uint64_t ahead[kMaxAgeBits], least = low_bits(shape_.slots);
    steps_ahead(base, ahead);
    steps = 0;
    for (unsigned p = shape_.ages; p-- > 0;) {
      const std::uint64_t zero = least & ~ahead[p];
      steps = steps * 2 + (zero == 0);
      if (zero != 0) least = zero;
    }
    return least;
  }

  // Can these bytes be a line? Safe on any.
  bool is_valid() const noexcept {
    const std::uint64_t ends = this->ends(), free = low_bits(shape_.slots) & ~in_use();
    const unsigned past = occupied_at() + shape_.buckets;
    bool valid = runs_before(shape_.buckets) == count_ones<kBmi2>(ends) &&
                 (past == kLineBits || PackedFields(line_, kLineBytes).is_zero_from(past));
    for (unsigned slot = in_front(ends); slot < shape_.slots; ++slot)
      valid = valid && remainder(slot) == 0;
    for (unsigned p = 0; p < shape_.ages; ++p)
      valid = valid && (get(ages_at(p), shape_.slots) & free) == 0;
    return valid;
  }

 private:
  ALWAYS_INLINE unsigned ages_at(unsigned plane) const noexcept {
    return shape_.slots * (shape_.bits + plane);
  }
  ALWAYS_INLINE unsigned ends_at() const noexcept { return ages_at(shape_.ages); }
  ALWAYS_INLINE unsigned occupied_at() const noexcept { return ages_at(shape_.ages + 1); }

  ALWAYS_INLINE std::uint64_t word(unsigned i) const noexcept {
    std::uint64_t word;
    std::memcpy(&word, line_ + i * 8, sizeof word);
    return word;
  }
  // Up to 64 bits, at least one.
  ALWAYS_INLINE std::uint64_t get(unsigned from, unsigned size) const noexcept {
    const unsigned shift = from % 64;
    std::uint64_t bits = word(from / 64) >> shift;
    if (shift + size > 64) bits |= word(from / 64 + 1) << (64 - shift);
    return bits & low_bits(size);
  }

  // All writes but that of the remainders are of whole words: a read of parts of several writes
  // would have to wait for them.
  ALWAYS_INLINE void write(unsigned i, std::uint64_t word) noexcept {
    std::memcpy(line_ + i * 8, &word, sizeof word);
  }
  ALWAYS_INLINE void set(unsigned from, unsigned size, std::uint64_t bits) noexcept {
    const unsigned i = from / 64, shift = from % 64;
    const std::uint64_t all = low_bits(size);
    write(i, (word(i) & ~(all << shift)) | bits << shift);
    if (shift + size > 64)
      write(i + 1, (word(i + 1) & ~(all >> (64 - shift))) | bits >> (64 - shift));
  }
  ALWAYS_INLINE void set_bit(unsigned bit, std::uint64_t value) noexcept {
    write(bit / 64, (word(bit / 64) & ~(std::uint64_t{1} << bit % 64)) | value << bit % 64);
  }
  // Where all bits are 0.
  ALWAYS_INLINE void enter(unsigned bit, std::uint64_t bits) noexcept {
    const unsigned i = std::min(bit / 64, kLineWords - 2);
    const auto wide = static_cast<unsigned __int128>(bits) << (bit - i * 64);
    write(i, word(i) | static_cast<std::uint64_t>(wide));
    write(i + 1, word(i + 1) | static_cast<std::uint64_t>(wide >> 64));
  }

  ALWAYS_INLINE std::uint64_t ends() const noexcept { return get(ends_at(), shape_.slots); }
  ALWAYS_INLINE static unsigned in_front(std::uint64_t ends) noexcept {
    return 63 - static_cast<unsigned>(__builtin_clzll(ends << 1 | 1));
  }

  // Near the end of the line, from its last whole word.
  ALWAYS_INLINE std::uint64_t remainder(unsigned slot) const noexcept {
    const unsigned bit = slot * shape_.bits, byte = std::min(bit / 8, kLineBytes - 8);
    std::uint64_t word;
    std::memcpy(&word, line_ + byte, sizeof word);
    return word >> ((bit - byte * 8) & 63) & low_bits(shape_.bits);
  }

  ALWAYS_INLINE std::uint64_t is_occupied(unsigned bucket) const noexcept {
    const unsigned bit = occupied_at() + bucket;
    return word(bit / 64) >> bit % 64 & 1;
  }
  ALWAYS_INLINE unsigned runs_before(unsigned bucket) const noexcept {
    if (shape_.buckets < 64)
      return count_ones<kBmi2>(get(occupied_at(), shape_.buckets) & low_bits(bucket));
    const std::uint64_t low = get(occupied_at(), 64), high = upper_buckets(),
                        above = 0 - std::uint64_t{bucket >= 64},
                        part = (std::uint64_t{1} << bucket % 64) - 1;
    return count_ones<kBmi2>(low & (part | above)) + count_ones<kBmi2>(high & part & above);
  }
  ALWAYS_INLINE std::uint64_t upper_buckets() const noexcept {
    return shape_.buckets > 64 ? get(occupied_at() + 64, shape_.buckets - 64) : 0;
  }
  ALWAYS_INLINE unsigned bucket_of(unsigned run) const noexcept {
    if (shape_.buckets < 64) return find_one<kBmi2>(get(occupied_at(), shape_.buckets), run);
    const std::uint64_t low = get(occupied_at(), 64);
    const unsigned runs = count_ones<kBmi2>(low);
    return run < runs ? find_one<kBmi2>(low, run)
                      : 64 + find_one<kBmi2>(upper_buckets(), run - runs);
  }

  // From a slot of a run on; kMaxSlots if it is not there.
  [[gnu::noinline]] unsigned find_further(std::uint64_t remainder, unsigned slot,
                                          std::uint64_t ends) const noexcept {
    for (;; ++slot) {
      if (this->remainder(slot) == remainder) return slot;
      if (ends >> slot & 1) return kMaxSlots;
    }
  }

  // Moves bits from `at` on up by one, or down onto the one at `at`.
  ALWAYS_INLINE static std::uint64_t spread(std::uint64_t bits, unsigned at,
                                            std::uint64_t bit) noexcept {
    const std::uint64_t below = low_bits(at);
    return (bits & below) | (bits & ~below) << 1 | bit << at;
  }
  ALWAYS_INLINE static std::uint64_t close(std::uint64_t bits, unsigned at) noexcept {
    return (bits & low_bits(at)) | (bits >> 1 & ~low_bits(at));
  }

  // The codes of all slots minus that of `base`, in planes.
  void steps_ahead(std::uint64_t base, std::uint64_t (&ahead)[kMaxAgeBits]) const noexcept {
    std::uint64_t borrow = 0;
    for (unsigned p = 0; p < shape_.ages; ++p) {
      const std::uint64_t less = 0 - (base >> p & 1), code = get(ages_at(p), shape_.slots),
                          differ = code ^ less;
      ahead[p] = differ ^ borrow;
      borrow = (~code & less) | (~differ & borrow);
    }
  }

  [[no_unique_address]] Shape shape_;
  Byte* line_;
};

#undef ALWAYS_INLINE

}  // namespace streamfilter
