// Kinds ibf2c, ibfmc and ibfh: the algorithms against a plain reference, the mapping of importance,
// and the limits of the Markov chain by formula and by simulation.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "bench/lib/paper_formulas.hpp"
#include "core/base/hash.hpp"
#include "core/format/counting_cells.hpp"
#include "core/model/stable_model.hpp"
#include "unit/support/filters.hpp"
#include "unit/support/kind_checks.hpp"
#include "unit/support/statistics.hpp"
#include "unit/support/streams.hpp"

using namespace streamfilter;
using namespace unit;

BOOST_AUTO_TEST_SUITE(importance_bloom)

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::vector<unsigned> cells_of(Filter& filter) {
  const std::uint64_t max = option_value(filter.parameters(), "max");
  const std::uint64_t m = cells_in(filter.slice().bytes, cell_bits_for(max));
  return with_cell_width(cell_bits_for(max), [&](auto width) {
    const PackedCells<width.value> cells(filter.slice().body());
    std::vector<unsigned> values(m);
    for (std::uint64_t i = 0; i < m; ++i) values[i] = cells.get(i);
    return values;
  });
}

double share_of_zeros(Filter& filter) { return 1 - filter.estimate().fill; }

// The algorithms as printed, with Algorithm 1 corrected as in importance_bloom.cpp, on an array of
// numbers. Levels are given.
class Reference {
 public:
  Reference(const Parameters& p, std::uint64_t m)
      : k_(option_value(p, "k")),
        p_(option_value(p, "p")),
        by_value_(option_value(p, "delete")),
        cells_(m),
        random_(mix64(p.seed ^ kGoldenRatio)) {}

  bool insert(std::uint64_t hash, unsigned level) {
    if (std::exchange(is_empty_, false)) random_ = mix64(random_ ^ hash);
    const std::uint64_t m = cells_.size();
    bool seen = true;
    for (unsigned i = 0; i < k_; ++i)
      if (cells_[position(hash, i, m)] == 0) seen = false;
    if (by_value_) {
      for (std::uint64_t looks = 0, taken = 0; taken < p_ && looks < 16 * p_ && looks < m;
           ++looks) {
        unsigned& cell = cells_[random_below(random_, m)];
        if (cell == 0 || (cell > 1 && random_below(random_, cell) != 0)) continue;
        --cell;
        ++taken;
      }
    } else {
      const std::uint64_t start = random_below(random_, m);
      for (std::uint64_t i = 0; i < p_; ++i)
        if (unsigned& cell = cells_[(start + i) % m]; cell > 0) --cell;
    }
    for (unsigned i = 0; i < k_; ++i) {
      unsigned& cell = cells_[position(hash, i, m)];
      if (cell < level) cell = level;
    }
    return seen;
  }

  const std::vector<unsigned>& cells() const { return cells_; }

 private:
  std::uint64_t k_, p_;
  bool by_value_;
  std::vector<unsigned> cells_;
  std::uint64_t random_;
  bool is_empty_ = true;
};

