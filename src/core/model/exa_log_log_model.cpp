#include "core/model/exa_log_log_model.hpp"

#include <boost/math/tools/roots.hpp>
#include <cmath>
#include <cstring>

#include "core/base/math_policy.hpp"
#include "core/bits/avx512.hpp"

namespace streamfilter::exa_log_log_model {
namespace {

using Probability = unsigned __int128;

constexpr unsigned kUnit = 65;  // probabilities are multiples of 2^-65

constexpr Probability probability(unsigned exponent) noexcept {
  return Probability{1} << (kUnit - exponent);
}

// By a value, the probability of all that a register with this largest one does not take for
// granted: those below its history are (equation 12, summed from the last value down).
struct Open {
  constexpr Open() noexcept : of{} {
    Probability from[kMaxValue + 2] = {};
    for (unsigned value = kMaxValue; value > 0; --value)
      from[value] = from[value + 1] + probability(exponent(value));
    for (unsigned value = 0; value <= kMaxValue; ++value)
      of[value] = from[value > kHistory ? value - kHistory : 1];
  }
  Probability of[kMaxValue + 1];
};
constexpr Open kOpen;
static_assert(kOpen.of[0] == Probability{1} << kUnit);

constexpr unsigned kGroup = 1u << kSub;  // values of one probability: a nibble of bits
static_assert(kGroup == 4);
constexpr unsigned kGroups = (kMaxValue + kGroup - 1) / kGroup;
constexpr unsigned kNibbles = 16;

// How many registers have which largest value, and have seen how many of the values that share a
// probability.
//
// Registers whose values lie within 64 of each other are added up as words with a bit for each
// value, four of them a nibble: three words at a time, for a nibble counts to 15, and these by
// bytes.
class Histogram {
 public:
  void add(const unsigned char* bytes, std::uint64_t count) noexcept {
    for (std::uint64_t i = 0; i < count; i += kAtOnce)
      add_some(bytes + i * sizeof(std::uint32_t), std::min<std::uint64_t>(kAtOnce, count - i));
  }

  std::uint64_t largest(unsigned value) const noexcept { return largest_[value]; }
  std::uint64_t seen(unsigned group) const noexcept { return seen_[group]; }

 private:
  static constexpr unsigned kTogether = 3, kSums = 21;
  static constexpr unsigned kAtOnce = kTogether * kSums;  // 3 * 4 * 21 fits in a byte

  static std::uint64_t seen_by_group(std::uint64_t word) noexcept {
    word -= word >> 1 & 0x5555555555555555;
    return (word & 0x3333333333333333) + (word >> 2 & 0x3333333333333333);
  }

  // A bit for each value that came, `first` + 1 being the lowest; 0 if it does not fit.
  std::uint64_t word_of(std::uint32_t bits, unsigned first) noexcept {
    const unsigned largest = bits >> kHistory, last = first + 64;
    ++largest_[largest];
    if (largest == 0) return 0;
    const std::uint64_t came = (bits & kHistoryBits) | 1u << kHistory;
    if (largest <= last) return came << (63 - kHistory) >> (last - largest);
    add_alone(came, largest);
    return 0;
  }

  void add_alone(std::uint64_t came, unsigned largest) noexcept {
    const unsigned group = (largest - 1) / kGroup;
    std::uint64_t word = seen_by_group(came << (largest - 1) % kGroup);
    for (unsigned i = 0; i <= kHistory / kGroup; ++i, word >>= 4)
      seen_[group + i - kHistory / kGroup] += word & 15;
  }

