// Windows of time on streams that are out of order, with and without option lateness.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <random>
#include <string>
#include <vector>

#include "unit/support/filters.hpp"
#include "unit/support/streams.hpp"

using namespace streamfilter;
using namespace unit;

BOOST_AUTO_TEST_SUITE(lateness)

namespace {

constexpr std::int64_t kWindow = 100000, kLateness = 50000;

struct Event {
  std::uint64_t key;
  std::int64_t time, arrival;
};

// Each key comes twice within a window, and each event is late by up to `most`; in the order of
// arrival.
std::vector<Event> late_events(std::int64_t most, unsigned keys) {
  std::mt19937_64 random(1);
  const auto below = [&](std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
  };
  std::vector<Event> events;
  for (unsigned i = 0; i < keys; ++i) {
    const std::int64_t first = 1000000 + below(1000000), second = first + below(kWindow);
    for (const std::int64_t time : {first, second})
      events.push_back({i, time, time + below(most + 1)});
  }
  std::sort(events.begin(), events.end(),
            [](const Event& a, const Event& b) { return a.arrival < b.arrival; });
  return events;
}

// The number of missed repeats.
unsigned missed(const std::string& text, std::int64_t most) {
  constexpr unsigned kKeys = 20000;
  Filter filter(text.c_str());
  std::vector<bool> came(kKeys);
  unsigned count = 0;
  for (const Event& event : late_events(most, kKeys)) {
    const bool seen = filter.insert(at(event.key, event.time));
    count += came[event.key] && !seen;
    came[event.key] = true;
  }
  return count;
}

const std::string kFilters[] = {"timer(memory=4MB, keys=20000, fpr=1e-6, window='100 ms'",
                                "clq(memory=8MB, fpr=1e-6, window='100 ms'"};

}  // namespace

// The clock is the latest time that has arrived. The key of a late event leaves the window early by
// as much as the event was late, as far as its repeat can tell.
BOOST_AUTO_TEST_CASE(no_repeat_is_missed_within_window_and_lateness) {
  for (const std::string& filter : kFilters) {
    BOOST_TEST(missed(filter + ")", 0) == 0u, filter);
    BOOST_TEST(missed(filter + ")", kLateness) > 500u, filter);
    BOOST_TEST(missed(filter + ", lateness='50 ms')", kLateness) == 0u, filter);
    BOOST_TEST(missed(filter + ", lateness='50 ms')", 10 * kLateness) > 500u, filter);
  }
}

BOOST_AUTO_TEST_CASE(later_than_both_is_not_remembered) {
  for (const std::string& text : kFilters) {
    Filter filter((text + ", lateness='50 ms')").c_str());
    filter.insert(at(1, 1000000));
    BOOST_TEST(!filter.insert(at(2, 1000000 - kWindow - kLateness / 2)));
    BOOST_TEST(filter.test(at(2, 1000000)));
    BOOST_TEST(!filter.insert(at(3, 1000000 - 2 * (kWindow + kLateness))));
    BOOST_TEST(!filter.test(at(3, 1000000)));
    BOOST_TEST(filter.test(at(1, 1000000 + kWindow + kLateness - 1)));
    BOOST_TEST(!filter.test(at(1, 1000000 + (kWindow + kLateness) * 17 / 15)));
  }
}

BOOST_AUTO_TEST_CASE(as_if_the_window_were_so_long) {
  for (const char* kind : {"timer(memory=64kB, keys=1000, tick='1 s', ", "clq(memory=64kB, "}) {
    Filter both((std::string(kind) + "window='10 s', lateness='5 s')").c_str()),
        one((std::string(kind) + "window='15 s')").c_str());
    for (unsigned i = 0; i < 3000; ++i) {
      const Element element = at(i % 700, 1000000 * (i / 20) - i % 7 * 1000000);
      BOOST_REQUIRE_EQUAL(both.insert(element), one.insert(element));
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
