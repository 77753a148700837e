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
        tolerance(1e-12));
    BOOST_TEST(filter.is_valid());
  }
}

// Holds for far more keys than planned.
BOOST_AUTO_TEST_CASE(nothing_inserted_is_ever_missed) {
  for (const char* text :
       {"bloom(keys=1000)", "bloom(keys=100000, fpr=0.001, slices=16)", "bloom(memory=192, k=2)",
        "bloom(keys=1000, layout=blocked)", "bloom(memory=192, k=2, layout=blocked)",
        "bloom(keys=50000, fpr=0.001, slices=16, layout=blocked)"}) {
    const Filter filter = filled(text, scaled(200000));
    BOOST_TEST(count_known(filter, 0, scaled(200000)) == scaled(200000), text);
    BOOST_TEST(filter.is_valid(), text);
    BOOST_TEST(find_ops(Kind::bloom)->fnr_at(filter.parameters(), 1e18) == 0);
  }
}

// Takes the least memory, inserts `keys` keys and asks for a million others.
BOOST_AUTO_TEST_CASE(fpr_is_kept_up_to_the_given_number_of_keys) {
  for (const char* text :
       {"bloom(keys=100, fpr=0.2)", "bloom(keys=10000)", "bloom(keys=10000, fpr=0.0001)",
        "bloom(keys=200000, fpr=0.01)", "bloom(keys=200000, fpr=0.01, slices=64)",
        "bloom(keys=100000, fpr=0.5, slices=1)", "bloom(keys=1000, fpr=0.1, slices=32)"})
    BOOST_TEST_CONTEXT(text) {
      Filter filter(text);
      const Parameters& p = filter.parameters();
      const double others = scaled(1000000), limit = wanted_fpr(p) * unlucky_fill(p);
      BOOST_TEST(filter.fpr_bound() <= wanted_fpr(p));
      BOOST_TEST(insert_keys(filter, 0, p.keys) <= most(p.keys, limit));
      const double positives = count_known(filter, p.keys, p.keys + scaled(1000000));
      BOOST_TEST(positives <= most(others, limit));
      check_rate(positives, others, filter.estimate().fpr);  // its own report agrees
    }
}

// Keys spread unevenly over slices. Derived parameters allow for three standard deviations above
// the mean, so that all slices but one in 700 keep the rate.
BOOST_AUTO_TEST_CASE(fpr_is_kept_in_each_slice) {
  Filter filter = filled("bloom(keys=64000, fpr=0.01, slices=64)", 64000);
  double exceeded = 0;
  for (std::uint32_t s = 0; s < 64; ++s)
    exceeded +=
        ops_of(filter.header()).estimate(filter.parameters(), as_const(filter.slice(s))).fpr > 0.01;
  BOOST_TEST(exceeded <= most(64, 1 / 700.));
}

// With several slices the bound allows for the fullest; with one, it is the measured rate. (The
// spread of the number of ones moves the rate by far less than counting does.)
BOOST_AUTO_TEST_CASE(the_bound_is_sharp_for_one_slice) {
  const Filter filter = filled("bloom(keys=200000, fpr=0.05, slices=1)", 200000);
  check_rate(count_known(filter, 200000, 500000), 300000, filter.fpr_bound());
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
      const double n = distinct, t = option_value(p, "k") * n / m;
      const double error = 5 * std::sqrt((std::expm1(t) - t) / m) / t;
      const double estimate = filter.estimate().distinct;
      BOOST_TEST(std::fabs(estimate / n - 1) <= error, text << ": " << estimate << " of " << n);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_full_filter_has_no_estimate) {
  for (const char* text : {"bloom(memory=192, k=64)", "bloom(memory=192, k=64, layout=blocked)"}) {
    const Filter filter = filled(text, 1000);
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
