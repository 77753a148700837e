// Kinds of counting cells, the Stable Bloom Filter and those aware of importance, with layout
// blocked: one 64-byte line per key.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "core/model/stable_model.hpp"
#include "unit/support/filters.hpp"
#include "unit/support/kind_checks.hpp"
#include "unit/support/statistics.hpp"
#include "unit/support/streams.hpp"

using namespace streamfilter;
using namespace unit;

BOOST_AUTO_TEST_SUITE(cells_blocked)

namespace {

Element ranked(std::uint64_t number) {
  return with_importance(number, static_cast<double>(number % 8));
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_key_touches_one_line) {
  for (const char* text :
       {"sbf(memory=8kB, layout=blocked)", "sbf(memory=8kB, layout=blocked, max=3)",
        "sbf(memory=8kB, layout=blocked, max=7, fpr=0.1)",
        "sbf(memory=8kB, layout=blocked, max=15, fpr=0.1)", "ibf2c(memory=8kB, layout=blocked)",
        "ibfmc(memory=8kB, layout=blocked)"})
    BOOST_TEST_CONTEXT(text) {
      Filter filter(text);
      const Slice slice = filter.slice();
      std::vector<unsigned char> before(slice.body(), slice.body() + slice.bytes);
      for (std::uint64_t number = 0; number < 2000; ++number) {
        filter.insert(ranked(number));
        unsigned lines = 0;
        for (std::uint64_t line = 0; line < slice.bytes; line += 64)
          lines += std::memcmp(&before[line], slice.body() + line, 64) != 0;
        BOOST_REQUIRE(lines <= 1);
        std::memcpy(before.data(), slice.body(), slice.bytes);
      }
      BOOST_TEST(filter.is_valid());
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
      const std::uint64_t n = scaled(2000000);
      insert_keys(filter, 0, 400000);
      const double false_positives = insert_keys(filter, 400000, 400000 + n);
      const double zeros = 1 - filter.estimate().fill;
      const double point = stable_model::stable_point(max, k, decrements, m);
      BOOST_TEST_MESSAGE(rest << ": zeros " << zeros << " Eq. 7 " << point << ", "
                              << false_positives << " false positives of " << n << " keys, Eq. 8 "
                              << filter.fpr_bound());
      BOOST_TEST(std::fabs(zeros / point - 1) < 0.02);
      BOOST_TEST(false_positives <= most(n, filter.fpr_bound()));
    }
}

// Distinct keys, all most important or of any importance.
BOOST_AUTO_TEST_CASE(the_bound_holds_for_any_importance) {
  for (const char* kind : {"ibf2c", "ibfmc"})
    for (const char* rest : {"fpr=0.1", "fpr=0.01", "fpr=0.01, max=3", "fpr=0.01, max=2, k=3"})
      for (const bool even : {false, true})
        BOOST_TEST_CONTEXT(kind << " " << rest << (even ? ", of any importance" : "")) {
          Filter filter(std::string(kind) + "(memory=16kB, layout=blocked, " + rest + ")");
          std::mt19937_64 random(1);
          const auto draw = [&](std::uint64_t number) {
            return with_importance(number, even ? static_cast<double>(random() % 8) : 15);
          };
          insert_keys(filter, 0, 100000, draw);
          const std::uint64_t n = scaled(300000);
          const double positives = insert_keys(filter, 100000, 100000 + n, draw);
          BOOST_TEST(positives <= most(n, filter.fpr_bound()));
        }
}

BOOST_AUTO_TEST_CASE(what_was_just_inserted_is_seen) {
  Filter filter("sbf(memory=64kB, layout=blocked)");
  for (std::uint64_t number = 0; number < 100000; ++number) {
    filter.insert(key(number));
    BOOST_REQUIRE(filter.test(key(number)));
  }
  BOOST_TEST(filter.is_valid());
}

BOOST_AUTO_TEST_CASE(a_union_remembers_what_either_does) {
  merged_halves("sbf(memory=64kB, layout=blocked, max=7)", 1000);
  merged_halves("ibfmc(memory=64kB, layout=blocked)", 1000,
                [](std::uint64_t number) { return with_importance(number, 7); });
}

BOOST_AUTO_TEST_CASE(definitions_read_back) {
  for (const char* text : {"ibf2c(layout=blocked)", "ibfmc(layout=blocked, max=3)",
                           "ibfh(layout=blocked, delete=random)"})
    BOOST_TEST(text_of(read_back(text)).find("layout=blocked") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(deletion_by_value_is_refused) {
  for (const char* text : {"ibfh(layout=blocked)", "ibfmc(layout=blocked, delete=value)"}) {
    const Problem problem = refusal(text);
    BOOST_TEST((problem.error == Error::unsupported));
    BOOST_TEST(std::string(problem.hint) == "Use layout scattered, or delete random.");
  }
}

BOOST_AUTO_TEST_SUITE_END()
