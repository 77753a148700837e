// Windows of time on streams that are out of order, with and without option lateness.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <random>
#include <string>
#include <vector>

#include "unit/support/filters.hpp"
#include "unit/support/kind_checks.hpp"
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
                                "clq(memory=8MB, fpr=1e-6, window='100 ms'",
                                "vqf(memory=1MB, fpr=1e-6, window='100 ms'"};

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

// An event is judged by its own time, whichever of two came first.
BOOST_AUTO_TEST_CASE(a_repeat_is_as_near_as_the_window) {
  constexpr std::int64_t kNow = 1000000, kTick = kWindow / 6;
  for (const std::string& text : kFilters) BOOST_TEST_CONTEXT(text) {
      Filter filter((text + ", slices=1, lateness='50 ms')").c_str());
      filter.insert(at(1, kNow));
      BOOST_TEST(!filter.insert(at(2, kNow - kLateness)));
      BOOST_TEST(filter.insert(at(2, kNow)));
      BOOST_TEST(filter.insert(at(1, kNow - kLateness)));
      BOOST_TEST(filter.test(at(1, kNow + kWindow - 1)));
      BOOST_TEST(!filter.test(at(1, kNow + kWindow + kTick)));
      BOOST_TEST(
          !filter.insert(at(3, kNow - kWindow - kTick)));  // late: it passes, and is remembered
      BOOST_TEST(!filter.insert(at(3, kNow)));
      BOOST_TEST(!filter.insert(at(1, kNow - kLateness - kTick)));  // late, though a repeat
      BOOST_TEST(!filter.insert(at(4, kNow - 2 * (kWindow + kLateness))));
      BOOST_TEST(!filter.insert(at(4, kNow - 2 * (kWindow + kLateness))));
    }
}

BOOST_AUTO_TEST_CASE(lateness_is_at_most_the_window) {
  for (const std::string& text : kFilters)
    BOOST_TEST((refusal(text + ", lateness='101 ms')").error == Error::unsupported), text);
}

BOOST_AUTO_TEST_SUITE_END()