// The level that an importance gives.
unsigned level(const std::string& definition, double importance) {
  Filter filter(definition);
  filter.insert(with_importance(1, importance));
  const std::vector<unsigned> cells = cells_of(filter);
  return *std::max_element(cells.begin(), cells.end());
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_element_is_answered_as_by_the_reference) {
  for (const char* text :
       {"ibf2c(memory=1kB, p=10)", "ibf2c(memory=1kB, p=10, delete=value)",
        "ibf2c(memory=2kB, max=2, k=3, p=4)", "ibf2c(memory=1kB, max=5, k=4, p=9, seed=7)",
        "ibfmc(memory=1kB, p=10)", "ibfmc(memory=1kB, p=10, delete=value)",
        "ibfmc(memory=1kB, max=15, k=2, p=20)", "ibfmc(memory=1kB, max=1, k=2, p=4)",
        "ibfh(memory=1kB, p=10)", "ibfh(memory=2kB, max=3, k=3, p=8)",
        "ibfh(memory=1kB, p=10, delete=random)"}) {
    Filter filter(text);
    const std::uint64_t max = option_value(filter.parameters(), "max");
    Reference reference(filter.parameters(), cells_of(filter).size());
    UniformStream stream(150, 1);
    std::mt19937_64 random(2);
    unsigned repeats = 0;
    for (unsigned i = 0; i < 4000; ++i) {
      Element element = stream.next();
      const unsigned importance = static_cast<unsigned>(1 + random() % max);
      element.importance = importance;
      unsigned wanted = importance;
      if (filter.parameters().kind == Kind::ibf2c)
        wanted = static_cast<unsigned>(2 * importance >= 1 + max ? max : max / 2);
      const bool seen = reference.insert(element.hash, wanted);
      BOOST_REQUIRE_EQUAL(filter.test(element), filter.test(element));
      BOOST_REQUIRE_EQUAL(filter.insert(element), seen);
      repeats += seen;
      if (i % 500 == 0) BOOST_REQUIRE(cells_of(filter) == reference.cells());
    }
    BOOST_TEST(cells_of(filter) == reference.cells(), boost::test_tools::per_element());
    BOOST_TEST(filter.is_valid(), text);
    BOOST_TEST(repeats > 20);
  }
}

BOOST_AUTO_TEST_CASE(a_range_is_mapped_evenly) {
  const std::string tens = "ibfmc(memory=1kB, importance_range='0,70')";
  const double values[] = {0, 9.9, 10, 25, 39, 40, 59.9, 60, 69, 70};
  const unsigned levels[] = {1, 1, 2, 3, 4, 5, 6, 7, 7, 7};
  for (unsigned i = 0; i < std::size(values); ++i) BOOST_TEST(level(tens, values[i]) == levels[i]);
  for (unsigned i = 1; i <= 7; ++i) BOOST_TEST(level("ibfmc(memory=1kB)", i) == i);
  for (unsigned i = 1; i <= 15; ++i) BOOST_TEST(level("ibfmc(memory=1kB, max=15)", i) == i);
  BOOST_TEST(level("ibfmc(memory=1kB, max=1)", 0) == 1u);
  BOOST_TEST(level("ibf2c(memory=1kB, importance_range='-10,10')", -0.1) == 3u);
  BOOST_TEST(level("ibf2c(memory=1kB, importance_range='-10,10')", 0) == 7u);
  BOOST_TEST(level("ibf2c(memory=1kB)", 3.9) == 3u);
  BOOST_TEST(level("ibf2c(memory=1kB)", 4) == 7u);
}

BOOST_AUTO_TEST_CASE(levels_are_thresholds) {
  const std::string three = "ibfmc(memory=1kB, importance_levels='10,100,1000')";
  BOOST_TEST(level(three, 9) == 1u);
  BOOST_TEST(level(three, 10) == 3u);
  BOOST_TEST(level(three, 99) == 3u);
  BOOST_TEST(level(three, 100) == 5u);
  BOOST_TEST(level(three, 1e6) == 7u);
  const std::string six = "ibfmc(memory=1kB, importance_levels='1,2,3,4,5,6')";
  for (unsigned i = 0; i < 7; ++i) BOOST_TEST(level(six, i) == i + 1);
  BOOST_TEST(level("ibf2c(memory=1kB, importance_levels=50)", 49) == 3u);
  BOOST_TEST(level("ibf2c(memory=1kB, importance_levels=50)", 50) == 7u);
}

BOOST_AUTO_TEST_CASE(any_number_is_an_importance) {
  for (const char* text :
       {"ibfmc(memory=1kB)", "ibfmc(memory=1kB, importance_range='-1e300,1e300')",
        "ibfmc(memory=1kB, importance_levels='1,2,3')", "ibfh(memory=1kB, max=4)"}) {
    const unsigned max = static_cast<unsigned>(option_value(parameters_of(text), "max"));
    for (const double least : {kNan, -kInfinity, -1.7e308}) BOOST_TEST(level(text, least) == 1u);
    for (const double most : {kInfinity, 1.7e308}) BOOST_TEST(level(text, most) == max);
  }
  for (const char* text : {"ibf2c(memory=1kB)", "ibf2c(memory=1kB, importance_levels=-5)"}) {
    for (const double least : {kNan, -kInfinity, -1e9}) BOOST_TEST(level(text, least) == 3u);
    for (const double most : {kInfinity, 1e9}) BOOST_TEST(level(text, most) == 7u);
  }
}

