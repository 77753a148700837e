// The hint "Perhaps you meant …" appears for a typo, and only for a typo.
#include "core/base/text.hpp"

#include <boost/test/unit_test.hpp>
#include <string>

using namespace streamfilter;

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
