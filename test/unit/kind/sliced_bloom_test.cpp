// Sliced Bloom filters behave as their formulas say, also while slices are lost.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstring>
#include <random>
#include <set>
#include <string>
#include <vector>
#include "bench/lib/paper_formulas.hpp"
#include "core/model/slicing_model.hpp"
#include "unit/support/slicings.hpp"
#include "unit/support/statistics.hpp"

using namespace streamfilter;
using namespace unit;

BOOST_AUTO_TEST_SUITE(slicing_bloom)

namespace {

struct Measured {
  double fpr, deviation;  // of the mean over filters
};

// The rate at which new keys are found in filters that hold n keys, over filters with other hashes.
Measured measure(const std::string& text, std::uint64_t n, unsigned filters, unsigned probes) {
  double sum = 0, squares = 0;
  for (unsigned f = 0; f < filters; ++f) {
    Filter filter(text);
    for (std::uint64_t i = 0; i < n; ++i) filter.insert(numbered(i, f));
    double found = 0;
    for (std::uint64_t i = 0; i < probes; ++i) found += filter.test(numbered(n + i, f));
    const double share = found / probes;
    sum += share;
    squares += share * share;
  }
  const double mean = sum / filters, variance = (squares / filters - mean * mean) / (filters - 1);
  return {mean, std::sqrt(variance)};
}

slicing_model::SlicingShape shape_of(const Parameters& p) {
  return slicing_model::shape_of(p, static_cast<double>(option_value(p, "k")),
                                 static_cast<double>(p.slice_bytes - sizeof(SliceState)) * 8);
}

}  // namespace

// 512 bits a slice and about 60 keys: loads are uneven enough for Eq. 4 to be far off. Filters are
// independent; their mean deviates by more than five standard deviations once in 10^5 (t law).
BOOST_AUTO_TEST_CASE(rates_are_those_of_the_formulas) {
  for (const std::string& slicing : kSlicings) {
    const std::string text = bloom(slicing, 64);
    const std::uint64_t n = 2400;
    const Measured measured = measure(text, n, 60, 4000);
    const double expected =
        slicing_model::rate(shape_of(parameters_of(text)), static_cast<double>(n));
    BOOST_TEST(std::fabs(measured.fpr - expected) <= 5 * measured.deviation,
               slicing << ": " << measured.fpr << " instead of " << expected);
    // Where there are many parts, the formula for even loads fails.
    if (slicing == kSlicings[0])
      BOOST_TEST(measured.fpr - 5 * measured.deviation >
                 slicing_model::rate({1, 6, 1, 40, 512}, static_cast<double>(n)));
  }
}

// What is predicted of a stream of new keys that fills an empty filter; as above, with 12 filters.
BOOST_AUTO_TEST_CASE(predictions_are_right) {
  for (const std::string& slicing : kSlicings)
    for (const bool grows : {false, true}) {
      const std::string text =
          grows ? bloom(slicing, 2048, "k=6, grow=density") : bloom(slicing, 256);
      const std::uint64_t n = 10000;
      const unsigned filters = 12;
      double sum = 0, squares = 0;
      for (unsigned f = 0; f < filters; ++f) {
        Filter filter(text);
        double found = 0;
        for (std::uint64_t i = 0; i < n; ++i) found += filter.insert(numbered(i, f));
        sum += found / n;
        squares += found / n * found / n;
      }
      const double mean = sum / filters,
                   deviation = std::sqrt((squares / filters - mean * mean) / (filters - 1));
      const Parameters p = parameters_of(text);
      const double predicted = find_ops(Kind::bloom)->predict(p, Stream::listed(n, n)).fpr;
      BOOST_TEST(std::fabs(mean - predicted) <= 5 * deviation,
                 text << ": " << mean << " instead of " << predicted);
    }
}