BOOST_AUTO_TEST_CASE(wrong_options_are_refused) {
  for (const char* text :
       {"ibf2c(max=1)", "ibfmc(max=16)", "ibfmc(importance_range='1')",
        "ibfmc(importance_range='2,1')", "ibfmc(importance_range='1,1')",
        "ibfmc(importance_range='1,2,3')", "ibfmc(importance_range='nan,1')",
        "ibfmc(importance_range='-inf,1')", "ibfmc(importance_levels='1,2,2')",
        "ibfmc(importance_levels='1,2,3,4,5,6,7')", "ibf2c(importance_levels='1,2')",
        "ibfmc(importance_range='1,2', importance_levels='1')", "ibfh(delete=lru)",
        "ibfmc(memory=192, max=15, k=32, fpr=0.001)"})
    refusal(text);
}

BOOST_AUTO_TEST_CASE(definitions_round_trip) {
  for (const char* text :
       {"ibf2c()", "ibf2c(importance_levels=0.1)", "ibfmc(importance_levels='-1,0,1e10')",
        "ibfmc(importance_range='-0.5,3')", "ibfh(memory=100kB, fpr=0.05)", "ibfh(delete=random)",
        "ibfmc(max=15, importance_levels='1,2,3,4,5,6,7,8,9,10,11,12,13,14', slices=3)"})
    read_back(text);
}

// ---- the model ----------------------------------------------------------------------------------

namespace {

constexpr double kCells = 43690;
constexpr importance_model::Setting kPaper = {5, 10, kCells, importance_model::Deletion::random};

// The chain of Theorem III.1 state by state, as corrected.
double zeros_of_two_classes(double k, double p, unsigned max) {
  const unsigned h = max / 2;
  const double stay = p / (p + k / 2), down = p / (p + k);
  double sum = 0, a = 0;
  for (unsigned i = h + 1; i <= max; ++i) a += std::pow(stay, max - i) * (k / 2) / (p + k / 2);
  const double b = std::pow(stay, max - h);
  const double middle = (k / 2) / (p + k) * (1 - a + b);
  sum = a + middle;
  for (unsigned i = 1; i < h; ++i) sum += std::pow(down, h - i) * middle;
  return 1 - sum;
}

}  // namespace

BOOST_AUTO_TEST_CASE(limits_of_the_chain) {
  using namespace importance_model;
  BOOST_TEST(bench::zeros(two_classes(7), kPaper) == .1213, tolerance(.001));
  BOOST_TEST(bench::zeros(uniform(7), kPaper) == .1798, tolerance(.001));
  BOOST_TEST(bench::zeros(most_important(7), kPaper) == .0585, tolerance(.001));
  BOOST_TEST(bench::fpr_limit(two_classes(7), kPaper) == .52, tolerance(.01));
  BOOST_TEST(bench::fpr_limit(uniform(7), kPaper) == .37, tolerance(.01));
  BOOST_TEST(bench::fpr_limit(most_important(7), kPaper) == .74, tolerance(.01));
  for (const unsigned max : {2u, 3u, 7u, 8u, 15u}) {
    const double free = 10.0 * (1 - 5 / kCells);
    BOOST_TEST(bench::zeros(two_classes(max), kPaper) == zeros_of_two_classes(5, free, max),
               tolerance(1e-9));
    BOOST_TEST(
        bench::zeros(most_important(max), kPaper) == stable_model::stable_point(max, 5, 10, kCells),
        tolerance(1e-9));
    double v[kMaxLevels + 1], sum = 0;
    stationary(uniform(max), kPaper, v);
    for (unsigned j = 0; j <= max; ++j) sum += v[j];
    BOOST_TEST(sum == 1, tolerance(1e-12));
  }
}

