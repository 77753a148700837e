// The Stable Bloom Filter, element by element. A plain version of Algorithm 1 of Deng, Rafiei 2006,
// with the same positions and random starts, must give the same answers, cells and counts.
#include <boost/test/unit_test.hpp>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/base/hash.hpp"
#include "unit/support/filters.hpp"
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

void check_equal(Filter& filter, const std::vector<PlainStableBloom>& plain) {
  double non_zero = 0, size = 0;
  for (std::uint32_t s = 0; s < plain.size(); ++s) {
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
  BOOST_TEST(estimate.fill == non_zero / size, boost::test_tools::tolerance(1e-12));
  BOOST_TEST(filter.is_valid());  // recounts the cells, too
}

void compare_with_plain(const std::string& definition) {
  BOOST_TEST_CONTEXT(definition) {
    Filter filter(definition);
    const Parameters& p = filter.parameters();
    std::vector<PlainStableBloom> plain;
    for (std::uint32_t s = 0; s < p.slices; ++s)
      plain.emplace_back(p, filter.slice(s).state->random);

    std::mt19937_64 random(7);
    for (unsigned i = 0; i < 6000; ++i) {
      const Element element = key(random() % 500);
      PlainStableBloom& twin = plain[slice_of(p, element.hash)];
      const bool tested = filter.test(element);
      const bool expected = twin.insert(element.hash);
      BOOST_REQUIRE(tested == expected);
      BOOST_REQUIRE(filter.insert(element) == expected);
      if (i % 1000 == 0) check_equal(filter, plain);
    }
    check_equal(filter, plain);
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
    compare_with_plain(std::string("sbf(memory=640, ") + options + ")");
}

BOOST_AUTO_TEST_CASE(every_slice_is_algorithm_1_for_its_share_of_the_keys) {
  compare_with_plain("sbf(memory=4kB, fpr=0.1, slices=3)");
  compare_with_plain("sbf(memory=5000, fpr=0.1, max=3, slices=7, seed=99)");
}

BOOST_AUTO_TEST_CASE(an_element_is_remembered_at_once) {
  for (const char* text : {"sbf(memory=2kB)", "sbf(memory=2kB, max=3)", "sbf(memory=2kB, max=7)",
                           "sbf(memory=2kB, max=15)"}) {
    Filter filter(text);
    for (std::uint64_t number = 0; number < 5000; ++number) {
      filter.insert(key(number));
      BOOST_TEST_REQUIRE(filter.test(key(number)), text);
    }
  }
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
  Filter filter("sbf(memory=2kB, max=3)");
  for (std::uint64_t number = 0; number < 1000; ++number) filter.insert(key(number));
  const std::vector<unsigned char> before = filter.bytes();
  for (std::uint64_t number = 0; number < 2000; ++number) filter.test(key(number));
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

BOOST_AUTO_TEST_SUITE_END()
