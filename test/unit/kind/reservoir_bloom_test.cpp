// The reservoir sampling Bloom filter, element by element. Plain versions of Algorithm 1 in all its
// phases, and of the variant that gives the paper's figures, with the same positions and random
// numbers, must give the same answers, bits and counts. Also the bound of its false-positive rate,
// which it keeps for ever.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/base/hash.hpp"
#include "core/model/biased_model.hpp"
#include "unit/support/filters.hpp"
#include "unit/support/kind_checks.hpp"
#include "unit/support/statistics.hpp"
#include "unit/support/streams.hpp"

using namespace streamfilter;
using namespace unit;

BOOST_AUTO_TEST_SUITE(reservoir_bloom)

namespace {

class Plain {
 public:
  Plain(const Parameters& p, std::uint64_t random, double p_star)
      : measured_(option_value(p, "variant") == 1),
        k_(static_cast<unsigned>(option_value(p, "k"))),
        p_star_(p_star),
        random_(random) {
    const std::uint64_t words = (p.slice_bytes - sizeof(SliceState)) / 8;
    arrays_.assign(k_, std::vector<bool>((words - k_) / k_ * 64));
  }

  bool insert(std::uint64_t hash) {
    const std::uint64_t s = arrays_[0].size();
    if (std::exchange(is_empty_, false)) random_ = mix64(random_ ^ hash);
    std::vector<std::uint64_t> h;
    bool duplicate = true;
    for (unsigned i = 0; i < k_; ++i) {
      h.push_back(position(hash, i, s));
      if (!arrays_[i][h[i]]) duplicate = false;
    }
    if (measured_) {
      for (unsigned i = 0; i < k_; ++i) arrays_[i][random_below(random_, s)] = false;
      for (unsigned i = 0; i < k_; ++i) arrays_[i][h[i]] = true;
    } else if (iter_ <= s) {
      for (unsigned i = 0; i < k_; ++i) arrays_[i][h[i]] = true;
    } else if (static_cast<double>(s) / static_cast<double>(iter_) <= p_star_) {
      ++third;
      for (unsigned i = 0; i < k_; ++i) {
        if (arrays_[i][h[i]]) continue;
        for (unsigned probe = 0; probe < 64 && ones(i) > 0; ++probe) {
          const std::uint64_t at = random_below(random_, s);
          if (!arrays_[i][at]) continue;
          arrays_[i][at] = false;
          break;
        }
        arrays_[i][h[i]] = true;
      }
    } else if (random_below(random_, iter_) < s) {
      ++second;
      for (unsigned i = 0; i < k_; ++i) arrays_[i][h[i]] = true;
      for (unsigned i = 0; i < k_; ++i) arrays_[i][random_below(random_, s)] = false;
    }
    ++iter_;
    return duplicate;
  }

  std::uint64_t ones(unsigned i) const {
    return static_cast<std::uint64_t>(std::count(arrays_[i].begin(), arrays_[i].end(), true));
  }
  const std::vector<std::vector<bool>>& arrays() const { return arrays_; }
  std::uint64_t second = 0, third = 0;  // insertions in these phases

 private:
  bool measured_;
  unsigned k_;
  double p_star_;
  std::uint64_t random_, iter_ = 1;
  bool is_empty_ = true;
  std::vector<std::vector<bool>> arrays_;
};

void compare_with_plain(const std::string& definition, double p_star, std::uint64_t universe) {
  BOOST_TEST_CONTEXT(definition) {
    Filter filter(definition);
    const Parameters& p = filter.parameters();
    std::vector<Plain> plain;
    for (std::uint32_t n = 0; n < p.slices; ++n)
      plain.emplace_back(p, filter.slice(n).state->random, p_star);
    std::mt19937_64 random(7);
    for (unsigned i = 0; i < 12000; ++i) {
      const Element element = key(random() % universe);
      const bool tested = filter.test(element);
      const bool expected = plain[slice_of(p, element.hash)].insert(element.hash);
      BOOST_REQUIRE(tested == expected);
      BOOST_REQUIRE(filter.insert(element) == expected);
    }
    for (std::uint32_t n = 0; n < p.slices; ++n) {
      const Slice slice = filter.slice(n);
      const std::size_t k = plain[n].arrays().size(), s = plain[n].arrays()[0].size();
      std::uint64_t differences = 0;
      for (unsigned i = 0; i < k; ++i)
        for (std::size_t at = 0; at < s; ++at) {
          const std::size_t bit = 64 * k + i * s + at;
          differences += (slice.body()[bit / 8] >> bit % 8 & 1) != plain[n].arrays()[i][at];
        }
      BOOST_TEST(differences == 0u);
      if (option_value(p, "variant") == 0) {
        if (p_star < 1) BOOST_TEST(plain[n].second > 0u);
        if (p_star > 0.1) BOOST_TEST(plain[n].third > 0u);
      }
    }
    BOOST_TEST(filter.is_valid());
  }
}

constexpr const char* kVariants[] = {"printed", "measured"};

}  // namespace

