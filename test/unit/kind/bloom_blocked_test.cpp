// The Bloom filter with layout blocked: the bits of a key in one 64-byte line, and the same
// promise.
#include <boost/math/distributions/poisson.hpp>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "core/model/blocked_model.hpp"
#include "unit/support/filters.hpp"
#include "unit/support/kind_checks.hpp"
#include "unit/support/statistics.hpp"
#include "unit/support/streams.hpp"

using namespace streamfilter;
using namespace unit;

BOOST_AUTO_TEST_SUITE(bloom_blocked)

namespace {

double bits_of(const Parameters& p) {
  return static_cast<double>((p.slice_bytes - sizeof(SliceState)) * 8);
}

// The rate of a line in which each of j keys has set k different bits at random.
double rate_of_line(double k, double j) { return std::pow(1 - std::pow(1 - k / 512, j), k); }

// The error that a chance distribution of keys over lines adds to the rate of one filter, with odds
// of 1e-6: 4.75 standard deviations of the mean over its lines.
double unlucky_lines(const Parameters& p) {
  const double k = static_cast<double>(option_value(p, "k")), lines = bits_of(p) * p.slices / 512,
               mean = static_cast<double>(p.keys) / lines;
  const boost::math::poisson law(mean);
  double first = 0, second = 0;
  for (double j = 0; j < mean + 20 * std::sqrt(mean) + 100; ++j) {
    first += pdf(law, j) * rate_of_line(k, j);
    second += pdf(law, j) * std::pow(rate_of_line(k, j), 2);
  }
  return 4.75 * std::sqrt((second - first * first) / lines);
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_key_sets_k_bits_of_one_line) {
  for (const unsigned k : {1u, 7u, 16u, 64u})
    for (std::uint64_t number = 0; number < 500; ++number) {
      Filter filter("bloom(memory=8kB, layout=blocked, k=" + std::to_string(k) + ")");
      filter.insert(key(number));
      const Slice slice = filter.slice();
      unsigned lines = 0, ones = 0;
      for (std::uint64_t line = 0; line < slice.bytes; line += 64) {
        unsigned of_line = 0;
        for (std::uint64_t i = line; i < line + 64; ++i)
          of_line += static_cast<unsigned>(__builtin_popcount(slice.body()[i]));
        lines += of_line > 0;
        ones += of_line;
      }
      BOOST_TEST_REQUIRE(lines == 1u);
      BOOST_TEST_REQUIRE(ones == k);
    }
}

BOOST_AUTO_TEST_CASE(lines_are_used_evenly) {
  Filter filter("bloom(memory=8kB, layout=blocked, k=1)");
  const std::uint64_t lines = filter.slice().bytes / 64;
  std::vector<std::uint64_t> keys(lines);
  for (std::uint64_t number = 0; number < 200000; ++number) {
    format(filter.header(), Parameters(filter.parameters()));
    filter.insert(key(number));
    const Slice slice = filter.slice();
    std::uint64_t at = 0;
    while (slice.body()[at] == 0) ++at;
    ++keys[at / 64];
  }
  BOOST_TEST(is_uniform(keys));
}

// Takes the least memory, inserts `keys` keys and asks for others.
BOOST_AUTO_TEST_CASE(fpr_is_kept_up_to_the_given_number_of_keys) {
  for (const char* rest : {"keys=100, fpr=0.2", "keys=10000", "keys=100000, fpr=0.0001",
                           "keys=200000, fpr=0.01", "keys=200000, fpr=0.01, slices=64",
                           "keys=100000, fpr=0.5, slices=1", "keys=200000, fpr=0.001, slices=1"})
    BOOST_TEST_CONTEXT(rest) {
      Filter filter(std::string("bloom(layout=blocked, ") + rest + ")");
      const Parameters& p = filter.parameters();
      const double others = scaled(2000000), limit = filter.fpr_bound() + unlucky_lines(p);
      BOOST_TEST(filter.fpr_bound() <= wanted_fpr(p));
      BOOST_TEST(insert_keys(filter, 0, p.keys) <= most(p.keys, limit));
      const double positives = count_known(filter, p.keys, p.keys + scaled(2000000));
      BOOST_TEST(positives <= most(others, limit));
      // The filter's own report is such a bound, too.
      BOOST_TEST(positives <= most(others, filter.estimate().fpr + unlucky_lines(p)));
    }
}

// Correlated bits lower the true rate: for 5 bits a key, by 1 to 2 %.
BOOST_AUTO_TEST_CASE(the_bound_is_sharp_for_one_slice) {
  const Filter filter = filled("bloom(keys=400000, fpr=0.05, slices=1, layout=blocked)", 400000);
  const double n = scaled(2000000), bound = filter.fpr_bound(),
               unlucky = unlucky_lines(filter.parameters()),
               positives = count_known(filter, 400000, 400000 + scaled(2000000));
  BOOST_TEST(positives >= least(n, bound * 0.97 - unlucky));
  BOOST_TEST(positives <= most(n, bound + unlucky));
}

// The exact rate for random sets of k bits: the sum of (-1)^i C(k, i) times the probability that i
// given bits are unset. A key in the same line leaves them unset with C(512-i, k) / C(512, k).
BOOST_AUTO_TEST_CASE(the_model_is_an_upper_bound_of_the_exact_rate_and_close) {
  for (const double bits_per_key : {2.0, 5.0, 8.0, 10.5, 13.0, 16.0}) {
    const double lines = 10000, n = 512 / bits_per_key * lines;
    const unsigned k = static_cast<unsigned>(blocked_model::best_k_by_bound(n, lines, 16));
    double exact = 0, ways = 1;
    for (unsigned i = 0; i <= k; ++i) {
      double unset = 1;
      for (unsigned bit = 0; bit < i; ++bit) unset *= (512.0 - k - bit) / (512.0 - bit);
      exact += (i % 2 == 0 ? 1 : -1) * ways * std::pow(1 - (1 - unset) / lines, n);
      ways *= static_cast<double>(k - i) / (i + 1);
    }
    const double model = blocked_model::blocked_bound(k, n, lines);
    BOOST_TEST(model >= exact * (1 - 1e-9));
    BOOST_TEST(model <= exact * 1.06);
  }
}

BOOST_AUTO_TEST_CASE(the_model_knows_its_limits) {
  BOOST_TEST(blocked_model::blocked_bound(4, 0, 10) == 0);
  BOOST_TEST(blocked_model::blocked_bound(4, 1e15, 10) == 1);
  BOOST_TEST(blocked_model::blocked_bound(4, INFINITY, 10) == 1);
  // With one line, all keys are in it.
  BOOST_TEST(blocked_model::blocked_bound(4, 30, 1) == rate_of_line(4, 30), tolerance(1e-9));
  // With one bit a key, blocking changes nothing.
  BOOST_TEST(
      blocked_model::blocked_bound(1, 1e6, 1e4) == -std::expm1(1e6 * std::log1p(-1 / 5.12e6)),
      tolerance(1e-9));
  double last = 0;
  for (double n = 1; n < 1e7; n *= 1.1) {
    const double rate = blocked_model::blocked_bound(6, n, 1000);
    BOOST_TEST(rate >= last);
    BOOST_TEST(rate <= 1);
    last = rate;
    if (rate > 0.999999) break;
  }
}

// Lines fill unevenly, which costs memory: more for a smaller fpr.
BOOST_AUTO_TEST_CASE(the_derived_memory_is_more_than_scattered_and_no_more_than_needed) {
  for (const char* rest : {"keys=12345", "keys=1e6, fpr=0.1", "keys=1e6, fpr=0.0001", "keys=1e9",
                           "keys=4000, fpr=0.3"})
    BOOST_TEST_CONTEXT(rest) {
      const Parameters plain = parameters_of(std::string("bloom(") + rest + ")"),
                       p = parameters_of(std::string("bloom(layout=blocked, ") + rest + ")");
      BOOST_TEST(p.memory >= plain.memory);
      BOOST_TEST(p.memory <= plain.memory * 3 / 2 + 1024);
      Parameters less;
      Problem problem;
      const std::string memory =
          std::to_string(static_cast<std::uint64_t>(static_cast<double>(p.memory) * 0.98 - 64));
      BOOST_TEST(!make_parameters("bloom(layout=blocked, memory=" + memory + ", " + rest + ")",
                                  less, problem));
      BOOST_TEST((problem.error == Error::conflict || problem.error == Error::too_small));
    }
}

BOOST_AUTO_TEST_CASE(definitions_read_back) {
  for (const char* text : {"bloom(keys=10000, layout=blocked)", "bloom(k=4, layout=blocked)",
                           "auto(keys=10000, layout=blocked)"}) {
    const Parameters p = read_back(text);
    BOOST_TEST((p.kind == Kind::bloom));
    BOOST_TEST(text_of(p).find("layout=blocked") != std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(a_union_remembers_both_and_counts_them) {
  Filter a = merged_halves("bloom(memory=64kB, keys=20000, layout=blocked)", 20000);
  BOOST_TEST(count_known(a, 0, 20000) == 20000);
  // Linear counting: five standard errors, as in bloom.cpp.
  const Parameters p = a.parameters();
  const double m = bits_of(p) * p.slices, t = static_cast<double>(option_value(p, "k")) * 20000 / m;
  BOOST_TEST(std::fabs(a.estimate().distinct / 20000 - 1) <=
             5 * std::sqrt((std::expm1(t) - t) / m) / t);

  Filter scattered("bloom(memory=64kB, keys=20000)");
  Problem problem;
  BOOST_TEST(!merge(a.header(), scattered.header(), problem));
  BOOST_TEST((problem.error == Error::mismatch));
}

// On a stream with repeats nothing is missed, and scattered bits with the same k do better by as
// much as the model predicts.
BOOST_AUTO_TEST_CASE(errors_are_near_scattered_on_flat_streams) {
  const std::uint64_t universe = scaled(500000);
  const std::string rest = "memory=" + std::to_string(universe * 12 / 8) +
                           ", slices=1, k=6, keys=" + std::to_string(universe);
  Filter blocked("bloom(layout=blocked, " + rest + ")"), scattered("bloom(" + rest + ")");
  UniformStream stream(universe, 7);
  Errors errors, scattered_errors;
  for (std::uint64_t i = 0; i < 3 * universe; ++i) {
    const Element element = stream.next();
    errors.count(stream.is_repeat(), blocked.insert(element));
    scattered_errors.count(stream.is_repeat(), scattered.insert(element));
  }
  BOOST_TEST(errors.negatives == 0);
  BOOST_TEST(scattered_errors.negatives == 0);
  // New keys come while it fills: the mean of the rates until then.
  const auto mean_rate = [&](const Filter& filter) {
    Parameters p = filter.parameters();
    double sum = 0;
    for (unsigned i = 0; i < 100; ++i) {
      p.keys = static_cast<std::uint64_t>((i + 0.5) / 100 * errors.fresh);
      sum += find_ops(Kind::bloom)->fpr_bound(p) / 100;
    }
    return sum;
  };
  const double expected = mean_rate(blocked), scattered_expected = mean_rate(scattered);
  BOOST_TEST(errors.positives <= most(errors.fresh, expected));
  BOOST_TEST(errors.positives >= least(errors.fresh, 0.9 * expected));
  check_rate(scattered_errors.positives, errors.fresh, scattered_expected);
  BOOST_TEST(expected <= 1.6 * scattered_expected);
}

BOOST_AUTO_TEST_SUITE_END()
