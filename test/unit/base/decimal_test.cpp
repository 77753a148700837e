// Decimals as text: their hash is that of the server's numeric, whose digits are to base 10000.
#include "core/base/text.hpp"

#include <boost/test/unit_test.hpp>
#include <cstring>
#include <string>
#include <vector>

#include "core/base/hash.hpp"

using namespace streamfilter;

namespace {

constexpr std::uint64_t kSeed = 77;

std::uint64_t hash_of(const std::string& text) {
  Problem problem;
  std::uint64_t hash = 0;
  BOOST_TEST(hash_decimal_text(text.data(), text.size(), kSeed, hash, problem),
             text << ": " << problem.message);
  return hash;
}

Error error_of(const std::string& text) {
  Problem problem;
  std::uint64_t hash = 0;
  hash_decimal_text(text.data(), text.size(), kSeed, hash, problem);
  return problem.error;
}

std::uint64_t reference(const std::vector<std::uint16_t>& digits, int weight, bool negative) {
  return decimal_hash(hash_bytes(digits.data(), digits.size() * 2, kSeed), weight, negative, kSeed);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(decimal)

BOOST_AUTO_TEST_CASE(digits_are_grouped_from_the_point) {
  BOOST_TEST(hash_of("1") == reference({1}, 0, false));
  BOOST_TEST(hash_of("-12345.678") == reference({1, 2345, 6780}, 1, true));
  BOOST_TEST(hash_of("0.0001") == reference({1}, -1, false));
  BOOST_TEST(hash_of("0.00001") == reference({1000}, -2, false));
  BOOST_TEST(hash_of("123400000000") == reference({1234}, 2, false));
  BOOST_TEST(hash_of("1e-8") == reference({1}, -2, false));
  BOOST_TEST(hash_of("12e3") == reference({1, 2000}, 1, false));
}

BOOST_AUTO_TEST_CASE(long_numbers_are_hashed_as_a_whole) {
  for (const unsigned groups : {1u, 2u, 255u, 256u, 257u, 512u, 513u, 1000u}) {
    std::string text;
    for (unsigned i = 0; i < groups; ++i) text += "9876";
    BOOST_TEST(hash_of(text) == reference(std::vector<std::uint16_t>(groups, 9876),
                                          static_cast<int>(groups) - 1, false));
  }
}

BOOST_AUTO_TEST_CASE(zeros_at_either_end_do_not_count) {
  BOOST_TEST(hash_of("001.50") == hash_of("1.5"));
  BOOST_TEST(hash_of(".5") == hash_of("5e-1"));
  BOOST_TEST(hash_of("5.") == hash_of("5"));
  for (const char* zero : {"0", "-0", "0.000", "0e5", "000.0"})
    BOOST_TEST(hash_of(zero) == hash_word(0, kSeed));
}

BOOST_AUTO_TEST_CASE(numbers_without_digits) {
  BOOST_TEST(hash_of("NaN") == hash_word(0xC000, kSeed));
  BOOST_TEST(hash_of("+inf") == hash_word(0xD000, kSeed));
  BOOST_TEST(hash_of("-Infinity") == hash_word(0xF000, kSeed));
}

BOOST_AUTO_TEST_CASE(what_is_no_number_is_refused) {
  for (const char* text : {"", " ", ".", "-", "1e", "1e+", "e5", "1 2", "--1", "1.2.3", "infin",
                           "-nan", "+NaN", "0x10", "1_000"})
    BOOST_TEST((error_of(text) == Error::syntax), text);
  BOOST_TEST((error_of("1e131071") == Error::none));
  for (const char* text : {"1e131072", "1e-16384", "1e2000000000000", "1e-2000000000000"})
    BOOST_TEST((error_of(text) == Error::out_of_range), text);
}

BOOST_AUTO_TEST_SUITE_END()
