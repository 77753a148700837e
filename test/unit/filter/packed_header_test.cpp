// The header of stored filters: it gives back the parameters, is short, and nothing else is read.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "core/filter/value_form.hpp"
#include "every_kind.hpp"
#include "unit/support/filters.hpp"

using namespace streamfilter;
using namespace unit;

BOOST_AUTO_TEST_SUITE(packed_header)

namespace {

// With numbers as long as users give them, beside what every kind has.
constexpr const char* kLong[] = {
    "bloom(memory=1000000003, keys=123456789, fpr=0.000123, seed=18446744073709551615)",
    "bloom(memory=2003, k=5, slices='2,3', slicing=diced, dice=vh, seed=12345678901234567890)",
    "bloom(memory=2003, slices=4, k1=2, k2=3, nulls=not distinct)",
    "timer(memory=10MB, keys=100000, window='400 days', lateness='36 hours', fpr=1e-6, "
    "seed=12345678901234567890)",
    "clq(memory=10MB, fpr=1e-6, window='400 days', lateness='36 hours', policy=second, "
    "seed=12345678901234567890)",
    "vqf(memory=1TB, keys=123456789012, fpr=2.5e-7, window='31536000123456 us', lateness='1 hour', "
    "ages=6, extend=yes, seed=12345678901234567890)",
    "ibf2c(memory=1MB, importance_range='0.25,1000', fpr=0.01, seed=12345678901234567890)",
    "ibfmc(memory=1MB, importance_levels='-1e9,0,1,2,5,10,20,50,100', max=12, seed=7)",
    "sqf(memory=1MB, r=14, r_prime=9, buckets=40, seed=12345678901234567890)",
};

Problem problem_of(const std::vector<unsigned char>& bytes, Parameters& parameters) {
  Problem problem;
  std::size_t size;
  if (unpack_header(bytes.data(), bytes.size(), parameters, size, problem))
    BOOST_TEST(size <= bytes.size());
  return problem;
}

bool gives(const std::vector<unsigned char>& bytes, const Parameters& wanted) {
  Parameters parameters{};
  const Problem problem = problem_of(bytes, parameters);
  BOOST_TEST(!problem, problem.message);
  return std::memcmp(&parameters, &wanted, sizeof wanted) == 0;
}

}  // namespace

BOOST_AUTO_TEST_CASE(parameters_come_back_from_64_bytes) {
  for (const std::string& text : every_kind::definitions_and(kLong, "64kB", 1000)) {
    const Parameters p = parameters_of(text);
    const PackedHeader packed(p);
    BOOST_TEST(packed.size == 64u, text);
    BOOST_TEST(gives({packed.bytes, packed.bytes + packed.size}, p), text);
    BOOST_TEST(stored_bytes(p) <= p.memory, text);
    BOOST_TEST(stored_bytes(p) + 64 * p.slices > p.memory, text);
  }
}

BOOST_AUTO_TEST_CASE(long_lists_take_more) {
  std::string list = "0";
  for (int i = 1; i < 10; ++i) list += ", " + std::to_string(i) + ".23456789012";
  const Parameters p = parameters_of(
      "ibfmc(memory=1MB, max=15, seed=12345678901234567890, importance_levels='" + list + "')");
  const PackedHeader packed(p);
  BOOST_TEST(packed.size == 128u);
  BOOST_TEST(gives({packed.bytes, packed.bytes + packed.size}, p));
  Parameters cut;
  BOOST_TEST(bool(problem_of({packed.bytes, packed.bytes + 64}, cut)));
}

// What is read with a changed byte is another header, and not a second way to write the same.
BOOST_AUTO_TEST_CASE(a_changed_byte_is_refused_or_says_something_else) {
  for (const std::string& text : every_kind::definitions_and(kLong, "64kB", 1000)) {
    const Parameters p = parameters_of(text);
    const PackedHeader packed(p);
    for (std::size_t at = kHostWord; at < packed.size; ++at)
      for (const unsigned change : {1u, 2u, 16u, 64u, 128u, 255u}) {
        std::vector<unsigned char> bytes(packed.bytes, packed.bytes + packed.size);
        bytes[at] ^= static_cast<unsigned char>(change);
        Parameters other{};
        if (problem_of(bytes, other)) continue;
        BOOST_TEST_REQUIRE(std::memcmp(&other, &p, sizeof p) != 0, text << ", byte " << at);
        const PackedHeader again(other);
        BOOST_TEST_REQUIRE(
            std::memcmp(again.bytes + kHostWord, &bytes[kHostWord], packed.size - kHostWord) == 0);
      }
  }
}

BOOST_AUTO_TEST_CASE(a_newer_format_is_told_apart_from_damage) {
  const PackedHeader packed(parameters_of("bloom(memory=1kB, k=3)"));
  std::vector<unsigned char> bytes(packed.bytes, packed.bytes + packed.size);
  Parameters read;
  bytes[8] = 2;
  BOOST_TEST((problem_of(bytes, read).error == Error::newer_version));
  bytes[8] = 0;
  BOOST_TEST((problem_of(bytes, read).error == Error::corrupt));
  BOOST_TEST((problem_of({bytes.begin(), bytes.begin() + 63}, read).error == Error::corrupt));
}

// Of a filter of 1 kB, 128 bytes lie ahead of its cells.
BOOST_AUTO_TEST_CASE(a_small_filter_is_mostly_cells) {
  const Parameters p = parameters_of("vqf(memory=1kB, fpr=0.001)");
  BOOST_TEST(body_bytes(p) == 1024u - 128);
  BOOST_TEST(binary_size(p) == 1024u + kChecksumBytes);
}

BOOST_AUTO_TEST_SUITE_END()
