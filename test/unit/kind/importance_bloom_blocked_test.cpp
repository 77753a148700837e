// Importance-aware Bloom filters with layout blocked: one 64-byte line per key.
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "unit/support/filters.hpp"
#include "unit/support/kind_checks.hpp"
#include "unit/support/statistics.hpp"
#include "unit/support/streams.hpp"

using namespace streamfilter;
using namespace unit;

BOOST_AUTO_TEST_SUITE(importance_bloom_blocked)

namespace {

Element with_importance(std::uint64_t number, double importance) {
  Element element = key(number);
  element.importance = importance;
  return element;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_key_touches_one_line) {
  for (const char* kind : {"ibf2c", "ibfmc"}) BOOST_TEST_CONTEXT(kind) {
      Filter filter(std::string(kind) + "(memory=8kB, layout=blocked)");
      const Slice slice = filter.slice();
      std::vector<unsigned char> before(slice.body(), slice.body() + slice.bytes);
      for (std::uint64_t number = 0; number < 2000; ++number) {
        filter.insert(with_importance(number, static_cast<double>(number % 8)));
        unsigned lines = 0;
        for (std::uint64_t line = 0; line < slice.bytes; line += 64)
          lines += std::memcmp(&before[line], slice.body() + line, 64) != 0;
        BOOST_REQUIRE(lines <= 1);
        std::memcpy(before.data(), slice.body(), slice.bytes);
      }
      BOOST_TEST(filter.is_valid());
    }
}

// Distinct keys, all most important or of any importance.
BOOST_AUTO_TEST_CASE(the_bound_holds) {
  for (const char* kind : {"ibf2c", "ibfmc"})
    for (const char* rest : {"fpr=0.1", "fpr=0.01", "fpr=0.01, max=3", "fpr=0.01, max=2, k=3"})
      for (const bool even : {false, true})
        BOOST_TEST_CONTEXT(kind << " " << rest << (even ? ", of any importance" : "")) {
          Filter filter(std::string(kind) + "(memory=16kB, layout=blocked, " + rest + ")");
          std::mt19937_64 random(1);
          const double n = static_cast<double>(scaled(300000)),
                       bound = ops_of(filter.header()).fpr_bound(filter.parameters());
          double positives = 0;
          std::uint64_t number = 0;
          for (double i = -100000; i < n; ++i) {
            const bool seen = filter.insert(
                with_importance(number++, even ? static_cast<double>(random() % 8) : 15));
            if (i >= 0) positives += seen;
          }
          BOOST_TEST_MESSAGE(kind << " " << rest << " p " << option_value(filter.parameters(), "p")
                                  << ": " << positives / n << " of " << bound);
          BOOST_TEST(positives <= most(n, bound));
        }
}

BOOST_AUTO_TEST_CASE(a_union_remembers_what_either_does) {
  merged_halves("ibfmc(memory=64kB, layout=blocked)", 1000,
                [](std::uint64_t number) { return with_importance(number, 7); });
}

BOOST_AUTO_TEST_CASE(definitions_read_back) {
  for (const char* text : {"ibf2c(layout=blocked)", "ibfmc(layout=blocked, max=3)",
                           "ibfh(layout=blocked, delete=random)"}) {
    const Parameters p = read_back(text);
    BOOST_TEST(text_of(p).find("layout=blocked") != std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(deletion_by_value_is_refused) {
  for (const char* text : {"ibfh(layout=blocked)", "ibfmc(layout=blocked, delete=value)"}) {
    const Problem problem = refusal(text);
    BOOST_TEST((problem.error == Error::unsupported));
    BOOST_TEST(std::string(problem.hint) == "Use layout scattered, or delete random.");
  }
}

BOOST_AUTO_TEST_SUITE_END()
