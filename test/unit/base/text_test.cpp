// Texts: names with typos, base64, and decimals.
#include "core/base/text.hpp"

#include <boost/test/unit_test.hpp>
#include <cstring>
#include <string>
#include <vector>

#include "core/base/hash.hpp"

using namespace streamfilter;

// The hint "Perhaps you meant …" appears for a typo, and only for a typo.
BOOST_AUTO_TEST_SUITE(names)

namespace {

std::string nearest(const char* wanted) {
  NearestName name(wanted);
  for (const char* known : {"memory", "keys", "fpr", "seed", "slices", "cell_bits"})
    name.consider(known);
  return name.name() != nullptr ? name.name() : "none";
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_typo_is_recognised) {
  BOOST_TEST(nearest("memry") == "memory");    // a letter left out
  BOOST_TEST(nearest("memoryy") == "memory");  // one too many
  BOOST_TEST(nearest("nemory") == "memory");   // a wrong one
  BOOST_TEST(nearest("memroy") == "memory");   // two exchanged
  BOOST_TEST(nearest("cellbits") == "cell_bits");
  BOOST_TEST(nearest("key") == "keys");
  BOOST_TEST(nearest("fp") == "fpr");
}

BOOST_AUTO_TEST_CASE(another_word_is_not) {
  BOOST_TEST(nearest("colour") == "none");
  BOOST_TEST(nearest("memorandum") == "none");
  BOOST_TEST(nearest("") == "none");
}

BOOST_AUTO_TEST_CASE(the_nearest_of_several_wins) {
  BOOST_TEST(nearest("slice") == "slices");
  BOOST_TEST(nearest("seeds") == "seed");
}

BOOST_AUTO_TEST_CASE(long_names_are_handled) {
  const std::string name(1000, 'x');
  BOOST_TEST(nearest(name.c_str()) == "none");
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(base64)

namespace {

std::string encoded(const std::string& bytes) {
  std::string text(base64_length(bytes.size()), '?');
  encode_base64(bytes.data(), bytes.size(), text.data());
  return text;
}

bool decodes(const std::string& text, const std::string& bytes) {
  std::string result(bytes.size(), '?');
  return text.size() == base64_length(bytes.size()) &&
         decode_base64(text.data(), result.data(), result.size()) && result == bytes;
}

bool is_refused(const std::string& text, std::size_t count) {
  std::string result(count, '?');
  return !decode_base64(text.data(), result.data(), count);
}

}  // namespace

// RFC 4648, section 10.
BOOST_AUTO_TEST_CASE(the_standard_s_own_vectors) {
  const std::pair<const char*, const char*> vectors[] = {
      {"", ""},
      {"f", "Zg=="},
      {"fo", "Zm8="},
      {"foo", "Zm9v"},
      {"foob", "Zm9vYg=="},
      {"fooba", "Zm9vYmE="},
      {"foobar", "Zm9vYmFy"},
  };
  for (const auto& [bytes, text] : vectors) {
    BOOST_TEST(encoded(bytes) == text);
    BOOST_TEST(decodes(text, bytes));
  }
}

BOOST_AUTO_TEST_CASE(every_byte_comes_back) {
  std::string bytes;
  for (unsigned length = 0; length < 400; ++length) {
    BOOST_TEST(decodes(encoded(bytes), bytes));
    bytes += static_cast<char>(length * 37);
  }
}

BOOST_AUTO_TEST_CASE(what_is_no_base64_is_refused) {
  for (const char* text : {"Zm9~", "Zm\n9", "Zm9 ", "Zm9=", "Z===", "\xff\xff\xff\xff"})
    BOOST_TEST(is_refused(text, 3));
  for (const char* text : {"Zm9v", "Zm==", "Z==="}) BOOST_TEST(is_refused(text, 2));
  for (const char* text : {"Zm8=", "Z~==", "=g=="}) BOOST_TEST(is_refused(text, 1));
}

BOOST_AUTO_TEST_SUITE_END()

// The hash of a decimal is that of the server's numeric, whose digits are to base 10000.
BOOST_AUTO_TEST_SUITE(decimal)

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
