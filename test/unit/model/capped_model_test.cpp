// The model of kind capped: against the sums that it shortens, an exact Markov chain, and the
// filter.
#include <boost/math/special_functions/binomial.hpp>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "core/model/capped_model.hpp"
#include "unit/support/filters.hpp"
#include "unit/support/statistics.hpp"
#include "unit/support/streams.hpp"

using namespace streamfilter;
using namespace unit;
using capped_model::Setting;

BOOST_AUTO_TEST_SUITE(capped_model_)

namespace {

double choose(unsigned n, unsigned k) {
  return k > n ? 0 : boost::math::binomial_coefficient<double>(n, k);
}

// The number of a key's k bits that are set, from one new key in its line to the next, exactly.
class Chain {
 public:
  Chain(unsigned k, unsigned ones) : k_(k), step_(k + 1, std::vector<double>(k + 1)) {
    for (unsigned i = 0; i <= k; ++i)
      // The new key takes `a` of the i that are set and `b` of the others; `z` of its bits are
      // other zeros of the line.
      for (unsigned a = 0; a <= i; ++a)
        for (unsigned b = 0; a + b <= k && b <= k - i; ++b)
          for (unsigned z = 0; a + b + z <= k; ++z) {
            const unsigned zeros = 512 - ones - (k - i), rest = ones - i;
            const double chance = choose(i, a) * choose(k - i, b) * choose(zeros, z) *
                                  choose(rest, k - a - b - z) / choose(512, k);
            // The same number of ones is cleared as the key found zeros, none of its own.
            const unsigned cleared = b + z, others = ones - (k - cleared);
            for (unsigned x = 0; x <= i - a && x <= cleared; ++x) {
              if (cleared - x > others - (i - a)) continue;
              step_[i][i + b - x] += chance * choose(i - a, x) *
                                     choose(others - (i - a), cleared - x) /
                                     choose(others, cleared);
            }
          }
  }

  // The false-negative rate after `keys` others.
  double fnr(unsigned keys) const {
    std::vector<double> now(k_ + 1);
    now[k_] = 1;
    for (; keys > 0; --keys) {
      std::vector<double> next(k_ + 1);
      for (unsigned i = 0; i <= k_; ++i)
        for (unsigned j = 0; j <= k_; ++j) next[j] += now[i] * step_[i][j];
      now = next;
    }
    return 1 - now[k_];
  }

  bool is_stochastic() const {
    for (const std::vector<double>& row : step_) {
      double sum = 0;
      for (const double p : row) sum += p;
      if (std::fabs(sum - 1) > 1e-9) return false;
    }
    return true;
  }

 private:
  unsigned k_;
  std::vector<std::vector<double>> step_;
};

const Setting kSettings[] = {{1, 100}, {2, 162}, {3, 111}, {4, 92}, {6, 332}, {8, 332}};

}  // namespace

BOOST_AUTO_TEST_CASE(rates_of_a_line) {
  BOOST_TEST(capped_model::line_fpr(3, 512) == 1);
  BOOST_TEST(std::fabs(capped_model::line_fpr(4, 92) / (choose(92, 4) / choose(512, 4)) - 1) <
             1e-9);
  for (const double fpr : {.3, .01, 1e-6})
    for (const unsigned k : {1u, 3u, 9u}) {
      const unsigned ones = capped_model::most_ones(fpr, k);
      BOOST_TEST(capped_model::line_fpr(k, ones) <= fpr);
      BOOST_TEST(capped_model::line_fpr(k, ones + 1) > fpr);
    }
}

// The mixture of Poisson numbers of keys, summed term by term: for K = 1 and 2 the rate for n keys
// is known; for more, the chain of the number of a key's bits that are set.
BOOST_AUTO_TEST_CASE(blocked_rates_are_the_mixture) {
  for (const double keys : {.5, 20., 64., 300.})
    for (const unsigned k : {1u, 2u, 3u, 6u, 10u}) {
      std::vector<double> set(k + 1);
      set[0] = 1;
      double sum = 0, poisson = std::exp(-keys);
      for (unsigned n = 0; n < 1000; poisson *= keys / ++n) {
        sum += poisson * set[k];
        std::vector<double> next(k + 1);
        for (unsigned i = 0; i <= k; ++i)
          for (unsigned more = 0; i + more <= k; ++more)
            next[i + more] +=
                set[i] * choose(k - i, more) * choose(512 - (k - i), k - more) / choose(512, k);
        set = next;
      }
      BOOST_TEST(std::fabs(capped_model::blocked_fpr(k, keys) - sum) < 1e-9 + 1e-6 * sum,
                 k << ", " << keys);
    }
}

