// A filter as one block of bytes, and the numbers that it reports of itself.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "unit/support/filters.hpp"
#include "unit/support/rates.hpp"
#include "unit/support/streams.hpp"

using namespace streamfilter;
using namespace unit;

BOOST_AUTO_TEST_SUITE(filter_block)

BOOST_AUTO_TEST_CASE(the_layout_of_the_format_is_fixed) {
  BOOST_TEST(offsetof(Header, magic) == 4u);
  BOOST_TEST(offsetof(Header, version) == 8u);
  BOOST_TEST(offsetof(Header, parameters) == 80u);
  BOOST_TEST(offsetof(Parameters, slices) == 4u);
  BOOST_TEST(offsetof(Parameters, memory) == 8u);
  BOOST_TEST(offsetof(Parameters, slice_bytes) == 16u);
  BOOST_TEST(offsetof(Parameters, keys) == 24u);
  BOOST_TEST(offsetof(Parameters, fpr) == 32u);
  BOOST_TEST(offsetof(Parameters, seed) == 40u);
  BOOST_TEST(offsetof(Parameters, word) == 48u);
}

// Checksums of filters over a fixed stream: every machine and build must make the same bytes.
BOOST_AUTO_TEST_CASE(the_bytes_of_a_filter_are_the_same_everywhere) {
  struct Golden {
    const char* text;
    std::uint64_t checksum;
  };
  for (const Golden& golden : {
           Golden{"sbf(memory=1kB, max=1, k=3, p=11)", 0x30977fa8f750eafd},
           Golden{"sbf(memory=1kB, max=3, k=5, p=28, seed=42)", 0x16f6104a0e40a894},
           Golden{"sbf(memory=4kB, max=7, k=6, p=65, slices=3)", 0xe786627c19ab801e},
           Golden{"sbf(memory=1kB, max=15, k=6, p=142)", 0xbfc543be75852630},
           Golden{"bloom(memory=1000, k=3)", 0xfd3f7a8514c60502},
       }) {
    Filter filter(golden.text);
    for (std::uint64_t number = 0; number < 1000; ++number) filter.insert(key(number % 300));
    BOOST_TEST_CONTEXT(golden.text) BOOST_TEST(checksum(filter.header()) == golden.checksum);
  }
}

BOOST_AUTO_TEST_CASE(the_checksum_covers_every_byte_of_the_slices) {
  Filter filter = filled("sbf(memory=1003, max=3)", 100);
  const std::uint64_t before = checksum(filter.header());
  filter.header()->host = 7;
  BOOST_TEST(checksum(filter.header()) == before);
  for (std::size_t at = sizeof(Header); at < filter.bytes().size(); ++at) {
    filter.bytes()[at] ^= 1;
    BOOST_TEST(checksum(filter.header()) != before, at);
    filter.bytes()[at] ^= 1;
  }
  BOOST_TEST(checksum(filter.header()) == before);
}

BOOST_AUTO_TEST_CASE(a_new_filter_is_empty_and_an_old_one_is_not) {
  for (const char* text :
       {"sbf(memory=1MB)", "sbf(memory=1kB)", "bloom(memory=3kB, k=2, slices=4)"}) {
    Filter filter(text);
    BOOST_TEST(is_empty(filter.header()), text);
    const Totals none = totals(filter.header());
    BOOST_TEST(none.insertions == 0u);
    BOOST_TEST(none.inserted_new == 0u);
    BOOST_TEST(none.estimate.fill == 0);
    BOOST_TEST(none.estimate.fpr == 0);
    BOOST_TEST(none.estimate.distinct == 0);
    filter.insert(key(1));
    BOOST_TEST(!is_empty(filter.header()), text);
    format(filter.header(), filter.parameters());
    BOOST_TEST(is_empty(filter.header()), text);
  }
}

BOOST_AUTO_TEST_CASE(an_empty_filter_remembers_nothing) {
  for (const char* text : {"sbf()", "sbf(max=7)", "bloom(k=4)"}) {
    const Filter filter(text);
    for (std::uint64_t number = 0; number < 1000; ++number)
      BOOST_TEST_REQUIRE(!filter.test(key(number)), text);
  }
}

