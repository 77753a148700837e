// Keys removed after a resize stay removed in all later sizes, and few other keys go with them.
#include <boost/test/unit_test.hpp>
#include <set>
#include <string>
#include <vector>

#include "core/format/copies.hpp"
#include "core/format/spread.hpp"
#include "unit/support/rates.hpp"
#include "unit/support/resizing.hpp"
#include "unit/support/statistics.hpp"
#include "unit/support/streams.hpp"

using namespace streamfilter;
using namespace unit;

BOOST_AUTO_TEST_SUITE(resize_deletes)

namespace {

using Sizes = std::vector<const char*>;

// A minute for a thousand keys.
Element timed(std::uint64_t number) {
  return {key(number).hash, static_cast<double>(number % 7),
          static_cast<std::int64_t>(number) * 60'000};
}

void insert(Filter& filter, std::uint64_t first, std::uint64_t count) {
  insert_keys(filter, first, first + count, timed);
}

// Resizes as ALTER does: a state that cannot be converted gives way to an empty filter.
void alter(Filter& filter, const std::string& text) {
  if (!resize(filter, text)) filter = Filter(text);
}

std::uint64_t known(const Filter& filter, const std::set<std::uint64_t>& keys) {
  std::uint64_t sum = 0;
  for (const std::uint64_t number : keys) sum += filter.test(timed(number));
  return sum;
}

// Every `step`-th key up to `end` that is still there.
void erase_some(Filter& filter, std::uint64_t end, std::uint64_t step,
                std::set<std::uint64_t>& removed) {
  for (std::uint64_t i = 0; i < end; ++i)
    if (key(i).hash % step == 0 && removed.insert(i).second) erase(filter.header(), timed(i));
}

const char* const kDefinitions[] = {
    "clq",
    "clq(fpr=1e-6)",
    "clq(fpr=1e-6, slices=4)",
    "clq(fpr=1e-6, policy=fifo)",
    "clq(fpr=1e-6, policy=second)",
    "clq(fpr=1e-6, lines=2)",
    "clq(lines=2)",
    "clq(fpr=1e-6, importance_range=\"0,6\")",
    "clq(fpr=1e-6, window=\"1 hour\")",
    "clq(window=\"1 hour\")",
    "lru",
    "lru(entry_bits=40)",
    "lru(entry_bits=40, policy=clock)",
    "fplru(q=0, entry_bits=40)",
};
const Sizes kPaths[] = {{"64kB", "128kB", "64kB"},
                        {"64kB", "256kB", "64kB"},
                        {"64kB", "1MB", "64kB"},
                        {"64kB", "160kB", "64kB"},
                        {"256kB", "64kB", "256kB", "90kB"},
                        {"64kB", "128kB", "512kB", "100kB", "50kB"},
                        {"200kB", "333kB", "200kB", "70kB"}};

}  // namespace

BOOST_AUTO_TEST_CASE(what_was_removed_stays_removed_in_any_size) {
  for (const char* definition : kDefinitions)
    for (const Sizes& path : kPaths) {
      std::set<std::uint64_t> removed;
      std::uint64_t next = 0;
      Filter filter(with_memory(definition, path[0]));
      for (std::size_t i = 1; i < path.size(); ++i) {
        insert(filter, next, 3000);
        next += 3000;
        erase_some(filter, next, 3, removed);
        alter(filter, with_memory(definition, path[i]));
        erase_some(filter, next, 3 + i, removed);
        const double keys = static_cast<double>(removed.size());
        BOOST_TEST(static_cast<double>(known(filter, removed)) <= most(keys, filter.fpr_bound()),
                   definition << ", from " << path[i - 1] << " to " << path[i] << ", of " << keys);
      }
    }
}

BOOST_AUTO_TEST_CASE(few_others_go_with_what_is_removed) {
  for (const auto& [definition, path] :
       {std::pair<const char*, Sizes>{"clq", {"64kB", "128kB", "256kB"}},
        {"clq", {"64kB", "256kB"}},
        {"clq(lines=2)", {"64kB", "128kB"}},
        {"clq(fpr=1e-6)", {"64kB", "1MB"}},
        {"clq", {"64kB"}},
        {"clq", {"256kB"}}}) {
    const std::uint64_t kKeys = scaled(100000), kRemoved = kKeys / 5;
    Filter filter(with_memory(definition, path[0]));
    for (const char* memory : path) {
      BOOST_TEST(resize(filter, with_memory(definition, memory)));
      insert(filter, 0, kKeys);  // full, including keys without copies
    }
    std::set<std::uint64_t> before;
    for (std::uint64_t i = kRemoved; i < kKeys; ++i)
      if (filter.test(timed(i))) before.insert(i);
    for (std::uint64_t i = 0; i < kRemoved; ++i) erase(filter.header(), timed(i));
    const double went = static_cast<double>(before.size() - known(filter, before));
    // One of its own bucket, as ever, and 0.05 of others.
    BOOST_TEST(went <= most(kRemoved, filter.fpr_bound() + 0.05), definition);
  }
}

BOOST_AUTO_TEST_CASE(a_filter_from_which_too_many_would_go_is_not_made_smaller) {
  const auto enlarged = [](const char* definition) {
    Filter filter(with_memory(definition, "64kB"));
    insert(filter, 0, 3000);
    BOOST_TEST(resize(filter, with_memory(definition, "4MB")));
    insert(filter, 3000, 3000);
    return filter;
  };
  const auto sizes_are_open = [](const Filter& filter, const char* definition, const char* memory) {
    Filter copy = filter;
    return resize(copy, with_memory(definition, memory));
  };
  Filter filter = enlarged("clq");
  BOOST_TEST(sizes_are_open(filter, "clq", "64kB"));
  const Filter whole = filter;
  BOOST_TEST(erase(filter.header(), timed(10)));
  std::uint64_t went = 0;
  for (std::uint64_t i = 0; i < 6000; ++i) went += whole.test(timed(i)) && !filter.test(timed(i));
  BOOST_TEST(went == 1u);
  BOOST_TEST(!sizes_are_open(filter, "clq", "64kB"));
  BOOST_TEST(!sizes_are_open(filter, "clq", "6MB"));
  BOOST_TEST(sizes_are_open(filter, "clq", "8MB"));
  // Also by the next size; not once it is empty.
  Filter larger = filter;
  alter(larger, "clq(memory=8MB)");
  BOOST_TEST(!sizes_are_open(larger, "clq", "4MB"));
  filter = Filter(Parameters(filter.parameters()));
  BOOST_TEST(sizes_are_open(filter, "clq", "64kB"));
  // Where fingerprints are longer, nothing else goes.
  filter = enlarged("clq(fpr=1e-6)");
  BOOST_TEST(erase(filter.header(), timed(10)));
  BOOST_TEST(sizes_are_open(filter, "clq(fpr=1e-6)", "64kB"));
  // Until the window has passed.
  const char* window = "clq(window=\"1 hour\")";
  filter = enlarged(window);
  BOOST_TEST(erase(filter.header(), timed(10)));
  insert(filter, 50000, 1000);
  BOOST_TEST(!sizes_are_open(filter, window, "64kB"));
  insert(filter, 70000, 1000);
  BOOST_TEST(sizes_are_open(filter, window, "64kB"));
}

// Keys of the window that came after the change have no copies, and their age says so.
BOOST_AUTO_TEST_CASE(with_a_window_later_keys_do_not_go) {
  const char* definition = "clq(window=\"1 hour\")";
  Filter filter(with_memory(definition, "64kB"));
  insert(filter, 0, 20000);
  BOOST_TEST(resize(filter, with_memory(definition, "256kB")));
  insert(filter, 30000, 29000);
  std::set<std::uint64_t> before;
  for (std::uint64_t i = 30000; i < 59000; ++i)
    if (filter.test(timed(i))) before.insert(i);
  for (std::uint64_t i = 0; i < 20000; ++i) erase(filter.header(), timed(i));
  // Only those that share a bucket and fingerprint with a removed key.
  const double went = static_cast<double>(before.size() - known(filter, before));
  BOOST_TEST(went <= most(20000, filter.fpr_bound()));
}

// Every place that a key can have come to is in the range, for any sizes.
BOOST_AUTO_TEST_CASE(the_range_of_copies_holds_them_all) {
  std::mt19937_64 random(7);
  for (unsigned round = 0; round < scaled(3000); ++round) {
    const std::uint64_t least = random() % 60 + 1, word = random();
    const bool is_doubled = round % 2 == 0;
    std::uint64_t n = least;
    std::set<std::uint64_t> places = {scale(word, n)};
    Copies copies, other;
    for (unsigned step = 0; step < 5; ++step) {
      const std::uint64_t m = is_doubled ? least << random() % 6 : random() % 90 + 1;
      std::set<std::uint64_t> now;
      for (std::uint64_t layer = 0; layer < layers_of(n, m); ++layer)
        for_each_place(n, m, layer, [&](std::uint64_t to, std::uint64_t from) {
          if (places.contains(from)) now.insert(to);
        });
      copies = streamfilter::resized(copies, n, m);
      other = streamfilter::resized(Copies{}, n, m);  // one that was always of the last size
      places = now;
      n = m;
      if (copies.cells == 0) {
        BOOST_TEST_REQUIRE(places == std::set{scale(word, n)});
        continue;
      }
      const PlaceRange range = range_of(copies, n, word);
      BOOST_TEST_REQUIRE(range.first <= *places.begin());
      BOOST_TEST_REQUIRE(range.end > *places.rbegin());
      BOOST_TEST_REQUIRE(range.end <= n);
      BOOST_TEST_REQUIRE(range.end - range.first <= most_places(copies, n));
      if (is_doubled) BOOST_TEST_REQUIRE(range.end - range.first <= places.size());
      const Copies both = joined(copies, other, n);
      const PlaceRange joint = range_of(both, n, word);
      BOOST_TEST_REQUIRE(joint.first <= range.first);
      BOOST_TEST_REQUIRE(joint.end >= range.end);
      if (other.cells == 0) continue;
      const PlaceRange second = range_of(other, n, word);
      BOOST_TEST_REQUIRE(joint.first <= second.first);
      BOOST_TEST_REQUIRE(joint.end >= second.end);
    }
  }
}

// What a state says of copies is checked; whatever passes is harmless, and lasts.
BOOST_AUTO_TEST_CASE(damaged_numbers_are_found_or_harmless) {
  for (const char* definition :
       {"clq(fpr=1e-6, slices=1)", "clq(lines=2, slices=1)", "clq(window=\"1 hour\", slices=1)"}) {
    Filter sound(with_memory(definition, "8kB"));
    insert(sound, 0, 300);
    BOOST_TEST(resize(sound, with_memory(definition, "20kB")));
    const std::uint64_t places = find_ops(Kind::clq)->resize.places(sound.parameters()),
                        numbers[] = {0,          1,          5,          places - 1,       places,
                                     places + 1, 1ull << 62, 1ull << 63, (1ull << 63) + 3, ~0ull};
    unsigned passed = 0;
    for (const std::uint64_t cells : numbers)
      for (const std::uint64_t reach : numbers)
        for (const std::uint64_t gone : numbers) {
          Filter filter = sound;
          std::uint64_t(&own)[5] = filter.slice().state->own;
          own[2] = cells;
          own[3] = reach;
          own[4] = gone;
          if (!filter.is_valid()) continue;
          ++passed;
          for (std::uint64_t i = 0; i < 100; ++i) erase(filter.header(), timed(i));
          BOOST_TEST(filter.is_valid());
          BOOST_TEST(filter.merge(sound));
          BOOST_TEST(filter.is_valid());
          for (const char* memory : {"33kB", "9kB"}) {
            alter(filter, with_memory(definition, memory));
            BOOST_TEST(filter.is_valid());
          }
        }
    BOOST_TEST(passed > 10u);
    BOOST_TEST(passed < 400u);
  }
}

BOOST_AUTO_TEST_SUITE_END()
