// Boost.Math without exceptions and without long double: errors give NaN or infinity.
#pragma once

#include <boost/math/policies/policy.hpp>

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

}  // namespace streamfilter
