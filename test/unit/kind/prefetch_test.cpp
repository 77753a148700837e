// The memory prefetched for a key is the memory that inserting it changes.
#include <boost/test/unit_test.hpp>
#include <set>
#include <string>
#include <vector>

#include "every_kind.hpp"
#include "unit/support/filters.hpp"
#include "unit/support/streams.hpp"

using namespace streamfilter;
using namespace unit;

BOOST_AUTO_TEST_SUITE(prefetches)

namespace {

// What changes only the key's own cells when it inserts a new key, though they are in several
// lines, or can be in one.
const char* const kDefinitions[] = {
    "bloom(memory=64kB, k=7)",
    "bloom(memory=64kB, k=7, layout=blocked)",
    "ell(memory=64kB)",
    "clq(memory=64kB, fpr=0.01)",
    "clq(memory=64kB, fpr=0.01, lines=2)",
    "clq(memory=64kB, fpr=0.01, window=\"1 hour\")",
    "vqf(memory=64kB)",
    "vqf(memory=640kB, window=\"1 hour\")",
};

constexpr unsigned kLine = 64;

// The prefetched lines of the key's slice.
std::set<std::size_t> lines_fetched(const Filter& filter, const Element& element) {
  const Parameters& parameters = filter.parameters();
  const ConstSlice slice = slice_at(filter.header(), slice_of(parameters, element.hash));
  Prefetches prefetches;
  prefetch(filter.header(), element, prefetches);
  std::set<std::size_t> lines;
  for (unsigned i = 0; i < prefetches.count(); ++i) {
    const auto* address = static_cast<const unsigned char*>(prefetches.at(i));
    BOOST_REQUIRE(address >= slice.body());
    BOOST_REQUIRE(address < slice.body() + slice.bytes);
    lines.insert(static_cast<std::size_t>(address - slice.body()) / kLine);
  }
  prefetches.start();
  BOOST_TEST(prefetches.count() == 0);
  return lines;
}

// The lines of the key's slice that an insertion of it changes.
std::set<std::size_t> lines_changed(Filter& filter, const Element& element) {
  const Slice slice = slice_at(filter.header(), slice_of(filter.parameters(), element.hash));
  const std::vector<unsigned char> before(slice.body(), slice.body() + slice.bytes);
  filter.insert(element);
  std::set<std::size_t> lines;
  for (std::size_t i = 0; i < before.size(); ++i)
    if (slice.body()[i] != before[i]) lines.insert(i / kLine);
  return lines;
}

}  // namespace

BOOST_AUTO_TEST_CASE(are_of_the_lines_that_a_key_changes) {
  std::vector<std::string> all(std::begin(kDefinitions), std::end(kDefinitions));
  for (const std::string& definition : every_kind::definitions("64kB", 2000)) {
    Filter filter(definition);
    if (uses_one_line(filter.parameters(), *filter.slice().state)) all.push_back(definition);
  }
  for (const std::string& definition : all) {
    Filter filter(definition);
    std::size_t changes = 0;
    for (std::uint64_t number = 1; number <= 2000; ++number) {
      const std::set<std::size_t> fetched = lines_fetched(filter, key(number));
      for (const std::size_t line : lines_changed(filter, key(number))) {
        BOOST_TEST_INFO(definition << ", key " << number);
        BOOST_TEST(fetched.count(line) == 1);
        ++changes;
      }
    }
    BOOST_TEST_INFO(definition);
    BOOST_TEST(changes >= 1500);
  }
}

BOOST_AUTO_TEST_CASE(change_nothing_where_many_keys_are_inserted) {
  const char* const vertical[] = {"bloom(memory=64kB, k=6, slices=6, slicing=vertical)"};
  for (const std::string& definition : every_kind::definitions_and(vertical, "64kB", 2000)) {
    Filter one_by_one(definition), at_once(definition);
    std::uint64_t number = 0;
    for (const std::size_t count : {0, 1, 15, 16, 17, 100, 1000}) {
      std::vector<Element> elements(count);
      std::vector<char> has_key(count), seen(count, 2);
      for (std::size_t i = 0; i < count; ++i) {
        ++number;
        elements[i] = key(number * number % 700);
        has_key[i] = number % 13 != 0;
      }
      insert_many(at_once.header(), elements.data(), reinterpret_cast<const bool*>(has_key.data()),
                  count, reinterpret_cast<bool*>(seen.data()));
      for (std::size_t i = 0; i < count; ++i)
        BOOST_TEST_REQUIRE(seen[i] == (has_key[i] && one_by_one.insert(elements[i])));
    }
    BOOST_TEST_INFO(definition);
    BOOST_TEST((at_once.bytes() == one_by_one.bytes()));
  }
}

BOOST_AUTO_TEST_CASE(start_by_themselves_when_they_are_many) {
  const unsigned char memory[64] = {};
  Prefetches prefetches;
  unsigned most = 0;
  for (unsigned i = 0; i < 10000; ++i) {
    prefetches.add(memory + i % 64);
    BOOST_TEST_REQUIRE(prefetches.count() >= 1);
    most = std::max(most, prefetches.count());
  }
  BOOST_TEST(most < 10000);
}

BOOST_AUTO_TEST_SUITE_END()
