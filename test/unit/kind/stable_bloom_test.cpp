// The Stable Bloom Filter, element by element: a plain version of Algorithm 1 of Deng, Rafiei 2006,
// with the same positions and random starts, must give the same answers, cells and counts. And its
// rates against the formulas of the paper.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/base/hash.hpp"
#include "core/model/stable_model.hpp"
#include "unit/support/filters.hpp"
#include "unit/support/kind_checks.hpp"
#include "unit/support/statistics.hpp"
#include "unit/support/streams.hpp"

using namespace streamfilter;
using namespace unit;

BOOST_AUTO_TEST_SUITE(stable_bloom)

namespace {

class PlainStableBloom {
 public:
  PlainStableBloom(const Parameters& p, std::uint64_t random)
      : max_(static_cast<int>(option_value(p, "max"))),
        k_(static_cast<unsigned>(option_value(p, "k"))),
        p_(option_value(p, "p")),
        random_(random) {
    const std::uint64_t cell_bits = option_value(p, "cell_bits"),
                        bits = (p.slice_bytes - sizeof(SliceState)) * 8;
    cells_.resize((cell_bits == 3 ? bits - 8 : bits) / cell_bits);
  }

  bool insert(std::uint64_t hash) {
    if (std::exchange(is_empty_, false)) random_ = mix64(random_ ^ hash);
    const std::uint64_t m = cells_.size();
    bool duplicate = true;
    for (unsigned i = 0; i < k_; ++i)
      if (cells_[position(hash, i, m)] == 0) duplicate = false;
    const std::uint64_t start = random_below(random_, m);
    for (std::uint64_t j = 0; j < p_; ++j) {
      int& cell = cells_[(start + j) % m];
      if (cell >= 1) --cell;
    }
    for (unsigned i = 0; i < k_; ++i) cells_[position(hash, i, m)] = max_;
    ++insertions;
    inserted_new += !duplicate;
    return duplicate;
  }

  bool erase(std::uint64_t) { return false; }  // it cannot
  const std::vector<int>& cells() const { return cells_; }
  std::uint64_t insertions = 0, inserted_new = 0;

