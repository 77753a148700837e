// The formulas of the Stable Bloom Filter's paper (Deng, Rafiei 2006) and the values that the
// paper and independent simulations of it give.
#include "core/model/stable_model.hpp"

#include <boost/test/unit_test.hpp>
#include <cmath>

using namespace streamfilter::stable_model;
namespace tt = boost::test_tools;

BOOST_AUTO_TEST_SUITE(stable_bloom_model)

namespace {

constexpr double kCells = 1e5;

// Eq. 10 and 12: the probability that at least Max of l independent decrements hit the cell, as the
// sum that is printed.
double at_least_max(unsigned l, unsigned max, double p) {
  double sum = 0;
  for (unsigned j = max; j <= l; ++j) {
    const double log_binomial =
        std::lgamma(l + 1.0) - std::lgamma(j + 1.0) - std::lgamma(l - j + 1.0);
    sum += std::exp(log_binomial + j * std::log(p) + (l - j) * std::log1p(-p));
  }
  return sum;
}

// Eq. 9, term by term.
double literal_pr_zero(unsigned gap, double k, double p, unsigned max) {
  double sum = 0;
  for (unsigned l = max; l + 1 <= gap; ++l)
    sum += at_least_max(l, max, p) * std::pow(1 - k, l) * k;      // Eq. 10, 11
  return sum + at_least_max(gap, max, p) * std::pow(1 - k, gap);  // Eq. 12, 13
}

}  // namespace

BOOST_AUTO_TEST_CASE(best_k_and_eq_17_as_tabulated) {
  struct Row {
    double fps, max;
    unsigned k;
    double p;
  };
  const Row table[] = {
      {.2, 1, 1, 4.00},   {.2, 3, 2, 9.16},     {.1, 1, 2, 4.33},    {.1, 3, 2, 14.81},
      {.1, 7, 3, 32.18},  {.1, 15, 3, 70.64},   {.01, 1, 3, 10.93},  {.01, 3, 5, 27.12},
      {.01, 7, 6, 64.36}, {.01, 15, 6, 141.27}, {.001, 1, 5, 14.91}, {.001, 3, 7, 41.61},
  };
  for (const Row& row : table) BOOST_TEST_CONTEXT("fps " << row.fps << " max " << row.max) {
      BOOST_TEST(best_k(row.fps, row.max) == row.k);
      BOOST_TEST(std::fabs(decrements(row.fps, row.max, row.k, kCells) - row.p) < 0.01);
    }
}

BOOST_AUTO_TEST_CASE(the_stable_point_of_eq_7) {
  BOOST_TEST(std::fabs(stable_point(1, 2, 4, kCells) - .6667) < 1e-4);
  BOOST_TEST(std::fabs(stable_point(1, 3, 10, kCells) - .7692) < 1e-4);
  BOOST_TEST(std::fabs(stable_point(3, 3, 13, kCells) - .5364) < 1e-4);
  BOOST_TEST(std::fabs(stable_point(7, 3, 29, kCells) - .5020) < 1e-4);
  BOOST_TEST(std::fabs(stable_point(15, 6, 141, kCells) - .5352) < 1e-4);
}

BOOST_AUTO_TEST_CASE(nothing_decremented_leaves_no_zeros) {
  BOOST_TEST(stable_point(1, 2, 0, kCells) == 0);
  BOOST_TEST(fpr_bound(1, 2, 0, kCells) == 1);
}

BOOST_AUTO_TEST_CASE(eq_8_is_the_rate_of_k_non_zero_cells) {
  for (const double k : {1., 3., 6.})
    for (const double max : {1., 7.})
      BOOST_TEST(fpr_bound(max, k, 20, kCells) == std::pow(1 - stable_point(max, k, 20, kCells), k),
                 tt::tolerance(1e-12));
  // Rounding P of FPS = 10 %, Max 1, K 2 down breaks the bound, rounding up keeps it.
  BOOST_TEST(std::fabs(fpr_bound(1, 2, 4, kCells) - .111) < 5e-4);
  BOOST_TEST(std::fabs(fpr_bound(1, 2, 5, kCells) - .082) < 5e-4);
}

BOOST_AUTO_TEST_CASE(eq_17_inverts_eq_8) {
  for (const double fps : {.5, .2, .1, .01, .001, 1e-6})
    for (const double max : {1., 2., 3., 7., 15.})
      for (const double k : {1., 2., 5., 10.})
        for (const double m : {1000., 1e5, 1e9, 1e13})
          BOOST_TEST(fpr_bound(max, k, decrements(fps, max, k, m), m) == fps, tt::tolerance(1e-7));
}

BOOST_AUTO_TEST_CASE(whole_decrements_round_up) {
  BOOST_TEST(whole_decrements(.2, 1, 1, kCells) == 4u);  // 4.00004: exactly 4 but for K/m
  BOOST_TEST(whole_decrements(.2, 1, 1, 1e9) == 4u);
  BOOST_TEST(whole_decrements(.1, 1, 2, kCells) == 5u);      // 4.33
  BOOST_TEST(whole_decrements(.01, 1, 3, kCells) == 11u);    // 10.93
  BOOST_TEST(whole_decrements(.01, 15, 6, kCells) == 142u);  // 141.27
  BOOST_TEST(whole_decrements(.9, 1, 1, kCells) == 1u);  // 0.11: less than one cell is not possible
}

