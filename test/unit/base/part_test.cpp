// Parts of a stream must be the same on every machine and in every release.
#include <boost/test/unit_test.hpp>

#include "core/base/hash.hpp"

using namespace streamfilter;

BOOST_AUTO_TEST_SUITE(partition)

BOOST_AUTO_TEST_CASE(golden_values_of_parts) {
  const std::uint64_t key = hash_word(42, kPartSeed);
  BOOST_TEST(part_of(key, 1) == 0u);
  BOOST_TEST(part_of(key, 10) == 1u);
  BOOST_TEST(part_of(key, 1000) == 184u);
  BOOST_TEST(part_of(key, 2147483647) == 395966917u);
}

BOOST_AUTO_TEST_CASE(finer_partitions_refine_coarser_ones) {
  for (std::uint64_t i = 0; i < 10'000; ++i) {
    const std::uint64_t hash = hash_word(i, kPartSeed);
    BOOST_TEST_REQUIRE(part_of(hash, 21) / 3 == part_of(hash, 7));
  }
}

BOOST_AUTO_TEST_SUITE_END()