BOOST_AUTO_TEST_CASE(a_vertical_filter_errs_as_often_as_an_unsliced_one) {
  Filter sliced("bloom(memory=41472, slices=64, slicing=vertical, k=4)"),  // 64 x 4608 bits
      whole("bloom(memory=37440, slices=1, k=4)");                         // 294912 bits
  BOOST_REQUIRE((sliced.parameters().slice_bytes - 64) * 64 == whole.parameters().slice_bytes - 64);
  const std::uint64_t n = 40000;
  double new_of_sliced = 0, new_of_whole = 0;
  for (std::uint64_t i = 0; i < n; ++i) {
    new_of_sliced += !sliced.insert(key(i));
    new_of_whole += !whole.insert(numbered(i, 1));
  }
  BOOST_TEST(same_rate(n - new_of_sliced, n, n - new_of_whole, n));
  double a = 0, b = 0;
  for (std::uint64_t i = n; i < 5 * n; ++i) {
    a += sliced.test(key(i));
    b += whole.test(numbered(i, 1));
  }
  BOOST_TEST(same_rate(a, 4 * n, b, 4 * n));
}

BOOST_AUTO_TEST_CASE(nothing_is_forgotten_and_each_key_is_counted_once) {
  for (const std::string& slicing : kSlicings)
    for (const std::string more : {"k=6", "k=6, grow=density", "k=6, grow=cardinality"}) {
      Filter filter(bloom(slicing, 512, more));
      std::uint64_t inserted_new = 0;
      for (std::uint64_t i = 0; i < 3000; ++i) {
        inserted_new += !filter.insert(key(i));
        BOOST_REQUIRE(filter.insert(key(i)));
      }
      for (std::uint64_t i = 0; i < 3000; ++i) BOOST_REQUIRE(filter.test(key(i)));
      const Totals sums = totals(filter.header());
      BOOST_TEST(sums.insertions == 6000u);
      BOOST_TEST(sums.inserted_new == inserted_new);
      // Linear counting deviates by less than sqrt(n).
      BOOST_TEST(
          std::fabs(sums.estimate.distinct - static_cast<double>(inserted_new)) <
              5 * std::sqrt(3000),
          slicing << ", " << more << ": " << sums.estimate.distinct << " of " << inserted_new);
      BOOST_TEST(filter.is_valid(), slicing << ", " << more);
    }
}

// The filter's own report equals the rate that new keys find.
BOOST_AUTO_TEST_CASE(the_rate_of_the_present_state_is_estimated) {
  for (const std::string& slicing : kSlicings)
    for (const bool grows : {false, true}) {
      // Two to three filters of a slice; more would not keep fpr in every slicing.
      const std::string more = grows ? "k=6, grow=density" : "k=6";
      Filter filter(bloom(slicing, grows ? 2048 : 256, more));
      const std::uint64_t n = grows ? 10000 : 8000;
      for (std::uint64_t i = 0; i < n; ++i) filter.insert(key(i));
      const double estimate = filter.estimate().fpr;
      const double probes = 50000;
      double found = 0;
      for (std::uint64_t i = 0; i < probes; ++i) found += filter.test(key(n + i));
      BOOST_TEST(found > 20);
      BOOST_TEST(found >= least(probes, estimate), slicing << ", " << more);
      BOOST_TEST(found <= most(probes, estimate), slicing << ", " << more);
    }
}

BOOST_AUTO_TEST_CASE(derived_filters_keep_their_rate) {
  for (const std::string& slicing : kSlicings) {
    if (contains(slicing, "k1")) continue;
    for (const std::string grow : {"", ", grow=density", ", grow=cardinality"}) {
      const std::uint64_t keys = 5000;
      const std::string text = "bloom(memory=256kB, keys=5000, fpr=0.01, " + slicing + grow + ")";
      Filter filter(text);
      const double bound = filter.fpr_bound();
      BOOST_TEST(bound <= .01, text);
      for (std::uint64_t i = 0; i < keys; ++i) filter.insert(key(i));
      const double probes = 50000;
      double found = 0;
      for (std::uint64_t i = 0; i < probes; ++i) found += filter.test(key(keys + i));
      BOOST_TEST(found <= most(probes, bound), text << ": " << found / probes);
    }
  }
}

