// Where a filter is restored line by line, a key is tested, added and forgotten while other lines
// are not there yet: it must touch only its own, and its slice's counters.
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <string>
#include <vector>

#include "core/filter/filter.hpp"
#include "unit/support/filters.hpp"
#include "unit/support/streams.hpp"

using namespace streamfilter;
using namespace unit;

BOOST_AUTO_TEST_SUITE(key_lines)

namespace {

const char* const kByLine[] = {
    "clq(memory=64kB, bits=12, slices=1)",
    "clq(memory=64kB, bits=16, bucket=20, slices=2)",
    "clq(memory=100kB, bits=48, bucket=10, slices=3)",
    "bloom(memory=64kB, k=5, slices=1, layout=blocked)",
    "bloom(memory=64kB, keys=20000, fpr=0.01, slices=2, layout=blocked)",
};
const char* const kOthers[] = {
    "clq(memory=64kB, bits=12, slices=1, lines=2)",
    "clq(memory=64kB, bits=12, slices=1, window='10 minutes')",
    "bloom(memory=64kB, k=5, slices=1)",
    "sbf(memory=64kB, slices=1, layout=blocked)",
    "lru(memory=64kB, slices=1)",
    "sqf(memory=64kB, slices=1)",
};

bool is_by_line(const Filter& filter) {
  return uses_one_line(filter.parameters(), *slice_at(filter.header(), 0).state);
}

// Bytes that differ outside of the key's line and its slice's state.
std::size_t changed_elsewhere(const Filter& filter, const std::vector<unsigned char>& before,
                              std::uint64_t hash) {
  const Header* header = filter.header();
  const Parameters& parameters = header->parameters;
  const std::vector<unsigned char> now = filter.bytes();
  const std::size_t slice = sizeof(Header) + slice_of(parameters, hash) * parameters.slice_bytes;
  const std::size_t line = slice + line_of_key(header, hash);
  std::size_t count = 0;
  for (std::size_t i = 0; i < now.size(); ++i)
    if (now[i] != before[i] && !(i >= line && i < line + 64) &&
        !(i >= slice && i < slice + sizeof(SliceState)))
      ++count;
  return count;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_key_changes_its_line_only) {
  for (const char* definition : kByLine) {
    BOOST_TEST_CONTEXT(definition) {
      Filter filter(definition);
      BOOST_TEST(is_by_line(filter));
      std::size_t elsewhere = 0;
      // Far more than it remembers.
      for (std::uint64_t number = 0; number < 60'000; ++number) {
        const bool looks = number % 400 == 0;
        const auto before = looks ? filter.bytes() : std::vector<unsigned char>();
        filter.insert(key(number));
        if (!looks) continue;
        elsewhere += changed_elsewhere(filter, before, key(number).hash);
        const auto added = filter.bytes();
        unsigned rank;
        promote(filter.header(), key(number), rank);
        insert_new(filter.header(), key(number));
        if (ops_of(filter.header()).erase != nullptr) erase(filter.header(), key(number));
        elsewhere += changed_elsewhere(filter, added, key(number).hash);
      }
      BOOST_TEST(elsewhere == 0u);
    }
  }
}

// Whatever the other lines hold: here, other bytes.
BOOST_AUTO_TEST_CASE(a_key_reads_its_line_only) {
  for (const char* definition : kByLine) {
    BOOST_TEST_CONTEXT(definition) {
      Filter filter(definition);
      for (std::uint64_t number = 0; number < 3000; ++number) filter.insert(key(number));
      const Parameters& parameters = filter.parameters();
      std::size_t differ = 0;
      for (std::uint64_t number = 0; number < 200; ++number) {
        const bool known = test(filter.header(), key(number));
        Filter other = filter;
        auto* bytes = reinterpret_cast<unsigned char*>(other.header());
        const std::size_t slice =
            sizeof(Header) + slice_of(parameters, key(number).hash) * parameters.slice_bytes;
        const std::size_t line = slice + line_of_key(filter.header(), key(number).hash);
        for (std::size_t i = slice + sizeof(SliceState); i < slice + parameters.slice_bytes; ++i)
          if (i < line || i >= line + 64) bytes[i] = 0;
        differ += test(other.header(), key(number)) != known;
      }
      BOOST_TEST(differ == 0u);
    }
  }
}

BOOST_AUTO_TEST_CASE(others_are_not_divided) {
  for (const char* definition : kOthers)
    BOOST_TEST(!is_by_line(Filter{std::string(definition)}), definition);
}

// A change of size leaves copies in other lines, from which a removed key must go.
BOOST_AUTO_TEST_CASE(copies_are_not_divided) {
  const Filter filter{std::string("clq(memory=64kB, bits=12, slices=1)")};
  SliceState state = *slice_at(filter.header(), 0).state;
  state.own[2] = 1;
  BOOST_TEST(!uses_one_line(filter.parameters(), state));
}

BOOST_AUTO_TEST_SUITE_END()
