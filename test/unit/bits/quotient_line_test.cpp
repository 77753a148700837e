// Lines of tags against a plain map: what is found, ages, equal bytes in every way of working on
// them, and wrong bytes.
#include "core/bits/quotient_line.hpp"

#include <boost/test/unit_test.hpp>
#include <cstring>
#include <map>
#include <random>

#include "unit/support/streams.hpp"

using namespace streamfilter;

BOOST_AUTO_TEST_SUITE(quotient_lines)

namespace {

struct Tag {
  unsigned bucket;
  std::uint64_t remainder;
  auto operator<=>(const Tag&) const = default;
};

template <typename Shape>
struct Found {
  unsigned hit, code, count;
};

// Puts a tag that is not there, or takes it out, or looks only.
enum class Step { look, put, take_out, set_code };

template <typename Shape, bool kBmi2>
[[gnu::always_inline]] inline Found<Shape> take_step(const Shape& shape, unsigned char* bytes,
                                                     Step step, Tag tag, unsigned code) {
  QuotientLine<Shape, kBmi2> line(shape, bytes);
  const auto spot = line.look(tag.bucket, tag.remainder);
  const Found<Shape> found = {spot.hit, spot.hit ? line.code(spot.slot) : 0, spot.count};
  if (step == Step::put) line.put(spot, tag.bucket, tag.remainder, code);
  if (step == Step::take_out) line.take_out(spot.slot);
  if (step == Step::set_code) line.set_code(spot.slot, code);
  return found;
}

template <typename Shape>
FOR_BMI2 Found<Shape> step_bmi2(const Shape& shape, unsigned char* bytes, Step step, Tag tag,
                                unsigned code) {
  return take_step<Shape, true>(shape, bytes, step, tag, code);
}

template <typename Shape>
Found<Shape> step_plain(const Shape& shape, unsigned char* bytes, Step step, Tag tag,
                        unsigned code) {
  return take_step<Shape, false>(shape, bytes, step, tag, code);
}

struct alignas(64) Bytes {
  unsigned char of[kLineBytes] = {};
};

// A map of tags to codes, as it would be read from the line.
template <typename Shape>
std::map<Tag, unsigned> content(const Shape& shape, const unsigned char* bytes) {
  const QuotientLine<Shape, false, const unsigned char> line(shape, bytes);
  std::map<Tag, unsigned> tags;
  line.for_each_entry([&](unsigned slot, unsigned bucket, std::uint64_t remainder) {
    BOOST_REQUIRE((tags.insert({{bucket, remainder}, line.code(slot)}).second));
  });
  return tags;
}

template <typename Shape>
void compare(const Shape& shape, std::uint64_t rounds) {
  const AnyShape any = {shape.slots, shape.buckets, shape.bits, shape.ages};
  Bytes plain, fixed, bmi2;
  std::map<Tag, unsigned> truth;
  std::mt19937_64 random(shape.slots);
  for (std::uint64_t i = 0; i < rounds; ++i) {
    // Few buckets at times, so that runs are long; and tags that are there.
    const unsigned buckets = i / 1000 % 3 == 0 ? std::min(shape.buckets, 3u) : shape.buckets;
    Tag tag = {static_cast<unsigned>(random() % buckets), random() & low_bits(shape.bits)};
    if (!truth.empty() && random() % 2 == 0)
      tag = std::next(truth.begin(), static_cast<long>(random() % truth.size()))->first;
    const auto there = truth.find(tag);
    const unsigned code = static_cast<unsigned>(random() & low_bits(shape.ages));
    const bool shrinks = i / 500 % 2 == 0 || truth.size() == shape.slots;
    const Step step =
        there == truth.end()
            ? (truth.size() < shape.slots && (!shrinks || random() % 4 == 0) ? Step::put
                                                                             : Step::look)
        : shrinks && random() % 2 ? Step::take_out
                                  : Step::set_code;
    const unsigned hit = there != truth.end(), old = hit ? there->second : 0,
                   count = static_cast<unsigned>(truth.size());
    const auto check = [&](const auto& found) {
      BOOST_REQUIRE_EQUAL(found.hit, hit);
      BOOST_REQUIRE_EQUAL(found.code, old);
      BOOST_REQUIRE_EQUAL(found.count, count);
    };
    check(step_plain(any, plain.of, step, tag, code));
    check(step_plain(shape, fixed.of, step, tag, code));
    if (has_bmi2()) check(step_bmi2(shape, bmi2.of, step, tag, code));
    if (step == Step::put || step == Step::set_code) truth[tag] = code;
    if (step == Step::take_out) truth.erase(tag);
    BOOST_REQUIRE(std::memcmp(plain.of, fixed.of, kLineBytes) == 0);
    BOOST_REQUIRE(!has_bmi2() || std::memcmp(plain.of, bmi2.of, kLineBytes) == 0);
    if (i % 16 != 0) continue;
    const QuotientLine<AnyShape, false> line(any, plain.of);
    BOOST_REQUIRE(line.is_valid());
    BOOST_REQUIRE((content(any, plain.of) == truth));
    if (shape.ages == 0 || truth.empty()) continue;
    const std::uint64_t base = random(), steps = random() % ((1u << shape.ages) + 1);
    std::uint64_t within = 0, least = ~std::uint64_t{0}, first = 0, found;
    for (unsigned slot = 0; slot < truth.size(); ++slot) {
      const std::uint64_t ahead = (line.code(slot) - base) & low_bits(shape.ages);
      within |= std::uint64_t{ahead < steps} << slot;
      if (ahead < least) least = ahead, first = 0;
      first |= std::uint64_t{ahead == least} << slot;
    }
    BOOST_REQUIRE_EQUAL(line.within(base, steps), within);
    if (truth.size() < shape.slots) continue;
    BOOST_REQUIRE_EQUAL(line.least_ahead(base, found), first);
    BOOST_REQUIRE_EQUAL(found, least);
  }
}

template <unsigned slots, unsigned buckets, unsigned bits, unsigned ages>
void compare_shape() {
  BOOST_TEST_CONTEXT(slots << " slots of " << bits << " bits and " << ages)
  compare(FixedShape<slots, buckets, bits, ages>{}, unit::scaled(100000));
}

}  // namespace

