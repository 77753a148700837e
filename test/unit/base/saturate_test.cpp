#include "core/base/math_policy.hpp"

#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <limits>

using streamfilter::saturate;

BOOST_AUTO_TEST_SUITE(saturate_test)

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

}  // namespace

BOOST_AUTO_TEST_CASE(what_fits_is_cut_to_a_whole_number) {
  for (const double value : {0.0, -0.0, 0.5, 0.999})
    BOOST_TEST(saturate<std::uint64_t>(value) == 0u);
  BOOST_TEST(saturate<std::uint64_t>(1.5) == 1u);
  BOOST_TEST(saturate<std::uint64_t>(0x1p63) == std::uint64_t{1} << 63);
  BOOST_TEST(saturate<std::int64_t>(-1.5) == -1);
  BOOST_TEST(saturate<std::int64_t>(-0x1p63) == std::numeric_limits<std::int64_t>::min());
  BOOST_TEST(saturate<int>(2147483647.0) == 2147483647);
}

BOOST_AUTO_TEST_CASE(beyond_the_ends_lie_the_ends) {
  for (const double value : {0x1p64, 1e300, kInfinity})
    BOOST_TEST(saturate<std::uint64_t>(value) == std::numeric_limits<std::uint64_t>::max());
  for (const double value : {-1.0, -0.5, -1e300, -kInfinity})
    BOOST_TEST(saturate<std::uint64_t>(value) == 0u);
  for (const double value : {0x1p63, 1e300, kInfinity})
    BOOST_TEST(saturate<std::int64_t>(value) == std::numeric_limits<std::int64_t>::max());
  for (const double value : {-0x1.8p63, -1e300, -kInfinity})
    BOOST_TEST(saturate<std::int64_t>(value) == std::numeric_limits<std::int64_t>::min());
}

BOOST_AUTO_TEST_CASE(no_number_is_zero) {
  BOOST_TEST(saturate<std::uint64_t>(kNaN) == 0u);
  BOOST_TEST(saturate<std::int64_t>(kNaN) == 0);
}

BOOST_AUTO_TEST_SUITE_END()
