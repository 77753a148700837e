// Boost.Math without exceptions and without long double: errors give NaN or infinity.
#pragma once

#include <boost/math/policies/policy.hpp>
#include <limits>

namespace streamfilter {

namespace policies = boost::math::policies;
using MathPolicy = policies::policy<
    policies::domain_error<policies::ignore_error>, policies::pole_error<policies::ignore_error>,
    policies::overflow_error<policies::ignore_error>,
    policies::underflow_error<policies::ignore_error>,
    policies::denorm_error<policies::ignore_error>,
    policies::rounding_error<policies::ignore_error>,
    policies::evaluation_error<policies::ignore_error>,
    policies::indeterminate_result_error<policies::ignore_error>, policies::promote_double<false>>;

// Converts doubles to whole numbers. Values beyond the type's range become its ends, and NaN
// becomes 0; a plain cast leaves both undefined.

template <typename Integer>
constexpr Integer saturate(double value) noexcept {
  using Limits = std::numeric_limits<Integer>;
  // The number after the largest one is a power of two, which a double holds exactly.
  constexpr Integer kHalf = Limits::max() / 2 + 1;
  constexpr double kEnd = 2.0 * static_cast<double>(kHalf);
  if (!(value > static_cast<double>(Limits::min()))) return value < 0 ? Limits::min() : Integer{0};
  return value < kEnd ? static_cast<Integer>(value) : Limits::max();
}

// The other way, rounded: formulas are full of it.
template <typename Number>
constexpr double to_real(Number number) noexcept {
  return static_cast<double>(number);
}

}  // namespace streamfilter
