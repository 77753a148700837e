// A 64-byte line of 47 fingerprints of 12 bits in closed groups (bench/quality/packings.cpp), with
// AVX-512: how fast a line packed in this way could be.
//
// Five closed groups of 8, the newest first. Each has the upper 10 bits of its fingerprints; the
// lower 2 of all 8, in the order of the upper ones, are a number of 16 bits: one bit is stored, and
// the order in which the 8 lie tells 15. Then 7 fingerprints in full: first those of the open
// group, then the rest of the last group, and 3 bits with the number of open ones. 21 bits are
// free: with these as many fingerprints could have one bit more, which would cost more time, not
// less.
//
// A lookup compares the upper 10 bits: 40 comparisons at once. For one of 25 new keys a group must
// be read for the rest. A new key replaces one of the last fingerprints, so that in 7 of 8 cases
// two bytes of the line change.
//
// If two fingerprints of a group have equal upper bits, their order can tell nothing: one of them
// is changed, and so forgotten. A packing for real use would have to do better.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "core/base/hash.hpp"
#include "core/bits/fingerprint_queue.hpp"

#if defined(__x86_64__)

// Intrinsics without a mask read an uninitialised variable for lanes that they do not use.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

namespace bench {

#define FOR_CODED_LINES \
  [[gnu::target("avx512f,avx512bw,avx512vl,avx512vbmi,avx512bitalg,bmi,bmi2,popcnt")]]

inline bool has_coded_lines() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vbmi") &&
         __builtin_cpu_supports("avx512bitalg") && __builtin_cpu_supports("bmi2");
}

class CodedLines {
 public:
  static constexpr unsigned kKeys = 47;

  // Full of fingerprints that are all different.
  explicit CodedLines(unsigned lines) : lines_(lines) {
    for (unsigned line = 0; line < lines; ++line)
      for (unsigned i = 0; i < kKeys; ++i) add(lines_[line], 1 + i * 85 + line % 85);
  }

  FOR_CODED_LINES bool insert(std::uint64_t key) {
    return enter(lines_[streamfilter::position(key, 0, lines_.size())], fingerprint_of(key));
  }
  FOR_CODED_LINES bool test(std::uint64_t key) const {
    const Line& line = lines_[streamfilter::position(key, 0, lines_.size())];
    const unsigned fingerprint = fingerprint_of(key);
    const Found found = look(line, fingerprint);
    unsigned at;
    return found.whole != 0 || (found.closed != 0 && is_closed(line, found, fingerprint, at));
  }

 private:
  struct alignas(64) Line {
    unsigned char bytes[64] = {};
  };
  struct Found {
    std::uint64_t closed;  // a bit for each that has the upper bits
    unsigned whole;
    alignas(64) std::uint16_t upper[kKeys + 1];
  };

  static constexpr unsigned kGroup = 8, kGroups = 5, kLower = 2, kGroupBytes = 10;
  static constexpr unsigned kExtraByte = kGroups * kGroupBytes, kWholeByte = kExtraByte + 1;
  static constexpr unsigned kCountByte = 61, kCountStart = 4, kWhole = 7;
  static constexpr std::uint64_t kUpperMask = 0x03ff03ff03ff03ff, kMask = 0x0fff0fff0fff0fff;

  // Where a field begins: byte and bit, and which of its two bytes it takes.
  struct Fields {
    alignas(64) std::uint8_t bytes[128];
    alignas(64) std::uint16_t shift[64], mask[64];
    constexpr Fields() : bytes(), shift(), mask() {
      for (unsigned i = 0; i < kKeys; ++i) {
        const bool is_closed = i < kGroup * kGroups;
        const unsigned bit = is_closed ? 10 * i : kWholeByte * 8 + 12 * (i - kGroup * kGroups);
        bytes[2 * i] = static_cast<std::uint8_t>(bit / 8);
        bytes[2 * i + 1] = static_cast<std::uint8_t>(bit / 8 + 1);
        shift[i] = static_cast<std::uint16_t>(bit % 8);
        mask[i] = is_closed ? 0x3ff : 0xfff;
      }
    }
  };
  static const Fields kFields;

  static unsigned fingerprint_of(std::uint64_t key) {
    return 1 + static_cast<unsigned>(streamfilter::position(key, 1, 4095));
  }
  static unsigned open(const Line& line) { return line.bytes[kCountByte] >> kCountStart; }