BOOST_AUTO_TEST_CASE(lines_hold_what_was_put_in) {
  compare_shape<63, 127, 4, 0>();
  compare_shape<53, 88, 7, 0>();
  compare_shape<39, 44, 11, 0>();
  compare_shape<22, 50, 20, 0>();
  compare_shape<15, 17, 32, 0>();
  compare_shape<63, 1, 6, 0>();
  compare_shape<50, 63, 7, 0>();
  compare_shape<50, 64, 7, 0>();
  compare_shape<49, 65, 7, 0>();
  compare_shape<37, 31, 8, 4>();
  compare_shape<30, 62, 10, 4>();
  compare_shape<19, 37, 20, 4>();
  compare_shape<9, 127, 32, 8>();
  compare_shape<31, 47, 8, 6>();
}

BOOST_AUTO_TEST_CASE(ones_are_counted_and_found) {
  std::mt19937_64 random(1);
  for (unsigned i = 0; i < 100000; ++i) {
    const std::uint64_t word = random() & (i % 2 ? random() : ~std::uint64_t{0}) & random();
    const unsigned ones = count_ones<false>(word);
    BOOST_REQUIRE_EQUAL(ones, static_cast<unsigned>(std::popcount(word)));
    std::uint64_t rest = word;
    for (unsigned k = 0; k < ones; ++k, rest &= rest - 1)
      BOOST_REQUIRE_EQUAL(find_one<false>(word, k), static_cast<unsigned>(std::countr_zero(rest)));
    BOOST_REQUIRE(find_one<false>(word, ones) < 64);
  }
}

// Any bytes are refused, or can be used.
BOOST_AUTO_TEST_CASE(wrong_bytes_do_no_harm) {
  std::mt19937_64 random(3);
  unsigned valid = 0;
  for (unsigned i = 0; i < unit::scaled(400000); ++i) {
    const unsigned bits = static_cast<unsigned>(1 + random() % kMaxRemainder),
                   ages = static_cast<unsigned>(random() % (kMaxAgeBits + 1)),
                   buckets = static_cast<unsigned>(1 + random() % kMaxBuckets),
                   slots = std::min(kMaxSlots, (kLineBits - buckets) / (bits + ages + 1));
    const AnyShape shape = {slots, buckets, bits, ages};
    Bytes bytes;
    QuotientLine<AnyShape, false> line(shape, bytes.of);
    const auto put_some = [&] {
      for (unsigned n = static_cast<unsigned>(random() % slots); n > 0; --n) {
        const unsigned bucket = static_cast<unsigned>(random() % buckets);
        const std::uint64_t remainder = random() & low_bits(bits);
        const auto spot = line.look(bucket, remainder);
        if (!spot.hit && spot.count < slots) line.put(spot, bucket, remainder, random());
      }
    };
    put_some();
    BOOST_REQUIRE(line.is_valid());
    for (unsigned n = static_cast<unsigned>(random() % 3); n > 0; --n)
      bytes.of[random() % kLineBytes] ^= static_cast<unsigned char>(1u << random() % 8);
    if (!line.is_valid()) continue;
    ++valid;
    put_some();
    while (line.count() > 0) line.take_out(static_cast<unsigned>(random() % line.count()));
    BOOST_REQUIRE(line.is_valid());
    for (const unsigned char byte : bytes.of) BOOST_REQUIRE(byte == 0);
  }
  BOOST_TEST(valid > unit::scaled(100000));
}

BOOST_AUTO_TEST_SUITE_END()
