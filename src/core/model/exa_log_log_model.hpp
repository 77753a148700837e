// Registers of ExaLogLog with t = 2 and d = 24 (Ertl 2024), and how many keys they have seen.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>

namespace streamfilter::exa_log_log_model {

constexpr unsigned kSub = 2;       // t: four update values share a probability
constexpr unsigned kHistory = 24;  // d
constexpr unsigned kMaxValue = ((64 - kSub) << kSub) + (1 << kSub);
constexpr std::uint32_t kHistoryBits = (1u << kHistory) - 1;
static_assert(kMaxValue < 1u << (32 - kHistory));

// The update value of 64 random bits (§2.3): leading zeros of all but the last two, and these.
inline unsigned update_value(std::uint64_t bits) noexcept {
  const unsigned zeros = static_cast<unsigned>(std::countl_zero(bits | ((1u << kSub) - 1)));
  return (std::min(zeros, 64 - kSub) << kSub) + static_cast<unsigned>(bits & ((1u << kSub) - 1)) +
         1;
}

// A value has probability 2^-exponent(value) (equation 9).
constexpr unsigned exponent(unsigned value) noexcept {
  return std::min(kSub + 1 + ((value - 1) >> kSub), 64u);
}

// The bits of the history from `value` down, of a register whose largest value is `largest`.
inline std::uint32_t history_bit(unsigned largest, unsigned value) noexcept {
  const unsigned below = largest - value;  // 1: the next lower
  return below <= kHistory ? 1u << (kHistory - below) : 0;
}

// A register after an update value (algorithm 2).
inline std::uint32_t updated(std::uint32_t before, unsigned value) noexcept {
  const unsigned largest = before >> kHistory;
  if (value == largest) return before;
  if (value < largest) return before | history_bit(largest, value);
  const unsigned more = value - largest;
  const std::uint32_t all = (before & kHistoryBits) | (largest > 0 ? 1u << kHistory : 0);
  return value << kHistory | (more <= kHistory ? all >> more : 0);
}

// A register after all that two have seen (algorithm 5).
inline std::uint32_t merged(std::uint32_t a, std::uint32_t b) noexcept {
  if (a >> kHistory < b >> kHistory) std::swap(a, b);
  const unsigned more = (a >> kHistory) - (b >> kHistory);
  const std::uint32_t all =
      (b & kHistoryBits) | (b >> kHistory > 0 && more > 0 ? 1u << kHistory : 0);
  return a | (more <= kHistory ? all >> more : 0);
}

// Merges `count` registers that lie one behind the other.
void merge_registers(unsigned char* into, const unsigned char* from, std::uint64_t count) noexcept;

// Could update values make it? None is below 1.
inline bool is_possible(std::uint32_t bits) noexcept {
  const unsigned largest = bits >> kHistory;
  if (largest > kMaxValue) return false;
  if (largest == 0) return bits == 0;
  const unsigned values = largest - 1;  // that can be in the history
  return values >= kHistory || (bits & kHistoryBits & ((1u << (kHistory - values)) - 1)) == 0;
}

// With x keys for each register, the registers have the likelihood (equation 15)
//   exp(-x alpha) * product over j of (1 - exp(-x / 2^j))^beta_j:
// alpha is the probability of all update values that would change them, summed over registers, and
// beta_j how many values of probability 2^-j are known to have come.
//
// A token (kind/exa_log_log.hpp) is one value more that has come, of those that a finer
// register would have.
class Likelihood {
 public:
  // Adds `count` registers that lie one behind the other.
  void add_registers(const unsigned char* bytes, std::uint64_t count) noexcept;

  void add_empty(std::uint64_t registers) noexcept {
    registers_ += registers;
    alpha_ += registers * kOne;
  }
  // In one of those; probability 2^-exponent.
  void add_token(unsigned exponent) noexcept {
    alpha_ -= kOne >> exponent;
    ++beta_[exponent];
  }

  // The number of keys that makes them most likely.
  double distinct() const noexcept;

  double change() const noexcept;  // probability that a new key changes any

 private:
  static constexpr unsigned kMaxExponent = 65;  // of tokens; of registers 64
  // Probabilities are sums of multiples of 2^-65, exactly: in whatever order they are added.
  // Where memory is only aligned to 8 bytes, as palloc() aligns it, too.
  using Probability [[gnu::aligned(8)]] = unsigned __int128;
  static constexpr Probability kOne = Probability{1} << kMaxExponent;

  std::uint64_t registers_ = 0;
  Probability alpha_ = 0;
  std::uint64_t beta_[kMaxExponent + 1] = {};
};

// Two filters side by side: a value of a register has come to each of them, has not, or is below
// its history. Keys of the first alone, of both and of the second alone, x, y and z for each
// register, bring a value of probability q = 2^-j independently, so the likelihood of all values is
// a product: of exp(-(x + y + z) q) for one that has come to neither, of 1 - exp(-(x + y) q) for
// one that has come to the first and is unknown of the second, and so on.
class JointLikelihood {
 public:
  void add_registers(const unsigned char* a, const unsigned char* b, std::uint64_t count) noexcept;

  // Registers without a token, with so many values of a probability; then one that has some.
  void add_registers(std::uint64_t count) noexcept { registers_ += count; }
  void add_values(unsigned exponent, std::uint64_t count) noexcept {
    came_[exponent][kNo * 3 + kNo] += count;
  }
  void add_token(unsigned exponent, bool of_first, bool of_second) noexcept {
    --came_[exponent][kNo * 3 + kNo];
    ++came_[exponent][(of_first ? kYes : kNo) * 3 + (of_second ? kYes : kNo)];
  }

  // The number of keys of both where each has so many, and its standard error; at none or all, how
  // far it may be off in two of three cases.
  double both(double first, double second, double& error) const noexcept;

 private:
  // If the number is y for each register: by how much the most likely one exceeds it, the standard
  // error of that by Fisher's information, without what only the numbers of keys vary by, which are
  // Poisson distributed here, and the logarithm of its likelihood.
  struct Hypothesis {
    double more, error, log;
  };
  Hypothesis suppose(double y, double a, double b) const noexcept;

  enum Known { kNo, kYes, kUnknown };
  static constexpr unsigned kMaxExponent = 65;

  std::uint64_t registers_ = 0;
  std::uint64_t came_[kMaxExponent + 1][9] = {};  // 3 times what is known of the first, and second
};

// The relative standard error of the number for many keys: sqrt(3.78 / bits) (table 1, ELL(2, 24)).
double relative_error(double bits) noexcept;

}  // namespace streamfilter::exa_log_log_model
