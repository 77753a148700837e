// The Bloom filter finds every key that was inserted, and its false-positive rate at `keys`
// distinct keys is the given one.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "unit/support/filters.hpp"
#include "unit/support/kind_checks.hpp"
#include "unit/support/statistics.hpp"
#include "unit/support/streams.hpp"

using namespace streamfilter;
using namespace unit;

BOOST_AUTO_TEST_SUITE(bloom_filter)

namespace {

// If K n balls fall into m bits, the share of bits hit has the standard deviation sqrt(e^-t (1 - (1
// + t) e^-t) / m), t = K n / m. This factor is what that can add to a rate, with odds of 1e-6 (4.75
// deviations).
double unlucky_fill(const Parameters& p) {
  const double k = static_cast<double>(option_value(p, "k")),
               m = static_cast<double>((p.slice_bytes - sizeof(SliceState)) * 8 * p.slices),
               t = k * static_cast<double>(p.keys) / m;
  const double deviation = std::sqrt(std::exp(-t) * (1 - (1 + t) * std::exp(-t)) / m);
  return std::pow(1 + 4.75 * deviation / -std::expm1(-t), k);
}

}  // namespace

BOOST_AUTO_TEST_CASE(it_is_a_set_of_bits) {
  for (const char* text : {"bloom(memory=1kB, k=1)", "bloom(memory=1kB, k=7)",
                           "bloom(memory=1kB, k=64)", "bloom(memory=3kB, k=4, slices=5)"}) {
    Filter filter(text);
    const Parameters& p = filter.parameters();
    const std::uint64_t m = (p.slice_bytes - sizeof(SliceState)) * 8;
    std::vector<std::vector<bool>> plain(p.slices, std::vector<bool>(m));
    for (std::uint64_t number = 0; number < 3000; ++number) {
      const Element element = key(number * number % 2003);
      std::vector<bool>& bits = plain[slice_of(p, element.hash)];
      bool seen = true;
      for (unsigned i = 0; i < option_value(p, "k"); ++i) {
        const std::uint64_t at = position(element.hash, i, m);
        seen = seen && bits[at];
      }
      for (unsigned i = 0; i < option_value(p, "k"); ++i) bits[position(element.hash, i, m)] = true;
      BOOST_TEST_REQUIRE(filter.test(element) == seen, text);
      BOOST_TEST_REQUIRE(filter.insert(element) == seen, text);
    }
    std::uint64_t differences = 0, ones = 0;
    for (std::uint32_t s = 0; s < p.slices; ++s)
      for (std::uint64_t bit = 0; bit < m; ++bit) {
        differences += (filter.slice(s).body()[bit / 8] >> bit % 8 & 1) != plain[s][bit];
        ones += plain[s][bit];
      }
    BOOST_TEST(differences == 0u);
    BOOST_TEST(
        filter.estimate().fill == static_cast<double>(ones) / static_cast<double>(m * p.slices),
        boost::test_tools::tolerance(1e-12));
    BOOST_TEST(filter.is_valid());
  }
}

// Holds for far more keys than planned.
BOOST_AUTO_TEST_CASE(nothing_inserted_is_ever_missed) {
  for (const char* text :
       {"bloom(keys=1000)", "bloom(keys=100000, fpr=0.001, slices=16)", "bloom(memory=640, k=2)",
        "bloom(keys=1000, layout=blocked)", "bloom(memory=640, k=2, layout=blocked)",
        "bloom(keys=50000, fpr=0.001, slices=16, layout=blocked)"}) {
    Filter filter(text);
    for (std::uint64_t number = 0; number < scaled(200000); ++number) filter.insert(key(number));
    for (std::uint64_t number = 0; number < scaled(200000); ++number)
      BOOST_TEST_REQUIRE(filter.test(key(number)), text);
    BOOST_TEST(filter.is_valid(), text);
    BOOST_TEST(find_ops(Kind::bloom)->fnr_at(filter.parameters(), 1e18) == 0);
  }
}

// Takes the least memory, inserts `keys` keys and asks for a million others.
BOOST_AUTO_TEST_CASE(fpr_is_kept_up_to_the_given_number_of_keys) {
  struct Case {
    const char* text;
    double fpr;
  };
  for (const Case& c : {
           Case{"bloom(keys=100, fpr=0.2)", 0.2},
           Case{"bloom(keys=10000)", 0.01},
           Case{"bloom(keys=10000, fpr=0.0001)", 0.0001},
           Case{"bloom(keys=200000, fpr=0.01)", 0.01},
           Case{"bloom(keys=200000, fpr=0.01, slices=64)", 0.01},
           Case{"bloom(keys=100000, fpr=0.5, slices=1)", 0.5},
           Case{"bloom(keys=1000, fpr=0.1, slices=32)", 0.1},
       })
    BOOST_TEST_CONTEXT(c.text) {
      Filter filter(c.text);
      const std::uint64_t keys = filter.parameters().keys, others = scaled(1000000);
      double while_filling = 0, positives = 0;
      for (std::uint64_t number = 0; number < keys; ++number)
        while_filling += filter.insert(key(number));
      for (std::uint64_t number = 0; number < others; ++number)
        positives += filter.test(key(keys + number));
      BOOST_TEST(filter.fpr_bound() <= c.fpr);
      const double limit = c.fpr * unlucky_fill(filter.parameters());
      BOOST_TEST(positives <= most(static_cast<double>(others), limit));
      BOOST_TEST(while_filling <= most(static_cast<double>(keys), limit));
      // The filter's own report agrees.
      const double estimate = filter.estimate().fpr;
      check_rate(positives, static_cast<double>(others), estimate);
    }
}