BOOST_AUTO_TEST_CASE(false_negatives_of_the_chain) {
  using namespace importance_model;
  for (const Deletion deletion : {Deletion::random, Deletion::value}) {
    const Setting setting{5, 10, kCells, deletion};
    const double end = 1 - std::pow(1 - bench::zeros(uniform(7), setting), 5);
    for (unsigned level = 1; level <= 7; ++level) {
      BOOST_TEST(fnr(level, 0, uniform(7), setting) == 0);
      double last = 0;
      for (const double gap : {1., 10., 100., 1e3, 1e4, 1e5}) {
        const double rate = fnr(level, gap, uniform(7), setting);
        BOOST_TEST(rate >= last);
        if (level > 1) BOOST_TEST(rate <= fnr(level - 1, gap, uniform(7), setting) + 1e-12);
        last = rate;
      }
      // Once forgotten, the cells are like any others, up to terms of K/m in the limit.
      BOOST_TEST(fnr(level, 1e9, uniform(7), setting) == end, tolerance(1e-4));
    }
  }
  // All most important: Deng, Rafiei 2006 Eq. 16, except for cells that other keys had set.
  BOOST_TEST(fnr(7, 5000, most_important(7), kPaper) == stable_model::fnr(5000, 7, 5, 10, kCells),
             tolerance(1e-3));
}

namespace {

struct Limit {
  double zeros, fpr;
};

// Distinct keys of even importance until the filter is stable, then the means over twice as many.
// The share of zeros is measured every m/P elements, when most cells have changed.
Limit simulate(const std::string& definition, unsigned classes, std::uint64_t elements,
               bool all_important = false) {
  Filter filter(definition);
  std::mt19937_64 random(3);
  double zeros = 0, measured = 0;
  std::uint64_t positives = 0;
  for (std::uint64_t i = 0; i < 3 * elements; ++i) {
    const double importance = all_important ? 1e9 : static_cast<double>(1 + random() % classes);
    const bool seen = filter.insert(with_importance(i, importance));
    if (i < elements) continue;
    positives += seen;
    if (i % 4000 != 0) continue;
    zeros += share_of_zeros(filter);
    ++measured;
  }
  BOOST_TEST(filter.is_valid());
  return {zeros / measured, static_cast<double>(positives) / (2.0 * static_cast<double>(elements))};
}

void check_limit(const Limit& found, double zeros, double k, double m, std::uint64_t elements) {
  // Snapshots at least m/P apart count as independent, which they nearly are.
  const double snapshots = 2.0 * static_cast<double>(elements) / 4000;
  const double deviation = std::sqrt(zeros * (1 - zeros) / m / snapshots);
  BOOST_TEST(std::fabs(found.zeros - zeros) < 6 * deviation,
             found.zeros << " instead of " << zeros << ", standard error " << deviation);
  const double fpr = std::pow(1 - zeros, k);
  // Besides the count, the level of the cells varies.
  const double spread = std::hypot(std::sqrt(fpr * (1 - fpr) / 2 / static_cast<double>(elements)),
                                   fpr * k * deviation / (1 - zeros));
  BOOST_TEST(std::fabs(found.fpr - fpr) < 6 * spread,
             found.fpr << " instead of " << fpr << ", standard error " << spread);
}

}  // namespace

// 16 KB of cells, as in table III.
BOOST_AUTO_TEST_CASE(simulations_meet_the_limits) {
  constexpr std::uint64_t elements = 150000;  // until it is stable
  const std::string paper = "(memory=16512, p=10";
  using namespace importance_model;
  check_limit(simulate("ibf2c" + paper + ", importance_range='1,2')", 2, elements), .1213, 5,
              kCells, elements);
  check_limit(simulate("ibfmc" + paper + ")", 7, elements), .1798, 5, kCells, elements);
  check_limit(simulate("ibf2c" + paper + ")", 7, elements, true), .0585, 5, kCells, elements);
  check_limit(simulate("ibfmc" + paper + ")", 7, elements, true), .0585, 5, kCells, elements);
  const Setting by_value{5, 10, kCells, Deletion::value};
  check_limit(simulate("ibfh" + paper + ")", 7, elements), bench::zeros(uniform(7), by_value), 5,
              kCells, elements);
  check_limit(simulate("ibfh" + paper + ")", 7, elements, true),
              bench::zeros(most_important(7), by_value), 5, kCells, elements);
  check_limit(simulate("ibf2c" + paper + ", delete=value, importance_range='1,2')", 2, elements),
              bench::zeros(two_classes(7), by_value), 5, kCells, elements);
}

