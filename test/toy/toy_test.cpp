// The kind of this folder is in the table, as the loops over it find it.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <string>

#include "core/kind/kind_list.hpp"
#include "every_kind.hpp"
#include "unit/support/filters.hpp"

using namespace streamfilter;

BOOST_AUTO_TEST_SUITE(toy)

BOOST_AUTO_TEST_CASE(it_is_in_the_table_by_name_and_number) {
  BOOST_REQUIRE(find_ops("toy") != nullptr);
  BOOST_TEST(find_ops(Kind::toy) == &toy_ops);
  BOOST_TEST(find_ops("toy") == &toy_ops);
  BOOST_TEST(static_cast<std::size_t>(Kind::toy) == all_ops().size());
}

BOOST_AUTO_TEST_CASE(it_is_among_those_that_tests_loop_over) {
  const std::vector<std::string> all = every_kind::definitions("64kB", 100);
  BOOST_TEST(std::count(all.begin(), all.end(), "toy(memory=64kB)") == 1);
}

BOOST_AUTO_TEST_SUITE_END()