BOOST_AUTO_TEST_CASE(whole_decrements_keep_eq_8_a_bound) {
  for (const double fps : {.5, .2, .1, .01, .001, 1e-6})
    for (const double max : {1., 2., 3., 7., 15.})
      for (const double k : {1., 2., 5., 10.}) {
        const double p = static_cast<double>(whole_decrements(fps, max, k, kCells));
        BOOST_TEST(fpr_bound(max, k, p, effective_cells(k, kCells)) <= fps * (1 + 1e-9));
        if (p > 1) BOOST_TEST(fpr_bound(max, k, p - 1, effective_cells(k, kCells)) > fps);
      }
}

BOOST_AUTO_TEST_CASE(whole_decrements_are_0_where_none_suffice) {
  BOOST_TEST(whole_decrements(.01, 1, 10, 10) == 0u);  // every key sets all cells
  BOOST_TEST(whole_decrements(1e-300, 1, 1, kCells) == 0u);
}

BOOST_AUTO_TEST_CASE(pr_zero_is_the_sum_of_eq_9_to_13) {
  for (const unsigned max : {1u, 2u, 3u, 7u, 15u})
    for (const unsigned gap : {1u, 2u, 3u, 7u, 8u, 15u, 16u, 50u, 200u, 1000u})
      for (const double k : {1e-6, 0.0007, 0.02, 0.4})
        for (const double p : {1e-5, 0.003, 0.05, 0.6}) {
          const double literal = literal_pr_zero(gap, k, p, max);
          BOOST_TEST_CONTEXT("max " << max << " gap " << gap << " k " << k << " p " << p << " sum "
                                    << literal) {
            BOOST_TEST(std::fabs(pr_zero(gap, k, p, max) - literal) <= 1e-13 + 1e-9 * literal);
          }
        }
}

// The closed form adds what the sum cannot: the gaps of large filters. With few settings meanwhile,
// the decrements are a Poisson process.
BOOST_AUTO_TEST_CASE(pr_zero_holds_for_large_filters) {
  for (const double m : {1e9, 1e12, 1e15})
    for (const double max : {1., 3., 15.})
      for (const double hits : {0.01, 1., 12.}) {
        double below = 0, term = std::exp(-hits);
        for (unsigned j = 0; j < max; ++j, term *= hits / j) below += term;
        const double poisson = 1 - below;
        const double gap = hits * m / 100;
        BOOST_TEST_CONTEXT("m " << m << " max " << max << " hits " << hits) {
          BOOST_TEST(std::fabs(pr_zero(gap, 1e-6 / m, 100 / m, max) - poisson) <=
                     (1e-6 + max * max / gap) * poisson + 1e-13);
        }
      }
}

BOOST_AUTO_TEST_CASE(pr_zero_tends_to_the_stable_point) {
  for (const double max : {1., 3., 15.})
    BOOST_TEST(pr_zero(1e9, 3 / kCells, 13 / kCells, max) ==
                   std::pow(1 / (1 + 1 / (13. / kCells * (kCells / 3. - 1))), max),
               tt::tolerance(1e-9));
}

BOOST_AUTO_TEST_CASE(pr_zero_grows_with_the_gap_from_zero) {
  for (const double max : {1., 3., 7., 15.}) {
    for (double gap = 0; gap < max; ++gap) BOOST_TEST(pr_zero(gap, 1e-4, 1e-3, max) == 0);
    double last = 0;
    for (double gap = max; gap < 1e9; gap *= 1.3) {
      const double zero = pr_zero(std::floor(gap), 1e-4, 1e-3, max);
      BOOST_TEST(zero >= last * (1 - 1e-12));
      BOOST_TEST(zero <= 1);
      last = zero;
    }
  }
}

// m = 4096; an independent simulation gave .311, .0675, .0017.
BOOST_AUTO_TEST_CASE(false_negatives_at_gap_200) {
  BOOST_TEST(std::fabs(fnr(200, 1, 2, 4, 4096) - .310) < 5e-4);
  BOOST_TEST(std::fabs(fnr(200, 3, 3, 13, 4096) - .0697) < 5e-5);
  BOOST_TEST(std::fabs(fnr(200, 7, 3, 29, 4096) - .0016) < 5e-5);
}

BOOST_AUTO_TEST_CASE(fnr_is_the_rate_of_k_cells) {
  const double zero = pr_zero(300, 3 / kCells, 13 / kCells, 3);
  BOOST_TEST(fnr(300, 3, 3, 13, kCells) == 1 - std::pow(1 - zero, 3), tt::tolerance(1e-9));
}

// Observation 1: whatever the gap, the best K is at most 1 away from the tabulated one.
BOOST_AUTO_TEST_CASE(best_k_hardly_depends_on_the_gap) {
  for (const double fps : {.2, .1, .01, .001})
    for (const double max : {1., 3.})
      for (const double gap : {1000., 3000., 10000.}) {
        unsigned best = 0;
        double least = 2;
        for (unsigned k = 1; k <= 20; ++k) {
          const double rate = fnr(gap, max, k, decrements(fps, max, k, kCells), kCells);
          if (rate < least) {
            least = rate;
            best = k;
          }
        }
        BOOST_TEST(std::abs(static_cast<int>(best) - static_cast<int>(best_k(fps, max))) <= 1,
                   "fps " << fps << " max " << max << " gap " << gap << ": " << best);
      }
}

BOOST_AUTO_TEST_SUITE_END()