BOOST_AUTO_TEST_CASE(the_best_k_is_the_best) {
  for (const double keys : {10., 40., 64., 128., 500.}) {
    const unsigned best = capped_model::best_k(keys);
    for (unsigned k = 1; k <= 16; ++k)
      BOOST_TEST(capped_model::blocked_fpr(best, keys) <= capped_model::blocked_fpr(k, keys));
  }
  BOOST_TEST(capped_model::best_k(64) == 5u);  // eight bits a key
}

// One bit is exact; taking k bits for independent moves the rate by less than 3 %.
BOOST_AUTO_TEST_CASE(false_negatives_are_near_the_exact_chain) {
  for (const Setting& setting : kSettings) {
    const Chain chain(static_cast<unsigned>(setting.k), static_cast<unsigned>(setting.ones));
    BOOST_TEST(chain.is_stochastic());
    for (const unsigned keys : {1u, 3u, 10u, 40u, 200u}) {
      const double exact = chain.fnr(keys), model = capped_model::fnr(setting, keys);
      BOOST_TEST(std::fabs(model / exact - 1) < (setting.k == 1 ? 1e-9 : .03),
                 setting.k << ", " << keys << ": " << model << " " << exact);
    }
    BOOST_TEST(
        std::fabs(capped_model::fnr(setting, 1e6) / (1 - std::pow(setting.ones / 512, setting.k)) -
                  1) < .01);
  }
}

// In a line at its cap: a key comes, then `others` new ones, then the key is tested.
BOOST_AUTO_TEST_CASE(the_chain_is_the_filter) {
  for (const Setting& setting : kSettings)
    for (const unsigned keys : {2u, 12u}) {
      const unsigned k = static_cast<unsigned>(setting.k);
      Filter filter("capped(memory=640, k=" + std::to_string(k) +
                    ", cap=" + std::to_string((setting.ones + .5) / 512) + ")");
      std::uint64_t next = 0;
      for (unsigned i = 0; i < 2000; ++i) filter.insert(key(next++));
      BOOST_TEST_REQUIRE(filter.slice().state->own[0] == setting.ones);
      const std::uint64_t rounds = scaled(20000);
      double missed = 0;
      for (std::uint64_t round = 0; round < rounds; ++round) {
        const std::uint64_t mine = next++;
        filter.insert(key(mine));
        for (unsigned i = 0; i < keys; ++i) filter.insert(key(next++));
        missed += !filter.test(key(mine));
        filter.insert(key(next++));
      }
      const double expected = Chain(k, static_cast<unsigned>(setting.ones)).fnr(keys);
      BOOST_TEST(fits(missed, rounds, expected), missed << ", " << expected);
    }
}

BOOST_AUTO_TEST_CASE(means_over_lines) {
  for (const Setting& setting : kSettings)
    for (const double keys : {.01, 1., 30.}) {
      double sum = 0, poisson = std::exp(-keys);
      for (unsigned n = 0; n < 300; poisson *= keys / ++n)
        sum += poisson * capped_model::fnr(setting, n);
      BOOST_TEST(std::fabs(capped_model::mean_fnr(setting, keys) / sum - 1) < 1e-6);
    }
}

// Before lines are at their cap nothing is lost; long after, the moment no longer matters.
BOOST_AUTO_TEST_CASE(a_number_of_keys) {
  const Setting setting{6, 332};
  BOOST_TEST(capped_model::fnr_after(setting, 40, 40) < 1e-6);
  BOOST_TEST(capped_model::fnr_after(setting, 64, 64) < .001);
  double last = 0;
  for (const double all : {64., 96., 128., 256.}) {
    const double rate = capped_model::fnr_after(setting, 64, all);
    BOOST_TEST(rate > last);
    last = rate;
  }
  BOOST_TEST(std::fabs(capped_model::fnr_after(setting, 5, 1000) / capped_model::fnr(setting, 5) -
                       1) < 1e-6);
  BOOST_TEST(
      std::fabs(capped_model::fnr_after(setting, 5, 1e6) / capped_model::mean_fnr(setting, 5) - 1) <
      1e-9);
}

BOOST_AUTO_TEST_SUITE_END()
