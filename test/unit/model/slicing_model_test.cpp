// The formulas of sliced filters and of lost slices, against figures from simulations and against
// one another.
#include "core/model/slicing_model.hpp"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>

#include "bench/lib/paper_formulas.hpp"

using namespace streamfilter;
using namespace streamfilter::slicing_model;
namespace tt = boost::test_tools;

BOOST_AUTO_TEST_SUITE(slicing_model_formulas)

// The synthetic stream of Koloniari et al. 2011 §7: k = 4, 5700 keys, 48400 bits.
constexpr double kK = 4, kKeys = 5700, kBits = 48400;

namespace {

SlicingShape vertical(double slices, double k = kK) { return {k, 1, 1, slices, kBits / slices}; }
SlicingShape horizontal(double slices, double k = kK) { return {1, k, slices, 1, kBits / slices}; }

// 8 bits a key in 40 slices, 8 of them lost; a bit is set with this probability.
constexpr double kPlaces = 8, kSet = .4288;
bench::Failures failures(double part) { return {kPlaces, kSet, 40, part, 8}; }

}  // namespace

BOOST_AUTO_TEST_CASE(a_vertical_filter_has_the_rate_of_an_unsliced_one) {
  const double unsliced = timing_model::rate(kK, kKeys, kBits);
  for (const double slices : {1., 40., 200., 1000.})
    BOOST_TEST(rate(vertical(slices), kKeys) == unsliced, tt::tolerance(1e-12));
  BOOST_TEST(rate(horizontal(1), kKeys) == unsliced, tt::tolerance(1e-12));
}

// Eq. 4 with the spread of loads.
BOOST_AUTO_TEST_CASE(horizontal_filters_suffer_from_uneven_slices) {
  BOOST_TEST(std::fabs(rate(horizontal(40), kKeys) - .0204) < .00005);
  BOOST_TEST(std::fabs(rate(horizontal(200), kKeys) - .0221) < .00005);
  BOOST_TEST(std::fabs(rate(horizontal(1000), kKeys) - .0304) < .00005);
}

// Figures from a simulation of these filters: .0203, .0223, .0320. Slices of 48 bits are small.
BOOST_AUTO_TEST_CASE(small_slices_are_worse_still) {
  BOOST_TEST(std::fabs(rate(horizontal(40), kKeys, bench::rate_of_few_cells) - .0203) < .0002);
  BOOST_TEST(std::fabs(rate(horizontal(200), kKeys, bench::rate_of_few_cells) - .0223) < .0002);
  // Of 48 bits, the second order leaves a seventieth out.
  BOOST_TEST(std::fabs(rate(horizontal(1000), kKeys, bench::rate_of_few_cells) - .0320) <
             .0320 / 70);
  BOOST_TEST(rate(vertical(1000), kKeys, bench::rate_of_few_cells) == rate(vertical(1000), kKeys),
             tt::tolerance(1e-3));
}

BOOST_AUTO_TEST_CASE(the_mean_over_loads_does_not_jump_where_its_method_changes) {
  const auto at = [](double load) { return rate({1, 4, 100, 1, load * 8.5}, load * 100); };
  BOOST_TEST(at(255.9) == at(256.1), tt::tolerance(1e-4));
}

// A diced filter is as uneven as its parts: 8 parts of 5 slices like 8 horizontal ones.
BOOST_AUTO_TEST_CASE(a_diced_filter_has_the_rate_of_its_parts) {
  const SlicingShape diced = {kK, 1, 8, 5, kBits / 40};
  BOOST_TEST(rate(diced, kKeys) == rate(horizontal(8), kKeys), tt::tolerance(1e-12));
}

// Prop. 2: asymptotically all the same; with few keys a slice, fewer places are worse.
BOOST_AUTO_TEST_CASE(no_split_of_k_is_better_than_another) {
  for (const double slices : {40., 200., 1000.}) {
    double before = rate(vertical(slices, 8), kKeys);
    for (const double k1 : {4., 2.}) {
      const double mixed = rate({k1, 8 / k1, 1, slices, kBits / slices}, kKeys);
      BOOST_TEST(mixed > before);
      before = mixed;
    }
    BOOST_TEST(rate(horizontal(slices, 8), kKeys) > before);
  }
  BOOST_TEST(rate({2, 4, 1, 4, 1e6}, 4e5) == rate({8, 1, 1, 4, 1e6}, 4e5), tt::tolerance(1e-3));
}

// Eq. 5 and 6: a horizontal key has one slice, a vertical one eight.
BOOST_AUTO_TEST_CASE(lost_places_that_count_as_set) {
  const double whole = std::pow(kSet, kPlaces);
  const bench::ErrorRates one = bench::errors({1, whole, 40, 1, 8}, LostRule::duplicate);
  BOOST_TEST(one.fpr == .2 + .8 * whole, tt::tolerance(1e-9));
  BOOST_TEST(one.fnr == 0);
  const bench::ErrorRates all = bench::errors(failures(40), LostRule::duplicate);
  BOOST_TEST(all.fpr == std::pow(.2 + .8 * kSet, kPlaces), tt::tolerance(1e-9));
  BOOST_TEST(all.fnr == 0);
}

// Eq. 7 says .0076 for both ways of dicing.
BOOST_AUTO_TEST_CASE(diced_filters_lose_more_at_once) {
  BOOST_TEST(std::fabs(bench::errors(failures(40), LostRule::duplicate).fpr - .0076) < .00005);
  BOOST_TEST(std::fabs(bench::errors(failures(5), LostRule::duplicate).fpr - .0178) <
             .0002);  // h-v 8 x 5
  BOOST_TEST(std::fabs(bench::errors(failures(8), LostRule::duplicate).fpr - .0123) <
             .0002);  // v-h 8 x 5
}

