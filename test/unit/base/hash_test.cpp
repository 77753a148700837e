// Hashes are a part of the stored format: a filter saved on one machine is read on another. So
// every machine, compiler and build must compute these values.
#include <boost/test/unit_test.hpp>
#include <vector>

#include "core/base/hash.hpp"
#include "core/format/layout.hpp"
#include "unit/support/statistics.hpp"
#include "unit/support/streams.hpp"

using namespace streamfilter;
using namespace unit;

BOOST_AUTO_TEST_SUITE(hashing)

namespace {

constexpr std::uint64_t kPrime32 = 2654435761u;
constexpr std::uint64_t kPrime64 = 11400714785074694797u;

// The test vectors of the xxHash distribution (tests/sanity_test): this buffer and these hashes.
std::vector<unsigned char> sanity_buffer(std::size_t size) {
  std::vector<unsigned char> buffer(size);
  std::uint64_t generator = kPrime32;
  for (unsigned char& byte : buffer) {
    byte = static_cast<unsigned char>(generator >> 56);
    generator *= kPrime64;
  }
  return buffer;
}

struct Vector {
  std::size_t length;
  std::uint64_t seed;
  std::uint64_t hash;
};
constexpr Vector kVectors[] = {
    {0, 0, 0x2d06800538d394c2},    {0, kPrime64, 0xa8a6b918b2f0364a},
    {1, 0, 0xc44bdff4074eecdb},    {1, kPrime64, 0x032be332dd766ef8},
    {6, 0, 0x27b56a84cd2d7325},    {6, kPrime64, 0x84589c116ab59ab9},
    {12, 0, 0xa713daf0dfbb77e7},   {12, kPrime64, 0xe7303e1b2336de0e},
    {24, 0, 0xa3fe70bf9d3510eb},   {24, kPrime64, 0x850e80fc35bdd690},
    {48, 0, 0x397da259ecba1f11},   {48, kPrime64, 0xadc2cbaa44acc616},
    {80, 0, 0xbcdefbbb2c47c90a},   {80, kPrime64, 0xc6dd0cb699532e73},
    {195, 0, 0xcd94217ee362ec3a},  {195, kPrime64, 0xba68003d370cb3d9},
    {403, 0, 0xcdeb804d65c6dea4},  {403, kPrime64, 0x6259f6ecfd6443fd},
    {512, 0, 0x617e49599013cb6b},  {512, kPrime64, 0x3ce457de14c27708},
    {2048, 0, 0xdd59e2c3a5f038e0}, {2048, kPrime64, 0x66f81670669ababc},
    {2367, 0, 0xcb37aeb9e5d361ed}, {2367, kPrime64, 0xd2db3415b942b42a},
};

}  // namespace

BOOST_AUTO_TEST_CASE(bytes_hash_to_the_published_vectors_of_xxh3) {
  for (const Vector& vector : kVectors) {
    const auto buffer = sanity_buffer(vector.length);  // of the exact size: no byte beyond is read
    BOOST_TEST(hash_bytes(buffer.data(), buffer.size(), vector.seed) == vector.hash,
               "length " << vector.length << " seed " << vector.seed);
  }
}

BOOST_AUTO_TEST_CASE(a_word_hashes_as_its_eight_bytes_lowest_first) {
  const unsigned char bytes[] = {0xef, 0xcd, 0xab, 0x89, 0x67, 0x45, 0x23, 0x01};
  for (const std::uint64_t seed : {std::uint64_t{0}, kPrime64})
    BOOST_TEST(hash_word(0x0123456789abcdef, seed) == hash_bytes(bytes, sizeof bytes, seed));
  BOOST_TEST(hash_word(0, 0) == 0xc77b3abb6f87acd9u);
  BOOST_TEST(hash_word(1, 0) == 0x2fbc593564db792eu);
  BOOST_TEST(hash_word(1, 42) == 0xe3acd5dec7d7d3fbu);
}

BOOST_AUTO_TEST_CASE(columns_hash_as_the_words_of_their_hashes) {
  const std::uint64_t columns[] = {1, 2, 3};
  BOOST_TEST(hash_columns(columns, 1, 7) == hash_word(1, 7));
  BOOST_TEST(hash_columns(columns, 3, 0) == hash_bytes(columns, 24, 0));
  BOOST_TEST(hash_columns(columns, 3, 0) == 0x7c68b4906e7ea780u);
  BOOST_TEST(hash_columns(columns, 3, 42) == 0x404bfad924fa0d3bu);
}

BOOST_AUTO_TEST_CASE(the_order_of_columns_matters) {
  const std::uint64_t ab[] = {10, 20}, ba[] = {20, 10};
  BOOST_TEST(hash_columns(ab, 2, 0) != hash_columns(ba, 2, 0));
}

