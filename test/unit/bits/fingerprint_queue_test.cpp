// The queue of fingerprints in a line, with wide registers and without, against a plain list; and
// its model.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <random>
#include <vector>

#include "core/bits/fingerprint_queue.hpp"
#include "core/model/clq_model.hpp"

using namespace streamfilter;
using clq_model::LineShape;

BOOST_AUTO_TEST_SUITE(fingerprint_queue)

namespace {

struct Line {
  alignas(kLineBytes) unsigned char bytes[kLineBytes];
};

std::vector<std::uint64_t> contents(const FingerprintQueue& queue) {
  std::vector<std::uint64_t> all;
  for (unsigned i = 0; i < queue.size(); ++i) all.push_back(queue.get(i));
  return all;
}

// Moves to the front or pushes in front, on a list.
bool touch(std::vector<std::uint64_t>& list, std::uint64_t fingerprint, unsigned length) {
  const auto at = std::find(list.begin(), list.end(), fingerprint);
  const bool found = at != list.end();
  if (found) list.erase(at);
  list.insert(list.begin(), fingerprint);
  if (list.size() > length) list.pop_back();
  return found;
}

// Where a fingerprint is in a list; the last field if it is not.
unsigned place_in(const std::vector<std::uint64_t>& list, std::uint64_t fingerprint,
                  unsigned length) {
  const auto at = std::find(list.begin(), list.end(), fingerprint);
  return at != list.end() ? static_cast<unsigned>(at - list.begin()) : length - 1;
}

struct Touched {
  bool has, found, is_full;
  unsigned last_field;
};

// Moves to the front or pushes in front, in a line.
template <bool kWide, bool kAlone>
[[gnu::always_inline]] inline Touched touch_line(const LineShape& shape, unsigned char* line,
                                                 unsigned start, std::uint64_t fingerprint) {
  BasicFingerprintQueue<kWide, kAlone> queue(shape.bits, shape.length, line, start);
  LineVector reach;
  Touched touched;
  touched.has = queue.has(fingerprint);
  touched.found = queue.find(fingerprint, reach);
  touched.is_full = queue.is_full();
  touched.last_field = queue.last_field(reach);
  queue.push(fingerprint, reach);
  queue.store(line);
  return touched;
}

template <bool kAlone>
FOR_WIDE_REGISTERS Touched touch_wide(const LineShape& shape, unsigned char* line, unsigned start,
                                      std::uint64_t fingerprint) {
  return touch_line<true, kAlone>(shape, line, start, fingerprint);
}

template <bool kAlone>
Touched touch(const LineShape& shape, unsigned char* line, unsigned start,
              std::uint64_t fingerprint, bool wide) {
  return wide ? touch_wide<kAlone>(shape, line, start, fingerprint)
              : touch_line<false, kAlone>(shape, line, start, fingerprint);
}

// Works on all buckets of a line at once, to see that one does not change another.
void compare(const LineShape& shape, bool wide, bool alone, std::mt19937_64& random) {
  Line line{};
  std::vector<std::vector<std::uint64_t>> lists(shape.buckets());
  const std::uint64_t largest = low_bits(shape.bits);
  // Uses few different fingerprints, among them long runs of ones and of zeros.
  std::vector<std::uint64_t> fingerprints;
  for (unsigned i = 0; i < shape.length + shape.length / 2 + 2; ++i)
    fingerprints.push_back(i == 0   ? largest
                           : i == 1 ? 1
                           : i == 2 ? largest - largest / 2
                                    : 1 + random() % largest);
  for (unsigned i = 0; i < 6 * shape.length * shape.buckets() + 20; ++i) {
    const unsigned bucket = static_cast<unsigned>(random() % shape.buckets());
    const std::uint64_t fingerprint = fingerprints[random() % fingerprints.size()];
    const unsigned start = bucket * shape.bits * shape.length;
    BOOST_REQUIRE(contents({shape.bits, shape.length, line.bytes, start}) == lists[bucket]);
    const unsigned before = place_in(lists[bucket], fingerprint, shape.length);
    const bool was_full = lists[bucket].size() == shape.length;
    const Touched touched = alone ? touch<true>(shape, line.bytes, start, fingerprint, wide)
                                  : touch<false>(shape, line.bytes, start, fingerprint, wide);
    BOOST_REQUIRE_EQUAL(touched.is_full, was_full);
    BOOST_REQUIRE_EQUAL(touched.last_field, before);
    BOOST_REQUIRE_EQUAL(touched.has, touched.found);
    BOOST_REQUIRE_EQUAL(touched.found, touch(lists[bucket], fingerprint, shape.length));
  }
  for (unsigned bucket = 0; bucket < shape.buckets(); ++bucket)
    BOOST_REQUIRE(contents(FingerprintQueue(shape.bits, shape.length, line.bytes,
                                            bucket * shape.bits * shape.length)) == lists[bucket]);
  for (unsigned bit = shape.bits * shape.length * shape.buckets(); bit < kLineBits; ++bit)
    BOOST_REQUIRE((line.bytes[bit / 8] >> bit % 8 & 1) == 0);
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_shape_is_a_queue) {
  std::mt19937_64 random(1);
  unsigned shapes = 0;
  if (!has_wide_registers()) BOOST_TEST_MESSAGE("this processor has no wide registers");
  for (unsigned bits = clq_model::kMinBits; bits <= kMaxFingerprintBits; ++bits)
    for (unsigned length = 1; length <= clq_model::longest(bits); ++length, ++shapes)
      BOOST_TEST_CONTEXT(bits << " bits x " << length) {
        const LineShape shape{bits, length};
        for (const bool wide : {false, true})
          for (const bool alone : {false, true})
            if ((!wide || has_wide_registers()) && (!alone || shape.buckets() == 1))
              compare(shape, wide, alone, random);
      }
  BOOST_TEST(shapes > 800u);
}

BOOST_AUTO_TEST_CASE(impossible_shapes) {
  BOOST_TEST((LineShape{12, 42}.is_possible()));
  BOOST_TEST((!LineShape{12, 43}.is_possible()));
  BOOST_TEST((LineShape{3, 7}.is_possible()));
  BOOST_TEST((!LineShape{3, 8}.is_possible()));  // there are seven different fingerprints
  BOOST_TEST((LineShape{7, 64}.is_possible()));
  BOOST_TEST((!LineShape{7, 65}.is_possible()));
}

// 1 % at .63 S and .1 % at .54 S keys for buckets of 31.
BOOST_AUTO_TEST_CASE(the_probability_of_falling_out) {
  using clq_model::fnr;
  BOOST_TEST(std::fabs(fnr(.63 * 31 * 1000, 31, 1000) - .01) < .0001);
  BOOST_TEST(std::fabs(fnr(.54 * 31 * 1000, 31, 1000) - .001) < .0002);
  BOOST_TEST(fnr(0, 31, 1000) == 0);
  BOOST_TEST(fnr(1e18, 31, 1000) == 1);
  // The model equals this sum of Poisson probabilities.
  for (const double mean : {.5, 4., 20.})
    for (const unsigned length : {1u, 5u, 40u}) {
      double below = 0, one = std::exp(-mean);
      for (unsigned i = 0; i < length; one *= mean / ++i) below += one;
      BOOST_TEST(std::fabs(fnr(mean * 100, length, 100) - (1 - below)) < 1e-12);
    }
}

// No other shape that keeps fpr remembers more keys with 1 % false negatives.
BOOST_AUTO_TEST_CASE(the_best_shape) {
  const auto window = [](const LineShape& shape) {  // keys of one line
    double low = 0, high = 1000;
    for (unsigned i = 0; i < 60; ++i) {
      const double middle = (low + high) / 2;
      (clq_model::fnr(middle, shape.length, shape.buckets()) <= .01 ? low : high) = middle;
    }
    return low;
  };
  for (const double fpr : {.9, .3, .1, .04, .01, .001, 1e-6, 1e-12}) {
    double most = 0;
    for (unsigned bits = clq_model::kMinBits; bits <= kMaxFingerprintBits; ++bits)
      for (unsigned length = 1; length <= clq_model::longest(bits); ++length)
        if (const LineShape shape{bits, length}; shape.fpr() <= fpr)
          most = std::max(most, window(shape));
    LineShape best{};
    BOOST_TEST_REQUIRE(clq_model::best_shape(fpr, 0, 0, best));
    BOOST_TEST(best.is_possible());
    BOOST_TEST(best.fpr() <= fpr);
    BOOST_TEST(std::fabs(window(best) / most - 1) < 1e-9, fpr);
  }
  LineShape best{};
  BOOST_TEST(!clq_model::best_shape(1e-15, 0, 0, best));
  BOOST_TEST_REQUIRE(clq_model::best_shape(.01, 16, 0, best));
  BOOST_TEST((best.bits == 16 && best.length == 32));
  BOOST_TEST_REQUIRE(clq_model::best_shape(.01, 0, 20, best));
  BOOST_TEST((best.bits == 11 && best.length == 20));
  BOOST_TEST(!clq_model::best_shape(.01, 6, 0, best));
}

BOOST_AUTO_TEST_SUITE_END()