  FOR_CODED_LINES static __m512i fields(__m512i line, unsigned half) {
    const __m512i both =
        _mm512_permutexvar_epi8(_mm512_load_si512(kFields.bytes + half * 64), line);
    return _mm512_and_si512(_mm512_srlv_epi16(both, _mm512_load_si512(kFields.shift + half * 32)),
                            _mm512_load_si512(kFields.mask + half * 32));
  }

  [[gnu::always_inline]] FOR_CODED_LINES static inline Found look(const Line& line,
                                                                  unsigned fingerprint) {
    Found found;
    const __m512i words = _mm512_load_si512(line.bytes);
    const __m512i low = fields(words, 0), high = fields(words, 1);
    const __m512i upper = _mm512_set1_epi16(static_cast<short>(fingerprint >> kLower)),
                  all = _mm512_set1_epi16(static_cast<short>(fingerprint));
    const std::uint64_t in_high =
        _mm512_cmpeq_epi16_mask(high, _mm512_mask_blend_epi16(0x7f00, upper, all)) & 0x7fff;
    found.closed = _mm512_cmpeq_epi16_mask(low, upper) | (in_high & 0xff) << 32;
    found.whole = static_cast<unsigned>(in_high >> 8);
    _mm512_store_si512(found.upper, low);
    _mm256_store_si256(reinterpret_cast<__m256i*>(found.upper + 32), _mm512_castsi512_si256(high));
    return found;
  }

  // Byte i: a bit for each j whose key is smaller than key i, or is another with an equal key.
  FOR_CODED_LINES static std::uint64_t smaller(__m128i keys) {
    const __m512i tiled = _mm512_broadcast_i32x4(keys), one = _mm512_castsi128_si512(keys);
    return _mm512_cmplt_epu16_mask(tiled, _mm512_permutexvar_epi16(repeat(0), one)) |
           static_cast<std::uint64_t>(
               _mm512_cmplt_epu16_mask(tiled, _mm512_permutexvar_epi16(repeat(4), one)))
               << 32;
  }
  FOR_CODED_LINES static std::uint64_t equal(__m128i keys, __m128i others) {
    const __m512i tiled = _mm512_broadcast_i32x4(keys), one = _mm512_castsi128_si512(others);
    return _mm512_cmpeq_epi16_mask(tiled, _mm512_permutexvar_epi16(repeat(0), one)) |
           static_cast<std::uint64_t>(
               _mm512_cmpeq_epi16_mask(tiled, _mm512_permutexvar_epi16(repeat(4), one)))
               << 32;
  }
  // Each of four eight times.
  FOR_CODED_LINES static __m512i repeat(unsigned from) {
    const __m512i lanes =
        _mm512_set_epi64(0x0003000300030003, 0x0003000300030003, 0x0002000200020002,
                         0x0002000200020002, 0x0001000100010001, 0x0001000100010001, 0, 0);
    return _mm512_add_epi16(lanes, _mm512_set1_epi16(static_cast<short>(from)));
  }
  FOR_CODED_LINES static __m128i counts(std::uint64_t bits) {
    return _mm_cvtepu8_epi16(_mm_popcnt_epi8(_mm_cvtsi64_si128(static_cast<long long>(bits))));
  }

  // Reads a closed group back.
  FOR_CODED_LINES static __m128i read(__m128i upper, unsigned extra) {
    constexpr std::uint64_t kLater = 0x0080c0e0f0f8fcfe;  // byte i: those behind i
    const std::uint64_t less = smaller(upper);
    const __m128i weighed =
        _mm_madd_epi16(counts(less & kLater), _mm_setr_epi16(5040, 720, 120, 24, 6, 2, 1, 0));
    const __m128i half = _mm_add_epi32(weighed, _mm_unpackhi_epi64(weighed, weighed));
    const unsigned number =
        static_cast<unsigned>(_mm_cvtsi128_si32(half) + _mm_extract_epi32(half, 1));
    const __m128i rank = counts(less);
    const __m128i lower =
        _mm_and_si128(_mm_srlv_epi16(_mm_set1_epi16(static_cast<short>(number | extra << 15)),
                                     _mm_add_epi16(rank, rank)),
                      _mm_set1_epi16(3));
    return _mm_or_si128(_mm_slli_epi16(upper, kLower), lower);
  }