BOOST_AUTO_TEST_CASE(mix64_is_the_finaliser_of_splitmix64) {
  BOOST_TEST(mix64(0) == 0u);
  BOOST_TEST(mix64(1) == 0x5692161d100b05e5u);
  BOOST_TEST(mix64(2) == 0xdbd238973a2b148au);
  BOOST_TEST(mix64(0xdeadbeef) == 0x4e062702ec929eeau);
  BOOST_TEST(mix64(~std::uint64_t{0}) == 0xb4d055fcf2cbbd7bu);
}

BOOST_AUTO_TEST_CASE(the_generator_gives_the_published_outputs_of_splitmix64) {
  std::uint64_t state = 1234567;
  for (const std::uint64_t output :
       {6457827717110365317u, 3203168211198807973u, 9817491932198370423u, 4593380528125082431u,
        16408922859458223821u})
    BOOST_TEST(next_random(state) == output);
}

BOOST_AUTO_TEST_CASE(positions_are_the_same_everywhere) {
  struct Golden {
    std::uint64_t hash;
    unsigned i;
    std::uint64_t n, position;
  };
  const Golden golden[] = {
      {0, 0, 1, 0},
      {0, 0, 1000, 883},
      {0, 1, 1000, 431},
      {0, 31, 1000, 216},
      {0x0123456789abcdef, 0, 4294967311, 360331272},
      {0x0123456789abcdef, 1, 4294967311, 3581104807},
      {0x0123456789abcdef, 31, 4294967311, 1230391255},
      {~std::uint64_t{0}, 0, 70368744177607, 62905640666790},
      {~std::uint64_t{0}, 1, 70368744177607, 64218319156937},
      {~std::uint64_t{0}, 31, 70368744177607, 61069459297399},
  };
  for (const Golden& g : golden) BOOST_TEST(position(g.hash, g.i, g.n) == g.position);
}

BOOST_AUTO_TEST_CASE(scale_covers_the_whole_range_and_nothing_else) {
  const std::uint64_t largest = ~std::uint64_t{0};
  for (const std::uint64_t n : {std::uint64_t{1}, std::uint64_t{3}, std::uint64_t{1} << 32,
                                (std::uint64_t{1} << 32) + 15, std::uint64_t{1} << 49, largest}) {
    BOOST_TEST(scale(0, n) == 0u);
    BOOST_TEST(scale(largest, n) == n - 1);
  }
}

// n = 5 * 2^32 + 35, cut into 1000 bins: if any position were taken modulo 2^32, most bins would be
// empty. Odds of a false alarm: 1e-6 for each i.
BOOST_AUTO_TEST_CASE(positions_are_uniform_also_beyond_32_bits) {
  const std::uint64_t n = 5 * (std::uint64_t{1} << 32) + 35;
  for (const unsigned i : {0u, 1u, 7u, 63u}) {
    std::vector<std::uint64_t> bins(1000);
    for (std::uint64_t number = 0; number < scaled(1000000); ++number)
      ++bins[position(key(number).hash, i, n) / (n / bins.size() + 1)];
    BOOST_TEST(is_uniform(bins), "position " << i);
  }
}

// Input that is not hashed at all, 0, 1, 2, …, is also spread evenly.
BOOST_AUTO_TEST_CASE(positions_of_consecutive_hashes_are_uniform) {
  std::vector<std::uint64_t> bins(1000);
  for (std::uint64_t hash = 0; hash < scaled(1000000); ++hash) ++bins[position(hash, 2, 1000)];
  BOOST_TEST(is_uniform(bins));
}

// Two coordinates on a grid of 32 x 32: if one depended on the other, some cells would stay empty.
// Odds of a false alarm: 1e-6 for each pair.
BOOST_AUTO_TEST_CASE(positions_are_pairwise_independent) {
  for (unsigned i = 0; i < 4; ++i)
    for (unsigned j = i + 1; j < 5; ++j) {
      std::vector<std::uint64_t> bins(1024);
      for (std::uint64_t number = 0; number < scaled(200000); ++number) {
        const std::uint64_t hash = key(number).hash;
        ++bins[position(hash, i, 32) * 32 + position(hash, j, 32)];
      }
      BOOST_TEST(is_uniform(bins), "positions " << i << " and " << j);
    }
}

BOOST_AUTO_TEST_CASE(positions_do_not_depend_on_the_slice) {
  Parameters parameters{};
  parameters.slices = 64;
  std::vector<std::uint64_t> bins(64 * 16);
  for (std::uint64_t number = 0; number < scaled(500000); ++number) {
    const std::uint64_t hash = key(number).hash;
    ++bins[slice_of(parameters, hash) * 16 + position(hash, 0, 16)];
  }
  BOOST_TEST(is_uniform(bins));
}

BOOST_AUTO_TEST_CASE(chances_are_kept) {
  std::uint64_t state = 1;
  for (const double probability : {0.001, 0.3, 0.97}) {
    const double n = 100000;
    double count = 0;
    for (unsigned i = 0; i < n; ++i) count += random_chance(state, probability);
    BOOST_TEST(fits(count, n, probability));
  }
  BOOST_TEST(!random_chance(state, 0));
  BOOST_TEST(random_chance(state, 1));
}

BOOST_AUTO_TEST_SUITE_END()
