// Sizes are written as in postgresql.conf.
#include <boost/test/unit_test.hpp>
#include <random>
#include <string>

#include "core/filter/option_values.hpp"

using namespace streamfilter;

BOOST_AUTO_TEST_SUITE(sizes)

namespace {

constexpr std::uint64_t kKilo = 1024;
constexpr std::uint64_t kMost = ~std::uint64_t{0};

bool reads_as(const std::string& text, std::uint64_t bytes) {
  std::uint64_t result = 0;
  return parse_size(text.c_str(), result) && result == bytes;
}

bool is_refused(const std::string& text) {
  std::uint64_t result;
  return !parse_size(text.c_str(), result);
}

std::string printed(std::uint64_t bytes) {
  char text[32];
  print_size(bytes, text, sizeof text);
  return text;
}

}  // namespace

BOOST_AUTO_TEST_CASE(units_are_those_of_postgresql) {
  BOOST_TEST(reads_as("1000", 1000));
  BOOST_TEST(reads_as("12B", 12));
  BOOST_TEST(reads_as("64kB", 64 * kKilo));
  BOOST_TEST(reads_as("64 kB", 64 * kKilo));
  BOOST_TEST(reads_as("3MB", 3 * kKilo * kKilo));
  BOOST_TEST(reads_as("2GB", 2 * kKilo * kKilo * kKilo));
  BOOST_TEST(reads_as("1TB", kKilo * kKilo * kKilo * kKilo));
  BOOST_TEST(reads_as("0", 0));
  BOOST_TEST(reads_as("18446744073709551615", kMost));
}

BOOST_AUTO_TEST_CASE(anything_else_is_refused) {
  for (const char* text : {"", " ", "kB", "-1", "+1", "1.5MB", "64KB", "64kb", "64 k B", "64kB ",
                           "64 ", " 64", "1e6", "0x10", "64kBs", "ten"})
    BOOST_TEST(is_refused(text), '"' << text << '"');
}

BOOST_AUTO_TEST_CASE(overflow_is_refused) {
  BOOST_TEST(is_refused("18446744073709551616"));
  BOOST_TEST(is_refused("16777216TB"));
  BOOST_TEST(is_refused("18014398509481984kB"));
  BOOST_TEST(reads_as("16777215TB", 16777215 * kKilo * kKilo * kKilo * kKilo));
}

BOOST_AUTO_TEST_CASE(a_size_is_printed_in_its_largest_whole_unit) {
  BOOST_TEST(printed(0) == "0");
  BOOST_TEST(printed(1000) == "1000");
  BOOST_TEST(printed(1024) == "1kB");
  BOOST_TEST(printed(1536) == "1536");
  BOOST_TEST(printed(1536 * kKilo) == "1536kB");
  BOOST_TEST(printed(64 * kKilo * kKilo) == "64MB");
  BOOST_TEST(printed(kKilo * kKilo * kKilo * kKilo) == "1TB");
  BOOST_TEST(printed(kMost) == "18446744073709551615");
}

BOOST_AUTO_TEST_CASE(what_is_printed_reads_back) {
  std::mt19937_64 random(1);
  for (unsigned i = 0; i < 10000; ++i) {
    const std::uint64_t bytes = random() >> random() % 64 << random() % 44;
    BOOST_TEST_REQUIRE(reads_as(printed(bytes), bytes));
  }
}

BOOST_AUTO_TEST_SUITE_END()
