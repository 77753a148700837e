#include "core/base/text.hpp"

#include <boost/test/unit_test.hpp>
#include <string>

using namespace streamfilter;

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

BOOST_AUTO_TEST_SUITE(base64)

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