BOOST_AUTO_TEST_CASE(memory_is_derived_from_keys) {
  for (const std::string& slicing : kSlicings) {
    if (contains(slicing, "k1")) continue;
    const Parameters p = parameters_of("bloom(keys=100000, fpr=0.01, " + slicing + ")");
    BOOST_TEST(find_ops(Kind::bloom)->fpr_bound(p) <= .01);
    BOOST_TEST(p.memory < 140000u, slicing);  // 9.6 bits a key, and headers
  }
}

// Each slice grows on its own, when it is loaded.
BOOST_AUTO_TEST_CASE(a_slice_grows_when_its_own_load_asks_for_it) {
  Filter filter(bloom("slices=40, slicing=vertical", 512, "k=6, grow=density"));
  std::set<std::uint64_t> sizes;
  for (std::uint64_t i = 0; i < 700; ++i) {
    filter.insert(key(i));
    std::set<std::uint64_t> now;
    for (std::uint32_t s = 0; s < 40; ++s) now.insert(filter.slice(s).state->own[1]);
    sizes.insert(now.begin(), now.end());
    if (now.size() > 1) return;  // some have, some have not
  }
  BOOST_FAIL("all slices have grown at once");
}

// Koloniari et al. 2011 §5 in vertical slices: all filters of a slice are searched for a bit, so
// together they are no better than one filter of the same size with all bits.
BOOST_AUTO_TEST_CASE(growth_of_single_bits_gains_nothing) {
  const std::string vertical = "slices=40, slicing=vertical";
  Filter grown(bloom(vertical, 512, "k=6, fpr=0.0001, grow=density")), small(bloom(vertical, 64));
  const std::uint64_t n = 2000;
  for (std::uint64_t i = 0; i < n; ++i) {
    grown.insert(key(i));
    small.insert(key(i));
  }
  BOOST_TEST(grown.slice().state->own[1] > 1u);
  double a = 0, b = 0;
  for (std::uint64_t i = n; i < 100000; ++i) {
    a += grown.test(key(i));
    b += small.test(key(i));
  }
  // Both err often enough to compare: a, at least, as often as b to 10 %.
  BOOST_TEST(b > 500);
  BOOST_TEST(a > .9 * b);
}

BOOST_AUTO_TEST_CASE(merging_is_union) {
  for (const std::string& slicing : kSlicings)
    for (const std::string more : {"k=6", "k=6, grow=density"}) {
      const std::string text = bloom(slicing, 512, more);
      Filter a(text), b(text), both(text);
      share_stream(a.header());
      share_stream(b.header());
      for (std::uint64_t i = 0; i < 2000; ++i) {
        (i % 3 == 0 ? a : b).insert(key(i));
        both.insert(key(i));
      }
      BOOST_TEST(a.merge(b));
      for (std::uint64_t i = 0; i < 2000; ++i) BOOST_REQUIRE(a.test(key(i)));
      BOOST_TEST(totals(a.header()).insertions == 2000u);
      BOOST_TEST(a.is_valid(), text);
      if (more == "k=6")
        for (std::uint32_t s = 0; s < 40; ++s)
          BOOST_TEST(std::memcmp(a.slice(s).body(), both.slice(s).body(), a.slice(s).bytes) == 0);
    }
  Filter a(bloom(kSlicings[1], 64)), b(bloom(kSlicings[2], 64));
  Problem problem;
  BOOST_TEST(!merge(a.header(), b.header(), problem));
  BOOST_TEST((problem.error == Error::mismatch));
}

