// Filters that age, with which bench/quality/windows.cpp compares the library's kinds.
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "bench/quality/window_kinds.hpp"

using namespace bench;
using streamfilter::hash_word;

BOOST_AUTO_TEST_SUITE(bench_windows)

namespace {

constexpr std::uint64_t kBits = 1 << 16;

// The rate of false positives over `count` new keys, after as many.
template <typename Tested>
double positives(Tested& filter, std::uint64_t count) {
  double found = 0;
  for (std::uint64_t key = 0; key < 2 * count; ++key)
    found += filter.insert(hash_word(key, 0)) && key >= count;
  return found / static_cast<double>(count);
}

// True if the latest `count` keys are known.
template <typename Tested>
bool knows_all(Tested& filter, std::uint64_t next, std::uint64_t window) {
  for (std::uint64_t lag = 1; lag <= window; ++lag)
    if (!filter.test(hash_word(next - lag, 0))) return false;
  return true;
}

}  // namespace

// Five standard errors of a binomial number (odds 6e-7 each), and a fiftieth for slices that are
// not quite as full as the formula has it.
BOOST_AUTO_TEST_CASE(age_partitioned_filters_have_the_rate_of_their_formula) {
  constexpr std::uint64_t kCount = 200000;
  for (const auto& [k, l] : {std::pair{4u, 2u}, {6u, 10u}, {8u, 8u}, {10u, 30u}}) {
    AgePartitioned filter(kBits, k, l);
    const double expected = age_partitioned_fpr(k, l),
                 error = std::sqrt(expected / static_cast<double>(kCount));
    BOOST_TEST(std::fabs(positives(filter, kCount) - expected) < 5 * error + expected / 50,
               k << " " << l << ": " << expected);
  }
}

BOOST_AUTO_TEST_CASE(they_know_their_windows) {
  constexpr std::uint64_t kCount = 50000;
  AgePartitioned partitioned(kBits, 8, 8);
  positives(partitioned, kCount);
  // l generations of ln 2 / k keys for each bit of a slice. A key that looks seen is not added
  // again.
  const auto window = static_cast<std::uint64_t>(8 * std::log(2) * (kBits / 16.) / 8);
  double missed = 0;
  for (std::uint64_t lag = 1; lag <= window; ++lag)
    missed += !partitioned.test(hash_word(2 * kCount - lag, 0));
  BOOST_TEST(missed <= 2 * age_partitioned_fpr(8, 8) * static_cast<double>(window));

  TimestampedCuckoo cuckoo(kBits, 12, 4);
  positives(cuckoo, kCount);
  const double slots = std::floor(kBits / 16. / 4) * 4;
  // Of 15 stamps, the oldest is gone except in its last moment.
  BOOST_TEST(knows_all(cuckoo, 2 * kCount, static_cast<std::uint64_t>(.95 * slots / 15) * 14));
  BOOST_TEST(!knows_all(cuckoo, 2 * kCount, static_cast<std::uint64_t>(.95 * slots)));

  TwoBuffers buffers(kBits, 7);
  positives(buffers, kCount);
  BOOST_TEST(!knows_all(buffers, 2 * kCount, kBits / 4));
}

BOOST_AUTO_TEST_CASE(bounds_are_those_of_their_papers) {
  BOOST_TEST(std::fabs(window_bound(.01) - 9.376) < .001);
  BOOST_TEST(std::fabs(set_bound(.01, 0) - std::log2(100)) < 1e-12);
  for (const double fpr : {.1, .01, .001}) {
    double before = window_bound(fpr);
    for (double fnr = 0; fnr < .9; fnr += .1) {
      BOOST_TEST(set_bound(fpr, fnr) < before);
      before = set_bound(fpr, fnr);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