BOOST_AUTO_TEST_CASE(derived_parameters_keep_the_promise) {
  for (const char* kind : {"ibf2c", "ibfmc", "ibfh"})
    for (const char* rest : {"", ", max=3", ", max=15, k=8", ", delete=value", ", delete=random"})
      for (const double fpr : {.5, .1, .01, .001}) {
        const std::string text =
            std::string(kind) + "(memory=64kB, fpr=" + std::to_string(fpr) + rest + ")";
        const Parameters p = parameters_of(text);
        BOOST_TEST(find_ops(p.kind)->fpr_bound(p) <= fpr * 1.001, text);
      }
  BOOST_TEST(find_ops(Kind::ibfmc)->fpr_bound(parameters_of("ibfmc()")) <= .01001);
  // The paper's own setting does not promise that.
  const Parameters paper = parameters_of("ibfmc(memory=16512, k=5, p=10, max=7)");
  BOOST_TEST(find_ops(paper.kind)->fpr_bound(paper) == .74, tolerance(.01));
}

// What the model tells of a filter that is stable on stream 0, 1 or 2 of those below. On stream 2
// ten keys, whose cells are always set, come between any two others.
double stable_rate(Filter& filter, unsigned stream) {
  const Parameters& p = filter.parameters();
  const double m = static_cast<double>(cells_of(filter).size()), k = 5,
               hot = stream == 2 ? 10 * k / m : 0;
  const importance_model::Setting setting{
      k, static_cast<double>(option_value(p, "p")) * (stream == 2 ? 2 : 1), m,
      static_cast<importance_model::Deletion>(option_value(p, "delete"))};
  double v[importance_model::kMaxLevels + 1];
  importance_model::stationary(
      stream == 1 ? importance_model::uniform(7) : importance_model::most_important(7), setting, v);
  return std::pow(hot + (1 - hot) * (1 - v[0]), k);
}

// With other hashes one of the 36 checks fails by chance with odds of 4e-5.
BOOST_AUTO_TEST_CASE(the_bound_holds_on_any_stream) {
  for (const char* text : {"ibf2c(memory=8kB, fpr=0.1)", "ibfmc(memory=8kB, fpr=0.1)",
                           "ibfh(memory=8kB, fpr=0.1)", "ibf2c(memory=8kB, fpr=0.1, delete=value)"})
    for (const unsigned stream : {0u, 1u, 2u, 3u}) {
      Filter filter(text);
      std::mt19937_64 random(stream);
      Errors all, late;
      for (std::uint64_t i = 0; i < scaled(30000); ++i) {
        // All distinct and important; the same with even importance; half of them a few hot keys;
        // bursts of unimportant keys between important ones.
        const bool hot = stream == 2 && i % 2 == 0;
        double importance = stream == 1 ? static_cast<double>(1 + random() % 7) : 7;
        if (stream == 3 && i / 500 % 2 == 0) importance = 1;
        const bool seen =
            filter.insert(with_importance(hot ? random() % 10 : 1000 + i, importance));
        if (hot) continue;
        all.count(false, seen);
        if (i >= 15000) late.count(false, seen);  // it is stable
      }
      // Neighbours in the stream depend on the same cells: the count varies more.
      BOOST_TEST(all.positives <= 4 * most(all.fresh / 4, .1), text << " stream " << stream);
      if (late.fresh == 0 || stream == 3) continue;
      if (stream == 1 && filter.parameters().kind == Kind::ibf2c) continue;
      const double rate = stable_rate(filter, stream);
      BOOST_TEST(late.positives <= 4 * most(late.fresh / 4, rate), text << " stream " << stream);
      BOOST_TEST(late.positives >= 4 * least(late.fresh / 4, rate), text << " stream " << stream);
    }
}