BOOST_AUTO_TEST_CASE(slices_formatted_one_by_one_make_the_same_filter) {
  const Filter whole("sbf(memory=10003, slices=7)");
  std::vector<unsigned char> bytes(whole.bytes().size(), 0xff);
  Header* header = reinterpret_cast<Header*>(bytes.data());
  format_header(header, whole.parameters());
  for (const std::uint32_t i : {6, 0, 3, 1, 2, 5, 4}) format_slice(header, i);
  BOOST_TEST((bytes == whole.bytes()));
}

BOOST_AUTO_TEST_CASE(totals_are_sums_over_the_slices) {
  for (const char* text : {"sbf(memory=64kB, slices=8)", "bloom(memory=64kB, k=3, slices=8)"}) {
    Filter filter(text);
    std::uint64_t inserted_new = 0;
    for (std::uint64_t number = 0; number < 5000; ++number)
      inserted_new += !filter.insert(key(number % 999));
    const Totals sums = totals(filter.header());
    BOOST_TEST(sums.insertions == 5000u);
    BOOST_TEST(sums.inserted_new == inserted_new);

    Totals added;
    std::uint64_t insertions = 0;
    for (std::uint32_t s = 0; s < 8; ++s) {
      add_slice(added, filter.parameters(), as_const(filter.slice(s)));
      insertions += filter.slice(s).state->insertions;
      BOOST_TEST(filter.slice(s).state->insertions > 0u);
    }
    BOOST_TEST(insertions == sums.insertions);
    BOOST_TEST(added.estimate.fill == sums.estimate.fill);
    BOOST_TEST(added.estimate.distinct == sums.estimate.distinct);
  }
}

// A key touches its own slice only, which is why each slice can have its own lock.
BOOST_AUTO_TEST_CASE(a_key_touches_one_slice_only) {
  Filter filter("sbf(memory=8kB, slices=5, max=3)");
  for (std::uint64_t number = 0; number < 500; ++number) {
    const std::vector<unsigned char> before = filter.bytes();
    const std::uint32_t own = slice_of(filter.parameters(), key(number).hash);
    filter.insert(key(number));
    const std::size_t slice = filter.parameters().slice_bytes;
    for (std::size_t at = 0; at < before.size(); ++at)
      if (before[at] != filter.bytes()[at])
        BOOST_TEST_REQUIRE(
            (at >= sizeof(Header) + own * slice && at < sizeof(Header) + (own + 1) * slice));
  }
}

// The window is the number of elements after which a key is missed with 1 %.
BOOST_AUTO_TEST_CASE(the_window_is_where_fnr_reaches_the_limit) {
  for (const char* text :
       {"sbf(memory=64kB)", "sbf(memory=1MB, fpr=0.1, max=3)", "sbf(max=7)",
        "sbf(memory=100MB, max=15, fpr=0.001)", "sbf(memory=1TB)", "sbf(memory=64TB, max=3)"})
    for (const double limit : {0.01, 0.2}) {
      const Parameters p = parameters_of(text);
      const double window = window_keys(p, limit);
      BOOST_TEST_CONTEXT(text << " window " << window) {
        BOOST_TEST(window > 20);
        BOOST_TEST(window == std::floor(window));
        BOOST_TEST(find_ops(p.kind)->fnr_at(p, window) <= limit);
        BOOST_TEST(find_ops(p.kind)->fnr_at(p, window * 1.05) > limit);
      }
    }
}

BOOST_AUTO_TEST_CASE(windows_grow_with_memory_and_not_with_slices) {
  const auto window = [](const char* text) { return window_keys(parameters_of(text), 0.01); };
  BOOST_TEST(window("sbf(memory=64MB)") / window("sbf(memory=1MB)") == 64, tolerance(0.01));
  BOOST_TEST(window("sbf(memory=64MB, slices=1)") == window("sbf(memory=64MB, slices=64)"),
             tolerance(0.001));
}

BOOST_AUTO_TEST_CASE(some_windows_are_endless_or_empty) {
  BOOST_TEST(std::isinf(window_keys(parameters_of("bloom(k=3)"), 0.01)));
  // Every element decrements half of the cells: the next key may be missed.
  BOOST_TEST(window_keys(parameters_of("sbf(memory=192, p=256, k=1)"), 0.01) == 0);
  // No filter can be certain.
  BOOST_TEST(window_keys(parameters_of("sbf(memory=1MB, max=7)"), 0) < 1000);
  BOOST_TEST(std::isinf(window_keys(parameters_of("sbf(memory=1MB)"), 1)));
}

BOOST_AUTO_TEST_SUITE_END()