// Printed: .056, for want of binomial coefficients.
BOOST_AUTO_TEST_CASE(lost_places_that_count_as_unset) {
  const bench::ErrorRates of_places = bench::errors(failures(40), LostRule::distinct);
  BOOST_TEST(of_places.fnr == 1 - std::pow(.8, 8), tt::tolerance(1e-9));
  BOOST_TEST(std::fabs(of_places.fnr - .832) < .0005);
  BOOST_TEST(of_places.fpr == std::pow(.8 * kSet, 8), tt::tolerance(1e-9));
  BOOST_TEST(bench::errors({1, .02, 40, 1, 8}, LostRule::distinct).fnr == .2, tt::tolerance(1e-9));
  BOOST_TEST(bench::errors({1, .02, 40, 1, 8}, LostRule::distinct).fpr == .8 * .02,
             tt::tolerance(1e-9));
}

BOOST_AUTO_TEST_CASE(votes_beat_the_hybrid_rule_at_the_same_false_negatives) {
  const double hybrid[] = {.555, .279, .0975, .023}, votes[] = {.0072, .0066, .0050, .0029};
  for (unsigned x = 3; x <= 6; ++x) {
    const bench::ErrorRates printed = bench::errors(failures(40), LostRule::hybrid, x),
                            better = bench::errors(failures(40), LostRule::votes, x);
    BOOST_TEST(std::fabs(printed.fpr - hybrid[x - 3]) < .001);
    BOOST_TEST(std::fabs(better.fpr - votes[x - 3]) < .0002);
    BOOST_TEST(better.fnr == printed.fnr);
    BOOST_TEST(better.fpr < printed.fpr);
  }
}

// With nothing to ask for, and with everything, these equal the simple rules.
BOOST_AUTO_TEST_CASE(votes_lie_between_set_and_unset) {
  for (const double part : {5., 8., 40.}) {
    const bench::ErrorRates none = bench::errors(failures(part), LostRule::votes, 0),
                            all = bench::errors(failures(part), LostRule::votes, 8);
    BOOST_TEST(none.fpr == bench::errors(failures(part), LostRule::duplicate).fpr,
               tt::tolerance(1e-9));
    BOOST_TEST(none.fnr == 0);
    BOOST_TEST(all.fpr == bench::errors(failures(part), LostRule::distinct).fpr,
               tt::tolerance(1e-9));
    BOOST_TEST(all.fnr == bench::errors(failures(part), LostRule::distinct).fnr,
               tt::tolerance(1e-9));
  }
}

BOOST_AUTO_TEST_CASE(without_failures_all_rules_agree) {
  for (const double part : {1., 5., 40.})
    for (const LostRule rule :
         {LostRule::duplicate, LostRule::distinct, LostRule::votes, LostRule::hybrid}) {
      const bench::ErrorRates none = bench::errors({8, kSet, 40, part, 0}, rule, 8);
      BOOST_TEST(none.fpr == std::pow(kSet, 8), tt::tolerance(1e-9));
      BOOST_TEST(none.fnr == 0);
    }
}

// Definition 3, against the rates at the slices found and one less; f lost of S is a share there.
BOOST_AUTO_TEST_CASE(slices_needed_are_the_least_that_keep_a_bound) {
  for (const double probes : {1., 4., 8.})
    for (const double lost : {1., 4., 10.})
      for (const double most : {.05, .15, .5}) {
        const double fpr = .02, probe = std::pow(fpr, 1 / probes);
        const auto fpr_of = [&](double s) {
          return std::pow(lost / s + (1 - lost / s) * probe, probes);
        };
        const auto fnr_of = [&](double s) { return 1 - std::pow(1 - lost / s, probes); };
        const double a = slices_for_fpr(probes, fpr, lost, most),
                     b = slices_for_fnr(probes, lost, most);
        constexpr double kRounding = 1 + 1e-12;
        BOOST_TEST(fpr_of(a) <= most * kRounding);
        BOOST_TEST((a == lost || fpr_of(a - 1) > most));
        BOOST_TEST(fnr_of(b) <= most * kRounding);
        BOOST_TEST((b == lost || fnr_of(b - 1) > most));
      }
}

// Fig. 1(b): a bound of .15 with four lost.
BOOST_AUTO_TEST_CASE(vertical_filters_need_fewer_slices) {
  BOOST_TEST(slices_for_fpr(4, .02, 4, .15) < 20);
  BOOST_TEST(slices_for_fpr(1, .02, 4, .15) > 30);
  BOOST_TEST(slices_for_fnr(4, 4, .15) > slices_for_fnr(1, 4, .15));  // unset: the other way round
}

BOOST_AUTO_TEST_CASE(slices_needed_at_the_edges) {
  const double infinity = std::numeric_limits<double>::infinity();
  BOOST_TEST(slices_for_fpr(4, .02, 0, .05) == 1);
  BOOST_TEST(slices_for_fpr(4, .02, 1, .02) == infinity);
  BOOST_TEST(slices_for_fpr(4, .02, 1, .01) == infinity);
  BOOST_TEST(slices_for_fnr(4, 0, .05) == 1);
  BOOST_TEST(slices_for_fnr(4, 1, 0) == infinity);
}

BOOST_AUTO_TEST_SUITE_END()
