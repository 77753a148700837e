// How many keys two filters of kind ell have both seen: the stated standard error is one. Where
// there is hardly anything to tell by, or nothing to doubt, errors are not normally distributed;
// these have bounds of their own.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "core/kind/exa_log_log.hpp"
#include "unit/support/filters.hpp"
#include "unit/support/streams.hpp"

using namespace streamfilter;
using namespace unit;

BOOST_AUTO_TEST_SUITE(overlap)

namespace {

constexpr unsigned kRuns = 100;
constexpr double kReal = 20000;  // more keys than these are drawn as what they do to registers

std::vector<std::uint32_t> draw_registers(std::size_t count, double keys, std::mt19937_64& random) {
  std::vector<std::uint32_t> registers(count);
  for (unsigned value = 1; value <= exa_log_log_model::kMaxValue; ++value) {
    const double q = -std::expm1(-std::ldexp(
        keys / static_cast<double>(count), -static_cast<int>(exa_log_log_model::exponent(value))));
    if (q * static_cast<double>(count) < 1e-9) continue;
    std::geometric_distribution<std::size_t> skip(std::min(q, .999999));
    for (std::size_t at = skip(random); at < count; at += 1 + skip(random))
      registers[at] = exa_log_log_model::updated(registers[at], value);
  }
  return registers;
}

// Keys of one part of the union, into one filter or both.
void add_part(Filter* first, Filter* second, double keys, std::uint64_t base,
              std::mt19937_64& random) {
  if (keys <= kReal) {
    for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(keys); ++i)
      for (Filter* filter : {first, second})
        if (filter != nullptr) filter->insert({hash_word(base + i, 0)});
    return;
  }
  const std::size_t count = (first != nullptr ? first : second)->parameters().integer(0);
  const std::vector<std::uint32_t> registers = draw_registers(count, keys, random);
  for (Filter* filter : {first, second}) {
    if (filter == nullptr) continue;
    Filter other(filter->parameters());
    other.slice().state->own[0] = 0;  // it has registers
    std::memcpy(other.slice().body(), registers.data(), count * sizeof registers[0]);
    BOOST_TEST_REQUIRE(filter->merge(other));
  }
}

struct Run {
  double distance, error;
};

Run run(double first, double both, double second, std::mt19937_64& random) {
  Filter a("ell(memory=4kB)"), b(a.parameters());
  const std::uint64_t base = random();
  // The large parts first, before anything has tokens.
  add_part(&a, &b, both, base, random);
  add_part(&a, nullptr, first - both, base + (1 << 26), random);
  add_part(nullptr, &b, second - both, base + (1 << 27), random);
  bool full;
  const double in_a = distinct_keys(a.header(), full), in_b = distinct_keys(b.header(), full);
  double estimate, error;
  BOOST_TEST_REQUIRE(keys_of_both(a.header(), in_a, b.header(), in_b, estimate, error));
  BOOST_TEST_REQUIRE(estimate >= 0);
  BOOST_TEST_REQUIRE(estimate <= std::min(in_a, in_b));
  return {std::fabs(std::round(estimate) - both), error};
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_error_is_a_standard_error, *boost::unit_test::label("long")) {
  std::mt19937_64 random(64);
  unsigned runs = 0, within_one = 0, within_two = 0;
  for (const double first : {100., 1e3, 1e4, 1e5, 1e6, 1e7})
    for (const double times : {1., 10., 100.})
      for (const double share : {.3, .5, .9}) {
        const double second = first * times;
        if (second < 1e4 || second > 1e7) continue;
        unsigned one = 0, two = 0;
        for (unsigned i = 0; i < kRuns; ++i) {
          const Run it = run(first, std::round(first * share), second, random);
          one += it.distance <= it.error;
          two += it.distance <= 2 * it.error;
        }
        BOOST_TEST(one > kRuns * 45 / 100, first << " " << second << " " << share);
        BOOST_TEST(two > kRuns * 80 / 100, first << " " << second << " " << share);
        runs += kRuns, within_one += one, within_two += two;
      }
  BOOST_TEST_MESSAGE(100. * within_one / runs << " % within one error, " << 100. * within_two / runs
                                              << " % within two");
  BOOST_TEST(within_one >= runs * .60);
  BOOST_TEST(within_one <= runs * .76);
  BOOST_TEST(within_two >= runs * .92);
  BOOST_TEST(within_two <= runs * .98);
}

// No key in common, or all: an estimate beyond is cut off, so more are within one error.
BOOST_AUTO_TEST_CASE(none_and_all) {
  std::mt19937_64 random(65);
  for (const double share : {0., 1.}) {
    unsigned one = 0, two = 0;
    for (unsigned i = 0; i < kRuns; ++i) {
      const Run it = run(1e5, 1e5 * share, 1e5, random);
      one += it.distance <= it.error;
      two += it.distance <= 2 * it.error;
    }
    BOOST_TEST(one >= kRuns * 50 / 100, share);
    BOOST_TEST(two >= kRuns * 88 / 100, share);
  }
}

// Tokens tell to the key.
BOOST_AUTO_TEST_CASE(few_keys_are_exact) {
  std::mt19937_64 random(66);
  unsigned exact = 0;
  for (unsigned i = 0; i < kRuns; ++i)
    for (const double both : {0., 1., 10., 50.}) {
      const Run it = run(50, both, 70, random);
      exact += it.distance == 0;
      BOOST_TEST(it.error < .5);
    }
  BOOST_TEST(exact >= kRuns * 4 * 98 / 100);
}

// What a large set of so few bits cannot tell is said: no error is larger than the smaller set.
BOOST_AUTO_TEST_CASE(a_small_set_in_a_large_one) {
  std::mt19937_64 random(67);
  for (const double both : {0., 5., 10.})
    for (unsigned i = 0; i < 20; ++i) {
      const Run it = run(10, both, 1e7, random);
      BOOST_TEST(it.error <= 10.5);
      BOOST_TEST(it.distance <= 2.5 * it.error);
    }
}

BOOST_AUTO_TEST_SUITE_END()