BOOST_AUTO_TEST_CASE(printed_is_algorithm_1_in_all_its_phases) {
  for (const std::uint64_t universe : {5, 700, 100000}) {
    compare_with_plain("rsbf(memory=1kB, k=2)", 0.03, universe);
    compare_with_plain("rsbf(memory=1kB, k=2, p_star=0.5)", 0.5, universe);
    compare_with_plain("rsbf(memory=700, k=1, p_star=0.9)", 0.9, universe);
    compare_with_plain("rsbf(memory=2kB, k=7, p_star=1, variant=printed)", 1, universe);
  }
  compare_with_plain("rsbf(memory=3kB, k=3, p_star=0.6, slices=3, seed=5)", 0.6, 5000);
}

BOOST_AUTO_TEST_CASE(measured_inserts_every_element) {
  for (const std::uint64_t universe : {5, 700, 100000}) {
    compare_with_plain("rsbf(memory=1kB, k=2, variant=measured)", 0.03, universe);
    compare_with_plain("rsbf(memory=2kB, k=32, variant=measured)", 0.03, universe);
  }
  compare_with_plain("rsbf(memory=3kB, k=3, variant=measured, slices=3)", 0.03, 5000);
}

BOOST_AUTO_TEST_CASE(options_have_ranges_and_round_trip) {
  BOOST_TEST(text_of(parameters_of("rsbf(memory=64kB, k=2)")) ==
             "rsbf(memory=64kB, k=2, p_star=0.03, variant=printed)");
  BOOST_TEST(text_of(parameters_of("rsbf(memory=64kB, k=2, p_star=0.5, variant=measured)")) ==
             "rsbf(memory=64kB, k=2, p_star=0.5, variant=measured)");
  for (const char* text :
       {"rsbf(memory=64kB, k=33)", "rsbf(memory=64kB, k=0)", "rsbf(memory=64kB, p_star=0)",
        "rsbf(memory=64kB, p_star=1.5)", "rsbf(memory=64kB, fpr=1e-9)"})
    BOOST_TEST((refusal(text).error == Error::out_of_range), text);
  const Problem variant = refusal("rsbf(memory=64kB, variant=other)");
  BOOST_TEST((variant.error == Error::syntax));
  BOOST_TEST(std::string(variant.hint) == "Valid values are: printed, measured.");
  BOOST_TEST((refusal("rsbf(memory=640, k=32)").error == Error::too_small));
}

// Eq. 6.1, k = ln fpr / ln(1 - 1/e), rounded up to be a bound; the variant that was measured has
// 1/2 in place of 1 - 1/e. With `keys`, the fewest arrays that keep fpr.
BOOST_AUTO_TEST_CASE(k_is_derived_by_eq_6_1) {
  const auto k = [](const std::string& options) {
    const Parameters p = parameters_of("rsbf(memory=1MB, " + options + ")");
    BOOST_TEST(find_ops(Kind::rsbf)->fpr_bound(p) <= 0.2);
    return option_value(p, "k");
  };
  BOOST_TEST(k("fpr=0.1") == 6u);    // 5.02
  BOOST_TEST(k("fpr=0.01") == 11u);  // 10.04
  BOOST_TEST(k("seed=1") == 11u);
  BOOST_TEST(k("fpr=0.2") == 4u);                     // 3.51
  BOOST_TEST(k("fpr=0.01, variant=measured") == 7u);  // 6.64
  BOOST_TEST(k("fpr=0.01, keys=10000") == 1u);
  BOOST_TEST(k("fpr=0.01, keys=300000") == 2u);
  BOOST_TEST(k("fpr=0.01, keys=1e9") == 11u);
}

