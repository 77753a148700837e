// Operations on a line with 64-byte registers (AVX-512) that C++ vectors cannot express: masks with
// a bit per word.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace streamfilter {

constexpr unsigned kLineBytes = 64;
constexpr unsigned kLineBits = 512;
constexpr unsigned kLineWords = 8;

// The compiler maps these to the machine's registers.
using LineVector = std::uint64_t __attribute__((vector_size(kLineBytes)));
using SignedLineVector = std::int64_t __attribute__((vector_size(kLineBytes)));

#if defined(__x86_64__)
// Only functions with this attribute can inline those below. Call them only if
// has_wide_registers().
#define FOR_WIDE_REGISTERS [[gnu::target("avx512f,bmi,bmi2,popcnt")]]

inline bool has_wide_registers() noexcept {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("bmi") &&
         __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
}

// Masked forms, because compilers warn about the others.
constexpr __mmask8 kAllWords = 0xff;

// The words in which a bit is set.
FOR_WIDE_REGISTERS inline unsigned nonzero_words(const LineVector& words) noexcept {
  return _mm512_test_epi64_mask((__m512i)words, (__m512i)words);
}

// All bits up to the only set one, or all if none is set. `word`: nonzero_words(one).
FOR_WIDE_REGISTERS inline void bits_up_to(const LineVector& one, unsigned word,
                                          LineVector& bits) noexcept {
  bits = (LineVector)_mm512_maskz_xor_epi64(static_cast<__mmask8>(word ^ (word - 1)), (__m512i)one,
                                            (__m512i)(one - 1));
}

// Moves every word up by one; the highest word of `below` becomes the lowest.
FOR_WIDE_REGISTERS inline void raise_wide(const LineVector& words, const LineVector& below,
                                          LineVector& raised) noexcept {
  raised = (LineVector)_mm512_maskz_alignr_epi64(kAllWords, (__m512i)words, (__m512i)below,
                                                 kLineWords - 1);
}

FOR_WIDE_REGISTERS inline void repeat_wide(std::uint64_t word, LineVector& words) noexcept {
  words = (LineVector)_mm512_maskz_set1_epi64(kAllWords, static_cast<long long>(word));
}

#else
#define FOR_WIDE_REGISTERS

constexpr bool has_wide_registers() noexcept { return false; }
unsigned nonzero_words(const LineVector& words) noexcept;
void bits_up_to(const LineVector& one, unsigned word, LineVector& bits) noexcept;
void raise_wide(const LineVector& words, const LineVector& below, LineVector& raised) noexcept;
void repeat_wide(std::uint64_t word, LineVector& words) noexcept;
#endif

}  // namespace streamfilter