BOOST_AUTO_TEST_CASE(bits_without_keys_are_refused) {
  Filter filter(bloom("slices=40, slicing=vertical", 64));
  filter.insert(key(1));
  BOOST_TEST(filter.is_valid());
  for (std::uint32_t s = 0; s < 40; ++s)
    filter.slice(s).state->insertions = filter.slice(s).state->inserted_new = 0;
  BOOST_TEST(!filter.is_valid());
}

// ---- failures

namespace {

// Of a key's places, those in slices that are not lost: their number, and how many are set.
struct Answers {
  unsigned reached = 0, set = 0;
};

Answers ask(const Filter& filter, const Element& element, const std::vector<bool>& lost) {
  Answers answers;
  for (unsigned i = 0; i < probes(filter.parameters()); ++i) {
    const KeyProbe probe = probe_of(filter.parameters(), element.hash, i);
    if (lost[probe.slice]) continue;
    ++answers.reached;
    answers.set += test_probe(filter.header(), element, probe);
  }
  return answers;
}

bool seen_by(LostRule rule, const Answers& a, unsigned all, unsigned least) {
  switch (rule) {
    case LostRule::duplicate: return a.set == a.reached;
    case LostRule::distinct: return a.set == all;
    case LostRule::votes: return a.set == a.reached && a.reached >= least;
    case LostRule::hybrid: return a.set >= least;
  }
  return false;
}

}  // namespace

// Each probe loses another 8 of 40 slices of a filter with 8 bits a key.
BOOST_AUTO_TEST_CASE(lost_slices_cost_what_the_formulas_say) {
  const std::string cut[] = {"slices=40, slicing=vertical", "slices='8,5', slicing=diced",
                             "slices='8,5', slicing=diced, dice=vh"};
  for (const std::string& slicing : cut) {
    Filter filter(bloom(slicing, 1024, "k=8"));
    const std::uint64_t n = scaled(22000);
    for (std::uint64_t i = 0; i < n; ++i) filter.insert(key(i));
    double set = 0;
    for (std::uint32_t s = 0; s < 40; ++s)
      set += static_cast<double>(filter.slice(s).state->own[0]) / (1024 * 8) / 40;
    const bench::Failures failures = {8, set, 40,
                                      static_cast<double>(slices_of_group(filter.parameters())), 8};
    const double probes = static_cast<double>(scaled(100000));
    struct {
      LostRule rule;
      unsigned least;
      double positives, negatives;
    } rules[] = {{LostRule::duplicate, 0, 0, 0}, {LostRule::distinct, 0, 0, 0},
                 {LostRule::votes, 4, 0, 0},     {LostRule::votes, 6, 0, 0},
                 {LostRule::hybrid, 4, 0, 0},    {LostRule::hybrid, 6, 0, 0}};
    std::mt19937_64 random(7);
    std::vector<bool> lost(40);
    for (std::uint64_t i = 0; i < probes; ++i) {
      std::fill(lost.begin(), lost.end(), false);
      for (unsigned down = 0; down < 8;) {
        const std::uint64_t s = scale(random(), 40);
        down += !lost[s];
        lost[s] = true;
      }
      const Answers fresh = ask(filter, key(n + i), lost), known = ask(filter, key(i % n), lost);
      for (auto& rule : rules) {
        rule.positives += seen_by(rule.rule, fresh, 8, rule.least);
        rule.negatives += !seen_by(rule.rule, known, 8, rule.least);
      }
    }
    for (const auto& rule : rules) {
      const bench::ErrorRates expected = errors(failures, rule.rule, rule.least);
      BOOST_TEST_CONTEXT(slicing << ", rule " << static_cast<int>(rule.rule) << ":" << rule.least
                                 << ", " << expected.fpr << ", " << expected.fnr) {
        BOOST_TEST(rule.positives >= least(probes, expected.fpr));
        BOOST_TEST(rule.positives <= most(probes, expected.fpr));
        BOOST_TEST(rule.negatives >= least(probes, expected.fnr));
        BOOST_TEST(rule.negatives <= most(probes, expected.fnr));
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