// A key is inserted, `gap` others follow, and it is tested.
BOOST_AUTO_TEST_CASE(false_negatives_by_importance) {
  constexpr std::uint64_t gap = 1500, rounds = 50000;
  for (const char* text : {"ibfmc(memory=4224, p=10)", "ibfh(memory=4224, p=10)",
                           "ibf2c(memory=4224, p=10, importance_range='1,7')"}) {
    Filter filter(text);
    const bool two = filter.parameters().kind == Kind::ibf2c;
    std::mt19937_64 random(5);
    std::vector<double> importance(rounds + gap);
    std::vector<double> count(8), missed(8);
    for (std::uint64_t i = 0; i < importance.size(); ++i) {
      importance[i] = static_cast<double>(two ? 1 + random() % 2 * 6 : 1 + random() % 7);
      filter.insert(with_importance(i, importance[i]));
      if (i < 10 * gap) continue;  // until it is stable
      const unsigned of = static_cast<unsigned>(importance[i - gap]);
      ++count[of];
      missed[of] += !filter.test(key(i - gap));
    }
    const double m = static_cast<double>(cells_of(filter).size());
    const importance_model::Setting setting{
        5, 10, m,
        static_cast<importance_model::Deletion>(option_value(filter.parameters(), "delete"))};
    for (unsigned of = 1; of <= 7; ++of) {
      if (count[of] == 0) continue;
      const unsigned start = two && of == 1 ? 3 : of;
      const double rate = importance_model::fnr(
          start, gap, two ? importance_model::two_classes(7) : importance_model::uniform(7),
          setting);
      // Neighbours in the stream share cells and their fate: the counts vary more.
      BOOST_TEST(missed[of] <= 3 * most(count[of] / 3, rate),
                 text << " level " << of << ": " << missed[of] / count[of] << ", model " << rate);
      BOOST_TEST(missed[of] >= 3 * least(count[of] / 3, rate),
                 text << " level " << of << ": " << missed[of] / count[of] << ", model " << rate);
    }
    BOOST_TEST((find_ops(filter.parameters().kind)->fnr_at(filter.parameters(), gap) > 0));
  }
}

// ---- the rest -----------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(merged_cells_are_the_larger_ones) {
  for (const char* text : {"ibf2c(memory=2kB)", "ibfmc(memory=2kB, max=2)", "ibfh(memory=2kB)"}) {
    Filter a(text), b(text);
    for (std::uint64_t i = 0; i < 300; ++i) {
      a.insert(with_importance(i, static_cast<double>(i % 8)));
      b.insert(with_importance(i + 150, static_cast<double>(i % 5)));
    }
    const std::vector<unsigned> left = cells_of(a), right = cells_of(b);
    BOOST_REQUIRE(a.merge(b));
    const std::vector<unsigned> both = cells_of(a);
    for (std::size_t i = 0; i < both.size(); ++i)
      BOOST_REQUIRE_EQUAL(both[i], std::max(left[i], right[i]));
    BOOST_TEST(a.is_valid());
    BOOST_TEST(a.slice().state->insertions == 600u);
    BOOST_TEST(a.slice().state->inserted_new <= 600u);
  }
}

BOOST_AUTO_TEST_CASE(damaged_bytes_are_found_or_harmless) {
  for (const char* text : {"ibf2c(memory=1kB)", "ibfmc(memory=1kB, max=5, k=3)",
                           "ibfh(memory=2kB, importance_levels='1,2', slices=2)"}) {
    Filter sound(text);
    for (std::uint64_t i = 0; i < 500; ++i)
      sound.insert(with_importance(i, static_cast<double>(i % 9)));
    const auto use = [](Filter& filter) {
      for (std::uint64_t i = 0; i < 5; ++i) filter.insert(with_importance(i, 3));
    };
    BOOST_TEST(damage(sound, scaled(20000), use, 0) > scaled(20000) / 2);
  }
}

BOOST_AUTO_TEST_SUITE_END()
