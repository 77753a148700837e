// `promote` does the same as `test` and then `insert` for a known key, and nothing for others.
#include <boost/test/unit_test.hpp>
#include <random>
#include <string>

#include "every_kind.hpp"
#include "unit/support/cache_lines.hpp"
#include "unit/support/filters.hpp"
#include "unit/support/streams.hpp"

using namespace streamfilter;
using namespace unit;

BOOST_AUTO_TEST_SUITE(refresh_of_seen_keys)

namespace {

// Beside every kind and every way of clq: what has code of its own.
const char* const kDefinitions[] = {
    "bloom(memory=2kB, k=5)",
    "bloom(memory=2kB, k=5, layout=blocked)",
    "bloom(memory=4kB, k=4, slices=4, k1=2, k2=2)",
    "timer(memory=4kB, k=3, window='10 seconds')",
    "vqf(memory=2kB, window='10 seconds')",
    "vqf(memory=2kB, window='10 seconds', lateness='2 seconds', extend=yes)",
};

// Once the filter is full, half are repeats; times advance, some are late.
void compare(const std::string& definition) {
  Filter plain(definition), refreshed(definition);
  std::mt19937_64 random(1);
  unsigned seen_keys = 0, unseen = 0, positions = 0;
  for (unsigned i = 0; i < scaled(20000); ++i) {
    Element element = key(random() % 2 == 0 ? random() % 200 : random());
    element.importance = static_cast<double>(random() % 120) - 10;
    element.time = static_cast<std::int64_t>(i * 10000 + random() % 2000000);
    // Late events are not promoted: they are never repeats.
    if (random() % 2 == 0 ||
        is_late(plain.parameters(), element, clock_of(plain.header(), element.hash))) {
      BOOST_REQUIRE_EQUAL(plain.insert(element), refreshed.insert(element));
      continue;
    }
    unsigned expected, position = 0;
    const bool seen = test(plain.header(), element, expected);
    if (seen) plain.insert(element);
    BOOST_REQUIRE_EQUAL(promote(refreshed.header(), element, position), seen);
    BOOST_REQUIRE_EQUAL(position, expected);
    BOOST_REQUIRE(plain.bytes() == refreshed.bytes());
    ++(seen ? seen_keys : unseen);
    positions += seen && position != kNoRank;
  }
  BOOST_TEST(plain.is_valid());
  BOOST_TEST(seen_keys > scaled(500));
  BOOST_TEST(unseen > scaled(500));
  BOOST_TEST(positions == (ranks_of_bucket(plain.parameters()) > 0 ? seen_keys : 0));
}

}  // namespace

BOOST_AUTO_TEST_CASE(it_is_test_and_insert) {
  std::vector<std::string> all = every_kind::definitions_and(kDefinitions, "8kB", 500);
  all.insert(all.end(), kCacheLines.begin(), kCacheLines.end());
  for (const std::string& definition : all) BOOST_TEST_CONTEXT(definition) compare(definition);
}

BOOST_AUTO_TEST_SUITE_END()