// At every stage of several streams, in all phases: new keys, few keys repeated, or both.
BOOST_AUTO_TEST_CASE(fpr_is_kept_for_ever_on_any_stream) {
  for (const std::string variant : kVariants)
    for (const char* fpr : {"0.3", "0.05"})
      for (const std::uint64_t universe : {100, 3000, 30000, 1 << 30}) {
        Filter filter("rsbf(memory=2kB, slices=1, p_star=0.1, fpr=" + std::string(fpr) +
                      ", variant=" + variant + ")");
        const double bound = filter.fpr_bound();
        BOOST_TEST(bound <= std::stod(fpr));
        std::mt19937_64 random(universe);
        std::uint64_t probe = std::uint64_t{1} << 40;
        double highest = 0;
        for (int stage = 0; stage < 40; ++stage) {
          for (int i = 0; i < 2000; ++i) filter.insert(key(random() % universe));
          const double n = 4000;
          double positives = 0;
          for (double i = 0; i < n; ++i) positives += filter.test(key(probe++));
          highest = std::max(highest, positives / n);
          // The load of so few bits varies around its mean.
          const double k = static_cast<double>(option_value(filter.parameters(), "k"));
          const double s = (2048 - 576) * 8 / k;
          BOOST_TEST(positives <= most(n, std::min(1., bound * (1 + 5 * std::sqrt(k / s)))));
        }
        BOOST_TEST_MESSAGE(variant << " fpr " << fpr << " keys " << universe << ": highest "
                                   << highest << ", bound " << bound);
      }
}

// Half of the bits are set in the long run (measured: by balance; printed: the second phase leaves
// half, the third keeps the number of ones), so 2^-k of the new keys are called repeats.
BOOST_AUTO_TEST_CASE(streams_of_new_keys_end_at_half_load) {
  for (const std::string variant : kVariants) {
    Filter filter("rsbf(memory=16kB, slices=1, k=3, variant=" + variant + ")");
    const double s = 16384 * 8 / 3;
    std::uint64_t number = 0;
    while (static_cast<double>(number) < 40 * s) filter.insert(key(number++));
    double positives = 0;
    const double n = 300000;
    for (double i = 0; i < n; ++i) positives += filter.insert(key(number++));
    BOOST_TEST(std::fabs(positives / n / 0.125 - 1) < 0.05);
    BOOST_TEST(std::fabs(filter.estimate().fill - 0.5) < 0.01);
  }
}

// Variant measured forgets at a constant rate, so the bound is the rate itself.
BOOST_AUTO_TEST_CASE(keys_are_missed_as_often_as_predicted) {
  Filter filter("rsbf(memory=64kB, slices=1, k=2, variant=measured)");
  const std::uint64_t s = (65536 - 576) * 8 / 2;
  for (const std::uint64_t gap : {s / 20, s / 4, s}) {
    const double expected =
        find_ops(Kind::rsbf)->fnr_at(filter.parameters(), static_cast<double>(gap));
    Filter fresh(filter.parameters());
    double trials = 0, misses = 0;
    for (std::uint64_t number = 0; number < 3 * s; ++number) {
      fresh.insert(key(number));
      if (number < gap || number % 50 != 0) continue;
      ++trials;
      misses += !fresh.test(key(number - gap));
    }
    check_rate(misses, trials, expected);
  }
}

// A merged filter works like one that has seen both streams: its `iter` is the sum.
BOOST_AUTO_TEST_CASE(merging_remembers_what_either_does) {
  for (const std::string variant : kVariants) {
    const std::string text = "rsbf(memory=64kB, k=3, slices=4, variant=" + variant + ")";
    Filter a = merged_halves(text, 20000);
    BOOST_TEST(totals(a.header()).insertions == 20000u);
    BOOST_TEST(a.estimate().distinct == 20000, boost::test_tools::tolerance(0.1));
  }
}

BOOST_AUTO_TEST_SUITE_END()
