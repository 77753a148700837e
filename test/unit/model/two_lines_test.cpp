// The table of clq_model::fnr_of_two against the differential equations behind it.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <vector>

#include "core/model/clq_model.hpp"

using namespace streamfilter;

BOOST_AUTO_TEST_SUITE(two_lines)

namespace {

constexpr unsigned kSteps = 64;  // of a ball for every bin
constexpr unsigned kMost = 110;

// The share of bins with at least k balls, after `steps` steps.
class Shares {
 public:
  Shares(unsigned balls) {
    std::vector<double> s(kMost + 1);
    s[0] = 1;
    for (unsigned step = 0; step <= kSteps * balls; ++step) {
      at_.push_back(s);
      const auto a = change(s), b = change(plus(s, a, .5)), c = change(plus(s, b, .5)),
                 d = change(plus(s, c, 1));
      for (unsigned k = 1; k < kMost; ++k) s[k] += (a[k] + 2 * b[k] + 2 * c[k] + d[k]) / 6 / kSteps;
    }
  }

  double operator()(unsigned step, unsigned k) const { return at_[step][k]; }

 private:
  using Row = std::vector<double>;

  static Row change(const Row& s) {
    Row by(kMost + 1);
    for (unsigned k = 1; k < kMost; ++k) by[k] = s[k - 1] * s[k - 1] - s[k] * s[k];
    return by;
  }
  static Row plus(Row s, const Row& by, double part) {
    for (unsigned k = 0; k < kMost; ++k) s[k] += by[k] * part / kSteps;
    return s;
  }

  std::vector<Row> at_;
};

}  // namespace

// A bin that gets a ball at some time has k of them with a probability that the shares tell; `mean`
// balls for every bin later it is like any other.
BOOST_AUTO_TEST_CASE(balls_in_the_emptier_of_two_bins) {
  constexpr unsigned kBefore = 30, kLength = 30;
  const Shares share(80);
  for (double mean = 22; mean <= 36; mean += .25) {
    double missed = 0;
    for (unsigned i = 0; i < kSteps; ++i) {
      const unsigned then = kBefore * kSteps + i, now = then + static_cast<unsigned>(mean * kSteps);
      for (unsigned k = 15; k < 50; ++k) {
        const double first =
            share(then, k) * share(then, k) - share(then, k + 1) * share(then, k + 1);
        missed += first * share(now, k + 1 + kLength) / kSteps;
      }
    }
    const double by_table = clq_model::fnr_of_two(1000 * mean, kLength, 1000, 1);
    BOOST_TEST(std::fabs(by_table / missed - 1) < .01, mean << ": " << by_table << " " << missed);
  }
}

BOOST_AUTO_TEST_CASE(few_and_many_others) {
  BOOST_TEST(clq_model::fnr_of_two(0, 39, 1000, 8) == 0);
  BOOST_TEST(clq_model::fnr_of_two(1, 39, 1000, 8) < 1e-20);
  BOOST_TEST(clq_model::fnr_of_two(1e9, 39, 1000, 8) > 1 - 1e-12);
  double last = 0;
  for (double others = 0; others < 1e6; others += 1000) {
    const double now = clq_model::fnr_of_two(others, 39, 1000, 8);
    BOOST_TEST(now >= last);
    last = now;
  }
  // The fewer lines a slice has, the more the keys of a slice vary.
  BOOST_TEST(clq_model::fnr_of_two(35000, 39, 125, 8) > clq_model::fnr_of_two(35000, 39, 1000, 1));
}

BOOST_AUTO_TEST_SUITE_END()