  // The upper bits of a group in the order that tells lower bits, and the bits that remain.
  FOR_CODED_LINES static __m128i close(__m128i keys, unsigned& extra) {
    constexpr std::uint64_t kItself = 0x8040201008040201;
    __m128i upper = _mm_srli_epi16(keys, kLower);
    while (equal(upper, upper) != kItself) upper = part(upper);
    const __m128i rank = counts(smaller(upper));
    __m128i lower =
        _mm_sllv_epi16(_mm_and_si128(keys, _mm_set1_epi16(3)), _mm_add_epi16(rank, rank));
    lower = _mm_or_si128(lower, _mm_unpackhi_epi64(lower, lower));
    lower = _mm_or_si128(lower, _mm_srli_epi64(lower, 32));
    const unsigned both = static_cast<unsigned>(_mm_cvtsi128_si32(lower)),
                   number = (both | both >> 16) & 0xffff;
    extra = number >> 15;
    const std::uint64_t from =
        equal(rank, order(number & 0x7fff));  // byte: the fingerprint that comes there
    const __m128i index = counts(from - 0x0101010101010101);
    return _mm_permutexvar_epi16(index, upper);
  }

  // Makes two equal fingerprints different.
  static __m128i part(__m128i upper) {
    std::uint16_t keys[kGroup];
    std::memcpy(keys, &upper, sizeof keys);
    for (unsigned i = 1; i < kGroup; ++i)
      for (unsigned j = 0; j < i; ++j)
        if (keys[i] == keys[j]) {
          keys[i] = (keys[i] + 1) & 0x3ff;
          std::memcpy(&upper, keys, sizeof keys);
          return upper;
        }
    return upper;
  }

  // The order with this number: the rank at each place.
  FOR_CODED_LINES static __m128i order(unsigned number) {
    const __m256 weights =
        _mm256_setr_ps(1 / 5040.f, 1 / 720.f, 1 / 120.f, 1 / 24.f, 1 / 6.f, 1 / 2.f, 1, 1);
    const __m256i quotients = _mm256_cvttps_epi32(
        _mm256_mul_ps(_mm256_set1_ps(static_cast<float>(number) + .5f), weights));
    const __m256i before =
        _mm256_maskz_permutexvar_epi32(0xfe, _mm256_setr_epi32(0, 0, 1, 2, 3, 4, 5, 6), quotients);
    __m128i ranks = _mm256_cvtepi32_epi16(_mm256_sub_epi32(
        quotients, _mm256_mullo_epi32(before, _mm256_setr_epi32(8, 7, 6, 5, 4, 3, 2, 1))));
    const __m128i one = _mm_set1_epi16(1);
#pragma GCC unroll 7
    for (int i = kGroup - 2; i >= 0; --i) {
      const __m128i it = _mm_permutexvar_epi16(_mm_set1_epi16(static_cast<short>(i)), ranks);
      const auto behind = static_cast<__mmask8>(0xfe << i);
      ranks = _mm_mask_add_epi16(ranks, _mm_mask_cmpge_epu16_mask(behind, ranks, it), ranks, one);
    }
    return ranks;
  }

  // ---- the bytes of a line

  FOR_CODED_LINES static void put_group(Line& line, unsigned group, __m128i upper, unsigned extra) {
    const std::uint64_t low = _pext_u64(static_cast<std::uint64_t>(_mm_cvtsi128_si64(upper)),
                                        kUpperMask),
                        high = _pext_u64(static_cast<std::uint64_t>(_mm_extract_epi64(upper, 1)),
                                         kUpperMask);
    const std::uint64_t first = low | high << 40;
    const auto last = static_cast<std::uint16_t>(high >> 24);
    std::memcpy(line.bytes + group * kGroupBytes, &first, 8);
    std::memcpy(line.bytes + group * kGroupBytes + 8, &last, 2);
    unsigned char& extras = line.bytes[kExtraByte];
    extras = static_cast<unsigned char>((extras & ~(1u << group)) | extra << group);
  }
  FOR_CODED_LINES static __m128i group(const Line& line, const std::uint16_t* upper,
                                       unsigned group) {
    return read(_mm_loadu_si128(reinterpret_cast<const __m128i*>(upper + group * kGroup)),
                line.bytes[kExtraByte] >> group & 1);
  }
  // The last of the eight is left out; none of them is open.
  FOR_CODED_LINES static void put_whole(Line& line, __m128i keys) {
    const std::uint64_t low = _pext_u64(static_cast<std::uint64_t>(_mm_cvtsi128_si64(keys)), kMask),
                        high = _pext_u64(static_cast<std::uint64_t>(_mm_extract_epi64(keys, 1)),
                                         kMask >> 16);
    const std::uint64_t first = low | high << 48;
    const auto last = static_cast<std::uint32_t>(high >> 16);
    std::memcpy(line.bytes + kWholeByte, &first, 8);
    std::memcpy(line.bytes + kWholeByte + 8, &last, 3);
  }
  static unsigned whole(const Line& line, unsigned i) {
    std::uint16_t both;
    std::memcpy(&both, line.bytes + kWholeByte + i * 3 / 2, 2);
    return both >> i % 2 * 4 & 0xfff;
  }
  static void set_whole(Line& line, unsigned i, unsigned fingerprint) {
    std::uint16_t both;
    unsigned char* at = line.bytes + kWholeByte + i * 3 / 2;
    std::memcpy(&both, at, 2);
    both = static_cast<std::uint16_t>((both & ~(0xfffu << i % 2 * 4)) | fingerprint << i % 2 * 4);
    std::memcpy(at, &both, 2);
  }

