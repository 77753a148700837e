// Kind ell: registers against a literal reference, how right the count is, and merging.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "core/model/exa_log_log_model.hpp"
#include "unit/support/filters.hpp"
#include "unit/support/streams.hpp"

using namespace streamfilter;
using namespace unit;
using namespace exa_log_log_model;

BOOST_AUTO_TEST_SUITE(exa_log_log)

namespace {

// A register as the set of update values that came.
std::uint32_t register_of(const std::set<unsigned>& values) {
  if (values.empty()) return 0;
  const unsigned largest = *values.rbegin();
  std::uint32_t bits = largest << kHistory;
  for (const unsigned value : values)
    if (value < largest && largest - value <= kHistory)
      bits |= 1u << (kHistory - (largest - value));
  return bits;
}

double count(const Filter& filter) {
  bool full;
  return distinct_keys(filter.header(), full);
}

double counted(const char* text, std::uint64_t from, std::uint64_t to) {
  Filter filter(text);
  for (std::uint64_t i = from; i < to; ++i) filter.insert(key(i));
  return count(filter);
}

}  // namespace

BOOST_AUTO_TEST_CASE(update_values_have_their_probabilities) {
  std::mt19937_64 random(1);
  std::map<unsigned, double> share;
  constexpr unsigned kDraws = 1 << 20;
  for (unsigned i = 0; i < kDraws; ++i) share[update_value(random())] += 1.0 / kDraws;
  for (unsigned value = 1; value <= 24; ++value) {
    const double expected = std::ldexp(1, -static_cast<int>(3 + (value - 1) / 4));
    BOOST_TEST(std::fabs(share[value] - expected) < 5 * std::sqrt(expected / kDraws), value);
  }
  BOOST_TEST(update_value(~std::uint64_t{0}) == 4u);
  BOOST_TEST(update_value(0) == kMaxValue - 3);
  BOOST_TEST(update_value(3) == kMaxValue);
}

BOOST_AUTO_TEST_CASE(registers_are_sets_of_the_latest_values) {
  std::mt19937_64 random(2);
  for (unsigned round = 0; round < 2000; ++round) {
    const unsigned low = round % 3 == 0 ? 1 : 1 + static_cast<unsigned>(random() % 200);
    std::set<unsigned> one, other, both;
    std::uint32_t a = 0, b = 0;
    for (unsigned i = 0; i < round % 40; ++i) {
      const unsigned value = low + static_cast<unsigned>(random() % 50);
      auto& values = random() % 2 ? one : other;
      std::uint32_t& bits = &values == &one ? a : b;
      values.insert(value);
      both.insert(value);
      bits = updated(bits, value);
      BOOST_REQUIRE_EQUAL(updated(bits, value), bits);
      BOOST_REQUIRE(is_possible(bits));
    }
    BOOST_REQUIRE_EQUAL(a, register_of(one));
    BOOST_REQUIRE_EQUAL(b, register_of(other));
    BOOST_REQUIRE_EQUAL(merged(a, b), register_of(both));
    BOOST_REQUIRE_EQUAL(merged(b, a), register_of(both));
  }
  BOOST_TEST(!is_possible(1));
  BOOST_TEST(!is_possible((1u << kHistory) + 1));
  BOOST_TEST(!is_possible((kMaxValue + 1) << kHistory));
}

// The likelihood, value by value.
BOOST_AUTO_TEST_CASE(a_new_key_changes_as_many_registers_as_they_say) {
  Filter filter("ell(memory=8kB, slices=1)");
  for (unsigned keys : {0, 10, 1000, 30000}) {
    for (unsigned i = 0; i < keys; ++i) filter.insert(key(i + 1000 * keys));
    unsigned repeats = 0;
    constexpr unsigned kTests = 20000;
    for (unsigned i = 0; i < kTests; ++i) repeats += filter.test(key(1000000000 + i));
    const double fpr = totals(filter.header()).estimate.fpr;
    BOOST_TEST(std::fabs(repeats / double(kTests) - fpr) < 5 * std::sqrt((fpr + 1e-4) / kTests),
               repeats << " " << fpr);
  }
}

// The relative error over 60 filters, at all numbers of keys: that of the paper, less where there
// are few for each register; and no bias beyond chance.
BOOST_AUTO_TEST_CASE(as_right_as_the_paper_says, *boost::unit_test::label("long")) {
  constexpr unsigned kTrials = 60;
  for (const std::uint64_t keys : {100, 1000, 5000, 20000, 300000}) {
    double sum = 0, squares = 0;
    for (std::uint64_t i = 0; i < kTrials; ++i) {
      const double off =
          counted("ell(memory=8kB)", i << 32, (i << 32) + keys) / static_cast<double>(keys) - 1;
      sum += off;
      squares += off * off;
    }
    const double stated = relative_error((8192 - 512 - 64) * 8),
                 error = std::sqrt(squares / kTrials), bias = sum / kTrials;
    BOOST_TEST(error < stated * 1.3, keys << ": " << error << " of " << stated);
    BOOST_TEST(std::fabs(bias) < 4 * stated / std::sqrt(kTrials), keys << ": bias " << bias);
    if (keys == 300000) BOOST_TEST(error > stated * .7);
  }
}

BOOST_AUTO_TEST_CASE(few_are_counted_nearly_exactly) {
  BOOST_TEST(counted("ell(memory=1MB)", 0, 0) == 0);
  BOOST_TEST(std::round(counted("ell(memory=1MB)", 0, 1)) == 1);
  BOOST_TEST(std::round(counted("ell(memory=1MB)", 0, 10)) == 10);
  BOOST_TEST(std::fabs(counted("ell(memory=1MB)", 0, 1000) - 1000) < 3);
}

BOOST_AUTO_TEST_CASE(merged_as_if_one_had_seen_all) {
  for (const char* text : {"ell(memory=4kB)", "ell(memory=200kB, slices=3)"}) {
    Filter a(text), b(text), all(text);
    for (unsigned i = 0; i < 20000; ++i) {
      if (i % 3 != 0) a.insert(key(i));
      if (i % 3 != 1) b.insert(key(i));
      all.insert(key(i));
    }
    Problem problem;
    BOOST_REQUIRE(merge(a.header(), b.header(), problem));
    BOOST_TEST(count(a) == count(all));
    for (std::uint32_t i = 0; i < a.parameters().slices; ++i)
      BOOST_TEST(std::memcmp(slice_at(a.header(), i).body(), slice_at(all.header(), i).body(),
                             slice_at(all.header(), i).bytes) == 0);
    BOOST_TEST(a.is_valid());
    for (unsigned i = 0; i < 20000; ++i) BOOST_REQUIRE(a.test(key(i)));
  }
}

BOOST_AUTO_TEST_CASE(it_promises_nothing_of_false_positives) {
  Definition definition;
  Problem problem;
  std::size_t used;
  const char text[] = "ell(memory=4kB, fpr=0.01)";
  BOOST_REQUIRE(parse_definition(text, sizeof text - 1, definition, used, problem));
  BOOST_TEST(!complete(definition, problem));
  BOOST_TEST((problem.error == Error::conflict));
}

BOOST_AUTO_TEST_SUITE_END()
