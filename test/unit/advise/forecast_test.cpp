// Forecasts from a sample of a stream's keys.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <memory>
#include <set>
#include <vector>

#include "bench/lib/streams.hpp"
#include "core/advise/advise.hpp"
#include "unit/support/filters.hpp"

using namespace streamfilter;
using namespace unit;

BOOST_AUTO_TEST_SUITE(forecast)

namespace {

struct Rows {
  std::vector<std::uint64_t> hashes;
  std::unique_ptr<bool[]> repeated;
  SampledRows sampled{};

  Rows(std::vector<std::uint64_t> all, double rate) : hashes(std::move(all)) {
    std::size_t size = 2;
    while (size < 2 * hashes.size()) size *= 2;
    std::vector<std::uint64_t> table(size);
    repeated = std::make_unique<bool[]>(hashes.size());
    const std::size_t repeats =
        find_repeats(hashes.data(), hashes.size(), table.data(), size, repeated.get());
    sampled = {hashes.data(), repeated.get(), hashes.size(), rate, repeats};
  }

  Forecast trial(const char* text) const {
    Filter filter(text);
    Trial trial(filter.header());
    trial.take(sampled, 0, sampled.count / 3);
    trial.take(sampled, sampled.count / 3, sampled.count);
    return trial.forecast();
  }
};

std::vector<std::uint64_t> zipf_hashes(unsigned rows) {
  bench::Zipf stream(50000, 1, 1);
  std::vector<std::uint64_t> hashes;
  for (unsigned i = 0; i < rows; ++i) hashes.push_back(hash_word(stream.next(), 0));
  return hashes;
}

}  // namespace

BOOST_AUTO_TEST_CASE(repeats_are_those_of_a_set) {
  std::vector<std::uint64_t> hashes = zipf_hashes(20000);
  hashes.insert(hashes.begin(), {0, 1, 0, ~std::uint64_t{0}});  // 0 counts as 1
  const Rows rows(hashes, 1);
  std::set<std::uint64_t> seen;
  std::size_t repeats = 0;
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    const bool is_new = seen.insert(std::max<std::uint64_t>(hashes[i], 1)).second;
    BOOST_REQUIRE_EQUAL(rows.repeated[i], !is_new);
    repeats += !is_new;
  }
  BOOST_TEST(rows.sampled.repeats == repeats);
  BOOST_TEST(rows.sampled.distinct() == static_cast<double>(seen.size()));
}

// A quarter of the keys in a quarter of the memory make the same share of errors.
BOOST_AUTO_TEST_CASE(a_sample_makes_the_errors_of_all) {
  const std::vector<std::uint64_t> all = zipf_hashes(300000);
  std::vector<std::uint64_t> quarter;
  for (const std::uint64_t hash : all)
    if (sampling_position(hash) >> 62 == 0) quarter.push_back(hash);
  const Rows whole(all, 1), sample(quarter, .25);
  const char* const filters[][2] = {{"clq(memory=64kB, fpr=0.01)", "clq(memory=16kB, fpr=0.01)"},
                                    {"sbf(memory=64kB, fpr=0.01)", "sbf(memory=16kB, fpr=0.01)"},
                                    {"lru(memory=64kB)", "lru(memory=16kB)"},
                                    {"rlbsbf(memory=64kB, k=2)", "rlbsbf(memory=16kB, k=2)"}};
  for (const auto& filter : filters) {
    const Forecast truth = whole.trial(filter[0]), foretold = sample.trial(filter[1]);
    BOOST_TEST_CONTEXT(filter[0]) {
      BOOST_TEST(std::fabs(foretold.fpr.rate - truth.fpr.rate) < 4 * foretold.fpr.error);
      BOOST_TEST(std::fabs(foretold.fnr.rate - truth.fnr.rate) < 4 * foretold.fnr.error);
      BOOST_TEST(foretold.fnr.error < .1);
    }
  }
}

BOOST_AUTO_TEST_CASE(nothing_to_count) {
  const Rows none({}, 1), once({1, 2, 3}, 1);
  BOOST_TEST(std::isnan(none.trial("clq(memory=4kB)").fpr.rate));
  BOOST_TEST(std::isnan(once.trial("clq(memory=4kB)").fnr.rate));
  BOOST_TEST(once.trial("clq(memory=4kB)").fpr.rate == 0);
  BOOST_TEST(once.trial("clq(memory=4kB)").fpr.error > .1);  // of three rows
}

BOOST_AUTO_TEST_CASE(every_recipe_makes_a_filter_of_its_memory) {
  Recipe recipes[kMaxRecipes];
  const unsigned count = list_recipes(recipes);
  BOOST_TEST(count > 15u);
  BOOST_TEST(count < kMaxRecipes);
  for (unsigned i = 0; i < count; ++i)
    for (const std::uint64_t memory : {64u << 10, 1u << 20}) {
      Definition requested;
      requested.give(Common::memory);
      requested.parameters.memory = memory;
      requested.parameters.fpr = .01;
      Parameters parameters;
      BOOST_REQUIRE(follow(recipes[i], requested, memory, 1e5, parameters));
      BOOST_TEST(parameters.memory <= memory);
      BOOST_TEST((parameters.kind == recipes[i].kind));
    }
}

BOOST_AUTO_TEST_SUITE_END()
