// Decides keys while slices are lost, for every state of a key's places, against the formulas of
// slicing_model (Koloniari et al. 2011, section 3.2).
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "bench/lib/paper_formulas.hpp"
#include "core/model/slicing_model.hpp"

namespace {

using namespace streamfilter;

constexpr unsigned kPlaces = 5;
constexpr LostRule kRules[] = {LostRule::distinct, LostRule::duplicate, LostRule::votes,
                               LostRule::hybrid};

// The probability that a key is called a repeat, summed over all 3^k states: each place is lost
// with probability `lost`, and otherwise set with probability `set`.
double repeat_rate(LostRule rule, unsigned least, double lost, double set) {
  double sum = 0;
  unsigned states = 1;
  for (unsigned i = 0; i < kPlaces; ++i) states *= 3;
  for (unsigned state = 0; state < states; ++state) {
    ProbesSeen seen;
    seen.slice_lost = true;
    double probability = 1;
    for (unsigned i = 0, rest = state; i < kPlaces; ++i, rest /= 3) switch (rest % 3) {
        case 0: ++seen.lost, probability *= lost; break;
        case 1: ++seen.set, probability *= (1 - lost) * set; break;
        default: ++seen.unset, probability *= (1 - lost) * (1 - set);
      }
    if (is_repeat(seen, rule, least)) sum += probability;
  }
  return sum;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(LostPlaces)

BOOST_AUTO_TEST_CASE(rates_are_those_of_the_model) {
  const double fill = 0.34;
  const bench::Failures failures = {kPlaces, fill, 40, 40, 8};
  for (const LostRule rule : kRules)
    for (unsigned least = 1; least <= kPlaces; ++least) {
      const bench::ErrorRates wanted = bench::errors(failures, rule, least);
      BOOST_TEST(repeat_rate(rule, least, 0.2, fill) == wanted.fpr,
                 boost::test_tools::tolerance(1e-9));
      BOOST_TEST(1 - repeat_rate(rule, least, 0.2, 1) == wanted.fnr,
                 boost::test_tools::tolerance(1e-9));
    }
}

BOOST_AUTO_TEST_CASE(without_losses_all_rules_agree) {
  for (const LostRule rule : kRules)
    for (unsigned set = 0; set <= kPlaces; ++set) {
      ProbesSeen seen;
      seen.set = set;
      seen.unset = kPlaces - set;
      BOOST_TEST(is_repeat(seen, rule, 2) == (set == kPlaces));
    }
}

// Stopping early must not miss a repeat.
BOOST_AUTO_TEST_CASE(a_probe_that_stops_decides_as_one_that_goes_on) {
  for (const LostRule rule : kRules)
    for (unsigned set = 0; set < kPlaces; ++set)
      for (unsigned lost = 0; set + lost < kPlaces; ++lost) {
        ProbesSeen seen;
        seen.slice_lost = lost > 0;
        seen.set = set;
        seen.lost = lost;
        seen.unset = kPlaces - set - lost;
        if (may_be_repeat(seen, rule)) continue;
        for (unsigned more = 0; more <= 3; ++more) {
          ProbesSeen later = seen;
          later.set += more;
          BOOST_TEST(!is_repeat(later, rule, 1));
        }
      }
}

BOOST_AUTO_TEST_SUITE_END()