 private:
  std::vector<int> cells_;
  int max_;
  unsigned k_;
  std::uint64_t p_, random_;
  bool is_empty_ = true;
};

// The cell by the documented layout, bit by bit.
int cell_at(Slice slice, std::uint64_t i, std::uint64_t cell_bits) {
  int value = 0;
  for (std::uint64_t b = 0; b < cell_bits; ++b) {
    const std::uint64_t bit = i * cell_bits + b;
    value |= (slice.body()[bit / 8] >> bit % 8 & 1) << b;
  }
  return value;
}

void check_equal(Filter& filter, const PlainSlices<PlainStableBloom>& plain) {
  double non_zero = 0, size = 0;
  for (std::uint32_t s = 0; s < filter.parameters().slices; ++s) {
    const Slice slice = filter.slice(s);
    std::uint64_t differences = 0;
    for (std::uint64_t i = 0; i < plain[s].cells().size(); ++i) {
      const int cell = plain[s].cells()[i];
      differences += cell != cell_at(slice, i, option_value(filter.parameters(), "cell_bits"));
      non_zero += cell != 0;
    }
    size += static_cast<double>(plain[s].cells().size());
    BOOST_TEST(differences == 0u);
    BOOST_TEST(slice.state->insertions == plain[s].insertions);
    BOOST_TEST(slice.state->inserted_new == plain[s].inserted_new);
  }
  const Estimate estimate = filter.estimate();
  BOOST_TEST(estimate.fill == non_zero / size, tolerance(1e-12));
  BOOST_TEST(filter.is_valid());  // recounts the cells, too
}

// An element is remembered at once, too: see compare().
void compare_with_plain(const std::string& definition) {
  BOOST_TEST_CONTEXT(definition) {
    Filter filter(definition);
    PlainSlices<PlainStableBloom> plain(filter);
    std::mt19937_64 random(7);
    for (unsigned part = 0; part < 6; ++part) {
      compare(filter, plain, 1000, false, [&](auto&) { return random() % 500; });
      check_equal(filter, plain);
    }
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(it_is_algorithm_1_for_every_max_and_cell_width) {
  for (unsigned max = 1; max <= 15; ++max)
    for (unsigned cell_bits = 1; cell_bits <= 4; ++cell_bits)
      if (max >> cell_bits == 0)
        compare_with_plain("sbf(memory=1kB, fpr=0.1, max=" + std::to_string(max) +
                           ", cell_bits=" + std::to_string(cell_bits) + ")");
}

BOOST_AUTO_TEST_CASE(it_is_algorithm_1_for_extreme_k_and_p) {
  for (const char* options : {
           "k=1, p=1", "k=32, p=1", "k=1, p=512", "k=32, p=511",     // 512 cells
           "max=3, k=2, p=100", "max=3, p=1, k=1", "max=3, p=256",   // 256
           "max=7, k=2, p=100", "max=7, p=1, k=20", "max=7, p=168",  // 168
           "max=15, k=2, p=77", "max=15, p=1, k=5", "max=15, p=128"  // 128
       })
    compare_with_plain(std::string("sbf(memory=192, ") + options + ")");
}

BOOST_AUTO_TEST_CASE(every_slice_is_algorithm_1_for_its_share_of_the_keys) {
  compare_with_plain("sbf(memory=4kB, fpr=0.1, slices=3)");
  compare_with_plain("sbf(memory=5000, fpr=0.1, max=3, slices=7, seed=99)");
}

// Deng, Rafiei 2006 §3.6: within fewer elements than Max no cell can have fallen to zero.
BOOST_AUTO_TEST_CASE(a_repeat_within_max_elements_is_never_missed) {
  Filter filter("sbf(memory=1kB, max=7, k=6, p=60)");
  for (std::uint64_t number = 0; number < 20000; ++number) {
    filter.insert(key(number));
    if (number >= 6) BOOST_TEST_REQUIRE(filter.test(key(number - 6)));
  }
}

BOOST_AUTO_TEST_CASE(testing_changes_nothing) {
  const Filter filter = filled("sbf(memory=2kB, max=3)", 1000);
  const std::vector<unsigned char> before = filter.bytes();
  count_known(filter, 0, 2000);
  BOOST_TEST((filter.bytes() == before));
}

BOOST_AUTO_TEST_CASE(equal_streams_give_equal_filters) {
  Filter a("sbf(memory=3kB, max=7)"), b("sbf(memory=3kB, max=7)"),
      other("sbf(memory=3kB, max=7, seed=1)");
  for (std::uint64_t number = 0; number < 5000; ++number)
    for (Filter* filter : {&a, &b, &other}) filter->insert(key(number % 700));
  BOOST_TEST((a.bytes() == b.bytes()));
  // The seed also moves the random starts, so that nobody can foresee which keys are forgotten.
  BOOST_TEST(checksum(a.header()) != checksum(other.header()));
  BOOST_TEST(slice_at(a.header(), 0).state->random != slice_at(other.header(), 0).state->random);
}

// ---- rates --------------------------------------------------------------------------------------

namespace {

struct Setting {
  unsigned max, k, p;
  unsigned cell_bits() const { return max <= 1 ? 1 : max <= 3 ? 2 : max <= 7 ? 3 : 4; }
  std::string text(const std::string& rest) const {
    return "sbf(max=" + std::to_string(max) + ", k=" + std::to_string(k) +
           ", p=" + std::to_string(p) + ", " + rest + ")";
  }
};
// The paper's settings for FPS 10 % and 1 % (P rounded down).
constexpr Setting kSettings[] = {{1, 2, 4}, {1, 3, 10}, {3, 3, 13}, {7, 3, 29}, {15, 6, 141}};

double cells_of(const Setting& setting, double memory) {
  return (memory - double{kStoredHeader} - sizeof(SliceState)) * 8 / setting.cell_bits();
}

}  // namespace

// A stream of distinct keys is the case in which Eq. 7 and 8 are exact (Corollary 4). False
// positives are not quite independent: their variance was measured as .79 (Max 7) to 1.01 (K 7) of
// the binomial one.
BOOST_AUTO_TEST_CASE(distinct_keys_reach_the_stable_point_and_the_bound) {
  for (const Setting& s : kSettings) BOOST_TEST_CONTEXT(s.text("slices=1")) {
      Filter filter(s.text("memory=16kB"));
      const double m = cells_of(s, 16384);
      const std::uint64_t looks = scaled(3000),
                          warm_up = static_cast<std::uint64_t>(10 * s.max * m / s.p);
      insert_keys(filter, 0, warm_up);
      double false_positives = 0, zeros = 0;
      for (std::uint64_t look = 0; look < looks; ++look) {
        const std::uint64_t number = warm_up + look * 1000;
        false_positives += insert_keys(filter, number, number + 1000);
        zeros += (1 - filter.estimate().fill) / looks;
      }
      const double point = stable_model::stable_point(s.max, s.k, s.p, m);
      const double bound = stable_model::fpr_bound(s.max, s.k, s.p, m);
      BOOST_TEST(std::fabs(zeros / point - 1) < 0.02);
      check_rate(false_positives, looks * 1000, bound);
    }
}

// Corollary 5: before the filter is stable there are fewer.
BOOST_AUTO_TEST_CASE(the_bound_holds_from_the_first_element_on) {
  for (const Setting& s : kSettings) BOOST_TEST_CONTEXT(s.text("slices=1")) {
      Filter filter(s.text("memory=64kB"));
      const double bound = filter.fpr_bound();
      double false_positives = 0;
      for (std::uint64_t number = 0; number < 100000; ++number) {
        false_positives += filter.insert(key(number));
        const double n = static_cast<double>(number + 1);
        if ((number + 1) % 1000 == 0) BOOST_TEST(false_positives <= most(n, bound));
      }
    }
}

// The derived parameters keep fpr on ten million draws from some million keys, at a hundred points
// on the way. P is rounded up, and the filter starts empty: no allowance for chance is needed.
BOOST_AUTO_TEST_CASE(fpr_is_kept_at_every_checkpoint_of_a_uniform_stream) {
  for (const auto& [text, universe] : {std::pair{"sbf(memory=64kB, fpr=0.01)", 5000000u},
                                       {"sbf(memory=1MB, fpr=0.1, max=3)", 20000000u},
                                       {"sbf(memory=1MB, fpr=0.001, slices=16)", 2000000u}})
    BOOST_TEST_CONTEXT(text) {
      Filter filter(text);
      UniformStream stream(universe, 1);
      Errors errors;
      const std::uint64_t rows = scaled(10000000);
      for (std::uint64_t row = 1; row <= rows; ++row) {
        const Element element = stream.next();
        errors.count(stream.is_repeat(), filter.insert(element));
        if (row % (rows / 100) == 0)
          BOOST_TEST(errors.fpr() <= filter.parameters().fpr, "row " << row);
      }
    }
}

// A key, then `gap` others, then the key again: Eq. 16 says how often it is missed. Keys are looked
// up at some distance from each other, so the trials are as good as independent.
BOOST_AUTO_TEST_CASE(keys_are_missed_as_often_as_eq_16_says) {
  for (const Setting& s : kSettings) {
    Filter filter(s.text("memory=128kB, slices=1"));
    const double m = cells_of(s, 131072);
    for (const double hits : {0.1, 0.5, 1., 1.5}) {  // decrements of a cell, in units of Max
      const std::uint64_t gap = static_cast<std::uint64_t>(hits * s.max * m / s.p);
      const double expected =
          find_ops(Kind::sbf)->fnr_at(filter.parameters(), static_cast<double>(gap));
      const std::uint64_t rows = 5 * gap, stride = std::max<std::uint64_t>(1, gap / 2000);
      static std::uint64_t number = 0;
      const std::uint64_t first = number;
      double trials = 0, misses = 0;
      while (number < first + rows) {
        filter.insert(key(number++));
        if (number < first + gap + 1 || number % stride != 0) continue;
        ++trials;
        misses += !filter.test(key(number - gap - 1));
      }
      BOOST_TEST_CONTEXT(s.text("slices=1") << " gap " << gap << " Eq. 16 " << expected
                                            << " measured " << misses / trials) {
        check_rate(misses, trials, expected);
      }
    }
  }
}

// 64 slices of 4 kB are the filter that one slice of 256 kB is: the same rates, whether a key
// repeats or not.
BOOST_AUTO_TEST_CASE(slices_change_no_rate) {
  for (const char* options : {"fpr=0.1, max=1", "fpr=0.05, max=3"}) {
    const auto memory = [](std::size_t slices) {
      const std::size_t cells = 262144, bytes = kStoredHeader + slices * sizeof(SliceState) + cells;
      return ", slices=" + std::to_string(slices) + ", memory=" + std::to_string(bytes) + ")";
    };
    const std::string text = std::string("sbf(") + options;
    Filter whole(text + memory(1)), sliced(text + memory(64));
    UniformStream stream(1000000, 2);
    Errors of_whole, of_sliced;
    for (std::uint64_t row = 0; row < scaled(4000000); ++row) {
      const Element element = stream.next();
      of_whole.count(stream.is_repeat(), whole.insert(element));
      of_sliced.count(stream.is_repeat(), sliced.insert(element));
    }
    BOOST_TEST(same_rate(of_whole.positives, of_whole.fresh, of_sliced.positives, of_sliced.fresh));
    BOOST_TEST(
        same_rate(of_whole.negatives, of_whole.repeats, of_sliced.negatives, of_sliced.repeats));
  }
}

// The estimate of the current rate from the fill alone.
BOOST_AUTO_TEST_CASE(the_estimated_rate_is_the_measured_one) {
  const Filter filter = filled("sbf(memory=64kB, fpr=0.1, slices=4)", 200000);
  check_rate(count_known(filter, 1000000, 2000000), 1000000, filter.estimate().fpr);
}

// Keys reported as new are the distinct ones, apart from errors; here there are none.
BOOST_AUTO_TEST_CASE(the_distinct_estimate_counts_what_was_new) {
  Filter filter("sbf(memory=1MB, fpr=0.0001)");
  for (std::uint64_t i = 0; i < 30000; ++i) filter.insert(key(i / 3));
  BOOST_TEST(filter.estimate().distinct == 10000);
}

BOOST_AUTO_TEST_SUITE_END()