  // ---- what happens to a line

  FOR_CODED_LINES static bool enter(Line& line, unsigned fingerprint) {
    const Found found = look(line, fingerprint);
    unsigned at;
    if (found.whole != 0) {
      const unsigned i = static_cast<unsigned>(__builtin_ctz(found.whole)), count = open(line);
      if (i < count) return true;
      set_whole(line, i, whole(line, count));
      set_whole(line, count, fingerprint);
      line.bytes[kCountByte] += 1 << kCountStart;
      return true;
    }
    if (found.closed != 0 && is_closed(line, found, fingerprint, at)) {
      if (at / kGroup >= kGroups / 2) draw(line, found, fingerprint, at);
      return true;
    }
    add(line, fingerprint, found.upper);
    return false;
  }

  FOR_CODED_LINES static bool is_closed(const Line& line, const Found& found, unsigned fingerprint,
                                        unsigned& at) {
    for (std::uint64_t rest = found.closed; rest != 0; rest &= rest - 1) {
      at = static_cast<unsigned>(__builtin_ctzll(rest));
      std::uint16_t keys[kGroup];
      const __m128i read = group(line, found.upper, at / kGroup);
      std::memcpy(keys, &read, sizeof keys);
      if (keys[at % kGroup] == fingerprint) return true;
    }
    return false;
  }

  FOR_CODED_LINES static void add(Line& line, unsigned fingerprint) {
    add(line, fingerprint, look(line, fingerprint).upper);
  }
  FOR_CODED_LINES static void add(Line& line, unsigned fingerprint, const std::uint16_t* upper) {
    const unsigned count = open(line);
    if (count == kWhole) return turn(line, fingerprint, upper);
    set_whole(line, count, fingerprint);
    line.bytes[kCountByte] += 1 << kCountStart;
  }

  // The open group is full: it is closed, and the last group is read.
  FOR_CODED_LINES static void turn(Line& line, unsigned fingerprint, const std::uint16_t* upper) {
    unsigned extra;
    const __m128i keys =
        _mm_insert_epi16(_mm_load_si128(reinterpret_cast<const __m128i*>(upper + kGroup * kGroups)),
                         static_cast<int>(fingerprint), kWhole);
    const __m128i closed = close(keys, extra), last = group(line, upper, kGroups - 1);
    std::memmove(line.bytes + kGroupBytes, line.bytes, kGroupBytes * (kGroups - 1));
    line.bytes[kExtraByte] = static_cast<unsigned char>(line.bytes[kExtraByte] << 1 & 0x1f);
    put_group(line, 0, closed, extra);
    put_whole(line, last);
  }

  // Moves a key from an older group to the open one. One of the last takes its place.
  FOR_CODED_LINES static void draw(Line& line, const Found& found, unsigned fingerprint,
                                   unsigned at) {
    if (open(line) == kWhole) {
      turn(line, fingerprint, found.upper);
      at += kGroup;
      if (at >= kGroup * kGroups) return;  // it stays among the last, twice, until it falls out
      exchange(line, look(line, fingerprint), at, kWhole - 1);
      return;
    }
    const unsigned count = open(line);
    exchange(line, found, at, count);
    set_whole(line, count, fingerprint);
    line.bytes[kCountByte] += 1 << kCountStart;
  }
  FOR_CODED_LINES static void exchange(Line& line, const Found& found, unsigned at, unsigned i) {
    std::uint16_t keys[kGroup];
    __m128i read = group(line, found.upper, at / kGroup);
    std::memcpy(keys, &read, sizeof keys);
    keys[at % kGroup] = static_cast<std::uint16_t>(whole(line, i));
    std::memcpy(&read, keys, sizeof keys);
    unsigned extra;
    const __m128i closed = close(read, extra);
    put_group(line, at / kGroup, closed, extra);
  }

  std::vector<Line> lines_;
};

inline constexpr CodedLines::Fields CodedLines::kFields;

#undef FOR_CODED_LINES

}  // namespace bench

#pragma GCC diagnostic pop

#endif