  void add_some(const unsigned char* bytes, std::uint64_t count) noexcept {
    std::uint32_t some[kAtOnce] = {};
    std::memcpy(some, bytes, count * sizeof *some);
    const std::uint32_t least = *std::min_element(some, some + count) >> kHistory;
    const unsigned first = least > kHistory + 1 ? (least - kHistory - 1) / kGroup * kGroup : 0;
    std::uint64_t even = 0, odd = 0;
    for (unsigned i = 0; i < kAtOnce; i += kTogether) {
      const std::uint64_t sum = seen_by_group(word_of(some[i], first)) +
                                seen_by_group(word_of(some[i + 1], first)) +
                                seen_by_group(word_of(some[i + 2], first));
      even += sum & 0x0f0f0f0f0f0f0f0f;
      odd += sum >> 4 & 0x0f0f0f0f0f0f0f0f;
    }
    largest_[0] -= kAtOnce - count;
    for (unsigned i = 0; i < kNibbles; i += 2, even >>= 8, odd >>= 8) {
      seen_[first / kGroup + i] += even & 255;
      seen_[first / kGroup + i + 1] += odd & 255;
    }
  }

  std::uint64_t largest_[256] = {};
  std::uint64_t seen_[kGroups + kNibbles] = {};
};

constexpr std::uint64_t kWide = kLineBytes / sizeof(std::uint32_t);
using WideRegisters = std::uint32_t __attribute__((vector_size(kLineBytes)));

// As merged(), without branches; as many as are a multiple of kWide. What is shifted has 25 bits:
// 31 is as good as any larger number.
FOR_WIDE_REGISTERS void merge_wide(unsigned char* into, const unsigned char* from,
                                   std::uint64_t count) noexcept {
  for (std::uint64_t i = 0; i < count; i += kWide, into += kLineBytes, from += kLineBytes) {
    WideRegisters a, b;
    std::memcpy(&a, into, sizeof a);
    std::memcpy(&b, from, sizeof b);
    const WideRegisters swapped = (WideRegisters)(a >> kHistory < b >> kHistory),
                        upper = (swapped & b) | (~swapped & a),
                        lower = (swapped & a) | (~swapped & b),
                        more = (upper >> kHistory) - (lower >> kHistory),
                        leads = (WideRegisters)((lower >> kHistory > 0) & (more > 0)),
                        all = (lower & kHistoryBits) | (leads & (1u << kHistory)),
                        far = (WideRegisters)(more > 31);
    a = upper | all >> ((far & 31) | (~far & more));
    std::memcpy(into, &a, sizeof a);
  }
}

// x / (e^x - 1), and its derivative, from e^x - 1.
double share(double x, double e) noexcept { return x / e; }
}  // namespace

void merge_registers(unsigned char* into, const unsigned char* from, std::uint64_t count) noexcept {
  const std::uint64_t wide = has_wide_registers() ? count / kWide * kWide : 0;
  if (wide > 0) merge_wide(into, from, wide);
  for (std::uint64_t at = wide * sizeof(std::uint32_t); at < count * sizeof(std::uint32_t);
       at += sizeof(std::uint32_t)) {
    std::uint32_t a, b;
    std::memcpy(&a, into + at, sizeof a);
    std::memcpy(&b, from + at, sizeof b);
    a = merged(a, b);
    std::memcpy(into + at, &a, sizeof a);
  }
}

void Likelihood::add_registers(const unsigned char* bytes, std::uint64_t count) noexcept {
  Histogram histogram;
  histogram.add(bytes, count);
  registers_ += count;
  for (unsigned value = 0; value <= kMaxValue; ++value)
    alpha_ += histogram.largest(value) * kOpen.of[value];
  for (unsigned group = 0; group < kGroups; ++group) {
    const unsigned its = exponent(group * kGroup + 1);
    alpha_ -= histogram.seen(group) * probability(its);
    beta_[its] += histogram.seen(group);
  }
}

// The derivative of the logarithm, times x, is zero where
//   alpha x = sum over j of beta_j * y / (exp(y) - 1), y = x / 2^j.
// What is left of the right side rises, and ever less: Newton's method, begun at 0, comes to the
// zero from below. exp(2 y) - 1 follows from exp(y) - 1.
double Likelihood::distinct() const noexcept {
  constexpr double kMost = 18446744073709551616.;  // for each register
  unsigned last = kMaxExponent;
  while (last > 0 && beta_[last] == 0) --last;
  if (last == 0) return 0;
  const double registers = static_cast<double>(registers_);
  double power[kMaxExponent + 1], all = 0, sum = 0;  // 2^-j
  for (unsigned j = 0; j <= kMaxExponent; ++j) {
    power[j] = static_cast<double>(probability(j)) / static_cast<double>(kOne);
    all += static_cast<double>(beta_[j]);
    sum += static_cast<double>(beta_[j]) * power[j];
  }
  const double alpha = static_cast<double>(alpha_) / static_cast<double>(kOne);
  double x = all / (alpha + sum / 2);
  for (unsigned round = 0; round < 200 && x < kMost; ++round) {
    double y = x * power[last], e = std::expm1(y), value = alpha * x, slope = alpha;
    for (unsigned j = last; j > 0 && e < 1e300; --j, y *= 2, e *= e + 2) {
      if (beta_[j] == 0) continue;
      const double count = static_cast<double>(beta_[j]);
      value -= count * share(y, e);
      slope -= count * power[j] * (y < 1e-5 ? -.5 : share(y, e) * (1 / y - 1 - 1 / e));
    }
    const double next = x - value / slope;
    if (!(next > x * (1 + 1e-14))) break;
    x = next;
  }
  return registers * std::min(x, kMost);
}

double Likelihood::change() const noexcept {
  return registers_ > 0 ? static_cast<double>(alpha_) / static_cast<double>(kOne) /
                              static_cast<double>(registers_)
                        : 1;
}

// ---- two filters --------------------------------------------------------------------------------

void JointLikelihood::add_registers(const unsigned char* a, const unsigned char* b,
                                    std::uint64_t count) noexcept {
  const auto known = [](std::uint32_t bits, unsigned value) noexcept {
    const unsigned largest = bits >> kHistory;
    if (value >= largest) return value > largest ? kNo : kYes;
    if (largest - value > kHistory) return kUnknown;
    return bits & history_bit(largest, value) ? kYes : kNo;
  };
  std::uint64_t highest[kMaxValue + 1] = {};  // registers by the larger of both values
  registers_ += count;
  for (std::uint64_t i = 0; i < count; ++i) {
    std::uint32_t first, second;
    std::memcpy(&first, a + i * sizeof first, sizeof first);
    std::memcpy(&second, b + i * sizeof second, sizeof second);
    const unsigned top = std::max(first, second) >> kHistory,
                   low = std::min(first, second) >> kHistory;
    ++highest[top];
    for (unsigned value = top; value > 0 && value + kHistory >= low; --value)
      ++came_[exponent(value)][known(first, value) * 3 + known(second, value)];
  }
  std::uint64_t above = 0;
  for (unsigned value = 1; value <= kMaxValue; ++value)
    came_[exponent(value)][kNo * 3 + kNo] += above += highest[value - 1];
}

namespace {

// What is known of a value of probability q, in the order of `came_`, whose last says nothing, has
// the probability one + e E + a A + b B. There E = exp(-(x + y + z) q) - 1, that the value has come
// to neither, less 1; so are A = exp(-(x + y) q) - 1 for the first and B = exp(-(y + z) q) - 1.
struct Outcome {
  double one, e, a, b;
};
constexpr Outcome kOutcomes[] = {{1, 1, 0, 0},   {0, -1, 1, 0}, {1, 0, 1, 0}, {0, -1, 0, 1},
                                 {0, 1, -1, -1}, {0, 0, -1, 0}, {1, 0, 0, 1}, {0, 0, 0, -1}};

}  // namespace

JointLikelihood::Hypothesis JointLikelihood::suppose(double y, double a, double b) const noexcept {
  const double registers = static_cast<double>(registers_), least = 1e-6 / registers;
  y = std::max(y, least);
  const double x = std::max(a - y, least), z = std::max(b - y, least);
  double slope = 0, log = 0, of[3][3] = {};  // Fisher's information of x, y and z
  for (unsigned j = 1; j <= kMaxExponent; ++j) {
    const double q = std::ldexp(1, -static_cast<int>(j)), none = std::expm1(-(x + y + z) * q),
                 no_a = std::expm1(-(x + y) * q), no_b = std::expm1(-(y + z) * q);
    const auto values = [&](auto... i) { return static_cast<double>((came_[j][i] + ...)); };
    const double both = values(0, 1, 3, 4), first = values(2, 5), second = values(6, 7),
                 known[] = {both, both, first, both, both, first, second, second};
    for (unsigned i = 0; i < 8; ++i) {
      const Outcome& it = kOutcomes[i];
      const double p = it.one + it.e * none + it.a * no_a + it.b * no_b,
                   by_e = -q * it.e * (none + 1), by_a = -q * it.a * (no_a + 1),
                   by_b = -q * it.b * (no_b + 1),
                   by[] = {by_e + by_a, by_e + by_a + by_b, by_e + by_b};
      if (!(p > 0)) continue;
      slope += values(i) / p * (by[1] - by[0] - by[2]);
      log += values(i) * std::log(p);
      for (unsigned row = 0; row < 3; ++row)
        for (unsigned column = 0; column < 3; ++column)
          of[row][column] += known[i] / p * by[row] * by[column];
    }
  }
  const auto minor = [&](unsigned i, unsigned j) {
    return of[0][i] * of[2][j] - of[0][j] * of[2][i];
  };
  const double all = of[1][1] * minor(0, 2) - of[1][0] * minor(1, 2) - of[1][2] * minor(0, 1),
               line = of[0][0] + of[1][1] + of[2][2] + 2 * (of[0][2] - of[0][1] - of[1][2]),
               variance = minor(0, 2) / all - y / registers;
  return {slope / line, std::sqrt(std::max(variance, 1e-4 / registers / registers)), log};
}

// The numbers from which the most likely one is a standard error away are the ends of an interval:
// its middle is stated, and half its width. If it reaches none or all, beyond which no number can
// be, the most likely number is stated, and how far the other end is away. Where there is none,
// chance makes most numbers seem smaller than that and few much larger: two of three stay below a
// seventh of the error.
double JointLikelihood::both(double first, double second, double& error) const noexcept {
  const double registers = static_cast<double>(registers_), a = first / registers,
               b = second / registers, most = std::min(a, b);
  const auto error_at = [&](double y) noexcept { return suppose(y, a, b).error; };
  const auto find = [&](double none, double errors) noexcept {
    const auto excess = [&](double y) noexcept {
      const Hypothesis it = suppose(y, a, b);
      return it.more - std::min(errors * it.error, none * it.error + y);
    };
    const double at_none = excess(0), at_all = excess(most);
    if (!(at_none > 0)) return 0.0;
    if (!(at_all < 0)) return most;
    std::uintmax_t rounds = 60;
    const auto [low, high] = boost::math::tools::toms748_solve(
        excess, 0.0, most, at_none, at_all, boost::math::tools::eps_tolerance<double>(30), rounds,
        MathPolicy());
    return (low + high) / 2;
  };
  const double low = find(1. / 7, 1), high = find(0, -1);
  double both = (low + high) / 2, away = (high - low) / 2;
  if (low <= 0 || high >= most) {
    both = find(0, 0);
    away = std::max({high - both, both - low, error_at(std::min(most, both + error_at(both)))});
    // A few keys among millions: information is as if nothing else could be, and all can be.
    constexpr unsigned kParts = 16;
    const double least = suppose(both, a, b).log - .5;
    for (unsigned i = 0; i <= kParts; ++i)
      if (const double y = most * i / kParts; suppose(y, a, b).log > least)
        away = std::max(away, std::fabs(y - both));
  }
  error = registers * std::min(away, most);
  if (error > .5) error = std::max(error, 1.0);  // numbers are whole
  return registers * both;
}

double relative_error(double bits) noexcept { return std::sqrt(3.78 / bits); }

}  // namespace streamfilter::exa_log_log_model
