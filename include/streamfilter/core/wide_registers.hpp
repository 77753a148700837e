// What processors with registers of 64 bytes (AVX-512) can do with a line and vectors of C++ cannot
// say: masks with a bit for every word.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace streamfilter {

constexpr unsigned kLineBytes = 64;
constexpr unsigned kLineBits = 512;
constexpr unsigned kLineWords = 8;

// The compiler makes of these what the machine has.
using LineVector = std::uint64_t __attribute__((vector_size(kLineBytes)));

#if defined(__x86_64__)
// Only such functions can have the ones below inlined, and they may be called only if
// has_wide_registers().
#define FOR_WIDE_REGISTERS [[gnu::target("avx512f,popcnt")]]

inline bool has_wide_registers() noexcept {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("popcnt");
}

// The words in which a bit is set.
FOR_WIDE_REGISTERS inline unsigned nonzero_words(const LineVector& words) noexcept {
  return _mm512_test_epi64_mask((__m512i)words, (__m512i)words);
}

// All bits up to the only one that is set, or all if none is.
FOR_WIDE_REGISTERS inline void bits_up_to(const LineVector& one, LineVector& bits) noexcept {
  const unsigned word = nonzero_words(one);
  bits = (LineVector)_mm512_maskz_xor_epi64(static_cast<__mmask8>(word ^ (word - 1)),
                                            (__m512i)one, (__m512i)(one - 1));
}

// The first `count` bits, 0..512.
FOR_WIDE_REGISTERS inline void first_bits_wide(unsigned count, LineVector& bits) noexcept {
  const unsigned whole = 1u << count / 64;
  bits = (LineVector)_mm512_mask_set1_epi64(
      _mm512_maskz_set1_epi64(static_cast<__mmask8>(whole - 1), -1),
      static_cast<__mmask8>(whole),
      static_cast<long long>((std::uint64_t{1} << count % 64) - 1));
}

#else
#define FOR_WIDE_REGISTERS

constexpr bool has_wide_registers() noexcept { return false; }
unsigned nonzero_words(const LineVector& words) noexcept;
void bits_up_to(const LineVector& one, LineVector& bits) noexcept;
void first_bits_wide(unsigned count, LineVector& bits) noexcept;
#endif

}  // namespace streamfilter
