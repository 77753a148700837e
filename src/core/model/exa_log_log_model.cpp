#include "core/model/exa_log_log_model.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "core/base/layer_wall.hpp"

namespace streamfilter::exa_log_log_model {
namespace {

// 2^-j.
struct Powers {
  constexpr Powers() noexcept : of{} {
    double power = 1;
    for (double& one : of) {
      one = power;
      power /= 2;
    }
  }
  double of[65];
};
constexpr Powers kPowers;

// By a value, the probability of all above it (equation 12, summed from the last one down).
struct Above {
  constexpr Above() noexcept : of{} {
    for (unsigned value = kMaxValue; value > 0; --value)
      of[value - 1] = of[value] + kPowers.of[exponent(value)];
  }
  double of[kMaxValue + 1];
};
constexpr Above kAbove;
static_assert(kAbove.of[0] == 1);

}  // namespace

void Likelihood::add_register(std::uint32_t bits) noexcept {
  if (bits == 0) return add_empty(1);
  registers_ += 1;
  const unsigned largest = bits >> kHistory;
  alpha_ += kAbove.of[largest];
  ++beta_[exponent(largest)];
  // Values of one probability at a time.
  const unsigned lowest = largest > kHistory ? largest - kHistory : 1;
  for (unsigned value = lowest; value < largest;) {
    const unsigned end = std::min(largest, ((((value - 1) >> kSub) + 1) << kSub) + 1);
    const std::uint32_t mask = static_cast<std::uint32_t>(
        (std::uint64_t{history_bit(largest, end - 1)} << 1) - history_bit(largest, value));
    const unsigned came = static_cast<unsigned>(std::popcount(bits & kHistoryBits & mask));
    beta_[exponent(value)] += came;
    alpha_ += (end - value - came) * kPowers.of[exponent(value)];
    value = end;
  }
}

void Likelihood::add_token(unsigned exponent) noexcept {
  alpha_ -= std::ldexp(1, -static_cast<int>(exponent));
  ++beta_[exponent];
}

// The derivative of the logarithm falls with x: it is zero where
//   alpha = sum over j of beta_j / 2^j / (exp(x / 2^j) - 1).
double Likelihood::distinct() const noexcept {
  if (std::all_of(std::begin(beta_), std::end(beta_), [](auto count) { return count == 0; }))
    return 0;
  const auto rises = [this](double x) {
    double sum = 0;
    for (int j = 1; j <= static_cast<int>(kMaxExponent); ++j)
      if (beta_[j] > 0)
        sum += static_cast<double>(beta_[j]) * std::ldexp(1, -j) / std::expm1(std::ldexp(x, -j));
    return sum > alpha_;
  };
  double low = -60, high = 64;  // logarithms to base 2
  for (int i = 0; i < 80; ++i) {
    const double middle = (low + high) / 2;
    (rises(std::exp2(middle)) ? low : high) = middle;
  }
  return registers_ * std::exp2((low + high) / 2);
}

double Likelihood::change() const noexcept { return registers_ > 0 ? alpha_ / registers_ : 1; }

double relative_error(double bits) noexcept { return std::sqrt(3.78 / bits); }

}  // namespace streamfilter::exa_log_log_model