// Keys spread unevenly over slices. Derived parameters allow for three standard deviations above
// the mean, so that all slices but one in 700 keep the rate.
BOOST_AUTO_TEST_CASE(fpr_is_kept_in_each_slice) {
  Filter filter("bloom(keys=64000, fpr=0.01, slices=64)");
  for (std::uint64_t number = 0; number < 64000; ++number) filter.insert(key(number));
  double exceeded = 0;
  for (std::uint32_t s = 0; s < 64; ++s)
    exceeded +=
        ops_of(filter.header()).estimate(filter.parameters(), as_const(filter.slice(s))).fpr > 0.01;
  BOOST_TEST(exceeded <= most(64, 1 / 700.));
}

// With several slices the bound allows for the fullest; with one, it is the measured rate. (The
// spread of the number of ones moves the rate by far less than counting does.)
BOOST_AUTO_TEST_CASE(the_bound_is_sharp_for_one_slice) {
  Filter filter("bloom(keys=200000, fpr=0.05, slices=1)");
  for (std::uint64_t number = 0; number < 200000; ++number) filter.insert(key(number));
  const double n = 300000, bound = filter.fpr_bound();
  double positives = 0;
  for (std::uint64_t number = 0; number < n; ++number)
    positives += filter.test(key(200000 + number));
  check_rate(positives, n, bound);
}

// Linear counting (Whang et al. 1990) of K n balls in m bits has the relative standard error
// sqrt((e^t - t - 1) / m) / t, t = K n / m. Five of these: odds of 6e-7.
BOOST_AUTO_TEST_CASE(distinct_keys_are_estimated_from_the_fill) {
  for (const char* text : {"bloom(memory=64kB, k=1)", "bloom(memory=64kB, k=6)",
                           "bloom(memory=1MB, k=4, slices=64)"}) {
    Filter filter(text);
    const Parameters& p = filter.parameters();
    const double m = static_cast<double>((p.slice_bytes - sizeof(SliceState)) * 8 * p.slices);
    std::uint64_t number = 0;
    for (const std::uint64_t distinct : {10u, 1000u, 30000u, 100000u}) {
      while (number < distinct) {
        filter.insert(key(number));
        filter.insert(key(number++ / 2));  // a repeat does not count
      }
      const double n = static_cast<double>(distinct),
                   t = static_cast<double>(option_value(p, "k")) * n / m;
      const double error = 5 * std::sqrt((std::expm1(t) - t) / m) / t;
      const double estimate = filter.estimate().distinct;
      BOOST_TEST(std::fabs(estimate / n - 1) <= error, text << ": " << estimate << " of " << n);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_full_filter_has_no_estimate) {
  for (const char* text : {"bloom(memory=640, k=64)", "bloom(memory=640, k=64, layout=blocked)"}) {
    Filter filter(text);
    for (std::uint64_t number = 0; number < 1000; ++number) filter.insert(key(number));
    const Estimate estimate = filter.estimate();
    BOOST_TEST(estimate.fill == 1);
    BOOST_TEST(estimate.fpr == 1);
    BOOST_TEST(std::isinf(estimate.distinct));
    BOOST_TEST(filter.is_valid());
  }
}

// K = ln(2) m/n, rounded to the better whole number.
BOOST_AUTO_TEST_CASE(no_other_k_is_better_than_the_derived_one) {
  for (const char* text :
       {"bloom(memory=64kB, keys=100000, fpr=0.5", "bloom(memory=64kB, keys=50000",
        "bloom(memory=64kB, keys=400000, fpr=0.9", "bloom(memory=1MB, keys=1e6, fpr=0.5",
        "bloom(memory=64kB, layout=blocked, keys=100000, fpr=0.5",
        "bloom(memory=64kB, layout=blocked, keys=40000",
        "bloom(memory=64kB, layout=blocked, keys=400000, fpr=0.9",
        "bloom(memory=1MB, layout=blocked, keys=3e5, fpr=0.5"}) {
    const auto rate = [](const std::string& definition) {
      return find_ops(Kind::bloom)->fpr_bound(parameters_of(definition));
    };
    const double derived = rate(std::string(text) + ")");
    for (int k = 1; k <= 16; ++k)
      BOOST_TEST(derived <= rate(std::string(text) + ", k=" + std::to_string(k) + ")"), text << k);
  }
}

BOOST_AUTO_TEST_SUITE_END()
