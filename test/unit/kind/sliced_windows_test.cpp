// Sliced windows: all places of a key remember it equally long.
#include <boost/test/unit_test.hpp>
#include <random>
#include <string>
#include <vector>
#include "unit/support/rates.hpp"
#include "unit/support/slicings.hpp"
#include "unit/support/statistics.hpp"

using namespace streamfilter;
using namespace unit;

BOOST_AUTO_TEST_SUITE(slicing_windows)

namespace {

constexpr std::int64_t kSecond = 1000000;

// A key is found for a window of 60 s and no more than one tick.
constexpr std::int64_t kFound = 61;

Element in_second(std::uint64_t number, std::int64_t second) {
  return at(number, second * kSecond);
}

std::string timer(const std::string& slicing, const std::string& more = "k=6") {
  return "timer(memory=400kB, window='60 s', tick='1 s', " + more + ", " + slicing + ")";
}

}  // namespace

// Definition 4, against a map of the last acceptance. At this rate less than one error is expected.
BOOST_AUTO_TEST_CASE(a_key_is_remembered_for_one_window_in_all_its_places) {
  for (const std::string& slicing : kSlicings)
    for (const std::string more : {"k=6", "k=6, grow=density", "k=6, grow=cardinality"}) {
      Filter filter(timer(slicing, more));
      std::vector<std::int64_t> accepted(500, -1000);
      std::mt19937_64 random(3);
      for (std::int64_t second = 0; second < 600; ++second)
        for (unsigned i = 0; i < 4; ++i) {
          const std::uint64_t number = scale(random(), accepted.size());
          const bool repeat = second - accepted[number] < kFound;
          BOOST_REQUIRE(filter.test(in_second(number, second)) == repeat);
          BOOST_REQUIRE(filter.insert(in_second(number, second)) == repeat);
          if (!repeat) accepted[number] = second;
        }
      BOOST_TEST(filter.is_valid(), timer(slicing, more));
    }
}

// A host may remember a key later than it has tested it, and the timers that make the key look seen
// can end before that. In tiny filters every key looks seen after a while.
BOOST_AUTO_TEST_CASE(a_key_that_was_found_new_stays_for_its_window) {
  std::vector<std::string> slicings(std::begin(kSlicings), std::end(kSlicings));
  slicings.push_back("slices=1");
  for (const std::string& slicing : slicings) {
    Filter filter("timer(memory=8kB, window='60 s', tick='1 s', k=6, " + slicing + ")");
    std::uint64_t others = 1000;
    while (!filter.test(in_second(1, 100))) filter.insert(in_second(++others, 100));
    insert_new(filter.header(), in_second(1, 130));
    BOOST_TEST(filter.test(in_second(1, 130 + kFound - 2)), slicing);
    BOOST_TEST(filter.is_valid(), slicing);
    insert_new(filter.header(), in_second(1, 131));
    BOOST_TEST(filter.test(in_second(1, 131 + kFound - 2)), slicing);
  }
}

// A late event sets its timers to the rest of its window, an early one to no more than a window.
BOOST_AUTO_TEST_CASE(late_events_end_in_their_own_time) {
  for (const std::string& slicing : kSlicings) {
    Filter filter(timer(slicing));
    for (std::uint64_t i = 0; i < 500; ++i)
      filter.insert(in_second(1000 + i, 100));  // all slices are at 100
    BOOST_TEST(!filter.insert(in_second(1, 70)));
    BOOST_TEST(filter.test(in_second(1, 70 + kFound - 1)));
    BOOST_TEST(!filter.test(in_second(1, 70 + kFound)));
    BOOST_TEST(
        !filter.insert(in_second(2, 100 - kFound)));  // late by a window: nothing to remember
    BOOST_TEST(!filter.test(in_second(2, 100)));
  }
}

// The timer of a place that another key has set last is not lowered by a late key.
BOOST_AUTO_TEST_CASE(a_late_key_does_not_shorten_what_another_has_set) {
  for (const std::string& slicing : kSlicings) {
    Filter filter("timer(memory=8kB, window='60 s', tick='1 s', k=6, " + slicing + ")");
    std::vector<std::uint64_t> accepted;
    for (std::uint64_t i = 0; i < 100; ++i)
      if (!filter.insert(in_second(i, 100))) accepted.push_back(i);
    for (std::uint64_t i = 1000; i < 2000; ++i) filter.insert(in_second(i, 45));
    for (const std::uint64_t number : accepted) BOOST_REQUIRE(filter.test(in_second(number, 160)));
  }
}

// "The timers are set only if the event is distinct."
BOOST_AUTO_TEST_CASE(a_repeat_sets_no_timers) {
  for (const std::string& slicing : kSlicings) {
    Filter filter(timer(slicing));
    BOOST_TEST(!filter.insert(in_second(1, 0)));
    for (std::int64_t second = 1; second < kFound; ++second)
      BOOST_TEST(filter.insert(in_second(1, second)));
    BOOST_TEST(!filter.insert(in_second(1, kFound)));
  }
}

BOOST_AUTO_TEST_CASE(windows_of_slices_are_merged) {
  for (const std::string& slicing : kSlicings) {
    Filter a(timer(slicing)), b(timer(slicing));
    for (std::uint64_t i = 0; i < 200; ++i) (i % 2 == 0 ? a : b).insert(in_second(i, 10 + (i % 7)));
    BOOST_TEST(a.merge(b));
    for (std::uint64_t i = 0; i < 200; ++i) {
      BOOST_REQUIRE(a.test(in_second(i, 10 + (i % 7) + kFound - 1)));
      BOOST_REQUIRE(!a.test(in_second(i, 10 + (i % 7) + kFound)));
    }
    BOOST_TEST(a.is_valid(), slicing);
  }
}

BOOST_AUTO_TEST_CASE(derived_windows_keep_their_rate) {
  for (const std::string& slicing : kSlicings) {
    if (contains(slicing, "k1")) continue;
    for (const std::string grow : {"", ", grow=density", ", grow=cardinality"}) {
      const std::string text =
          "timer(memory=1MB, window='60 s', tick='1 s', keys=2000, fpr=0.01, " + slicing + grow +
          ")";
      Filter filter(text);
      BOOST_TEST(filter.fpr_bound() <= .01, text);
      for (std::uint64_t i = 0; i < 4000; ++i)  // 2000 in each window
        filter.insert(
            in_second(i, static_cast<std::int64_t>(i / 2000 * 60 + i % 2000 * 60 / 2000)));
      const double found =
          count_known(filter, 10000, 60000, [](std::uint64_t i) { return in_second(i, 119); });
      BOOST_TEST(found <= most(50000, filter.fpr_bound()), text);
      BOOST_TEST(filter.is_valid(), text);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
