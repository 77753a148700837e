// The Stable Bloom Filter with layout blocked: one 64-byte line per key.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "core/model/stable_model.hpp"
#include "unit/support/filters.hpp"
#include "unit/support/kind_checks.hpp"
#include "unit/support/statistics.hpp"
#include "unit/support/streams.hpp"

using namespace streamfilter;
using namespace unit;

BOOST_AUTO_TEST_SUITE(stable_bloom_blocked)

BOOST_AUTO_TEST_CASE(a_key_touches_one_line) {
  for (const char* rest : {"", ", max=3", ", max=7, fpr=0.1", ", max=15, fpr=0.1"})
    BOOST_TEST_CONTEXT(rest) {
      Filter filter(std::string("sbf(memory=8kB, layout=blocked") + rest + ")");
      const Slice slice = slice_at(filter.header(), 0);
      std::vector<unsigned char> before(slice.body(), slice.body() + slice.bytes);
      for (std::uint64_t number = 0; number < 2000; ++number) {
        filter.insert(key(number));
        unsigned lines = 0;
        for (std::uint64_t line = 0; line < slice.bytes; line += 64)
          lines += std::memcmp(&before[line], slice.body() + line, 64) != 0;
        BOOST_REQUIRE(lines <= 1);
        std::memcpy(before.data(), slice.body(), slice.bytes);
      }
    }
}

// Eq. 17 with m = cells of a line, the K cells all different: on distinct keys, where Eq. 8 is
// exact, the bound holds, and the zeros come within 2 % of Eq. 7.
BOOST_AUTO_TEST_CASE(distinct_keys_reach_the_stable_point_and_the_bound) {
  for (const char* rest : {"fpr=0.1", "fpr=0.01", "fpr=0.001", "fpr=0.01, max=3", "fpr=0.1, max=7"})
    BOOST_TEST_CONTEXT(rest) {
      Filter filter(std::string("sbf(memory=16kB, layout=blocked, ") + rest + ")");
      const Parameters& p = filter.parameters();
      const double max = static_cast<double>(option_value(p, "max"));
      const double k = static_cast<double>(option_value(p, "k"));
      const double decrements = static_cast<double>(option_value(p, "p"));
      const double m = option_value(p, "max") == 7 ? 168 : 512 / (max == 1 ? 1 : 2);
      const double n = static_cast<double>(scaled(2000000));
      std::uint64_t number = 0;
      while (number < 400000) filter.insert(key(number++));
      double false_positives = 0;
      for (double i = 0; i < n; ++i) false_positives += filter.insert(key(number++));
      const double zeros = 1 - filter.estimate().fill;
      const double point = stable_model::stable_point(max, k, decrements, m);
      const double bound = find_ops(Kind::sbf)->fpr_bound(p);
      BOOST_TEST_MESSAGE(rest << ": zeros " << zeros << " Eq. 7 " << point << " fpr "
                              << false_positives / n << " Eq. 8 " << bound);
      BOOST_TEST(std::fabs(zeros / point - 1) < 0.02);
      BOOST_TEST(false_positives <= most(n, bound));
    }
}

BOOST_AUTO_TEST_CASE(what_was_just_inserted_is_seen) {
  Filter filter("sbf(memory=64kB, layout=blocked)");
  for (std::uint64_t number = 0; number < 100000; ++number) {
    filter.insert(key(number));
    BOOST_REQUIRE(filter.test(key(number)));
  }
  Problem problem;
  BOOST_TEST(check(filter.header(), filter.parameters().memory, problem), problem.message);
}

BOOST_AUTO_TEST_CASE(a_union_remembers_what_either_does) {
  merged_halves("sbf(memory=64kB, layout=blocked, max=7)", 1000);
}

BOOST_AUTO_TEST_SUITE_END()
