// The queue of fingerprints in a line, with wide registers and without, against a plain list; and its model.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <random>
#include <vector>

#include "streamfilter/core/cache_line.hpp"
#include "streamfilter/core/queue_model.hpp"

using namespace streamfilter;
using queue_model::Shape;

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

// Where a fingerprint is in a list; the last place if it is not.
unsigned place_in(const std::vector<std::uint64_t>& list, std::uint64_t fingerprint,
                  unsigned length) {
  const auto at = std::find(list.begin(), list.end(), fingerprint);
  return at != list.end() ? static_cast<unsigned>(at - list.begin()) : length - 1;
}

#if defined(__x86_64__)
[[gnu::target("avx512f,popcnt")]] bool find_wide(const FingerprintQueue& queue,
                                                 std::uint64_t fingerprint, LineVector& reach) {
  return queue.find(fingerprint, reach);
}
[[gnu::target("avx512f,popcnt")]] void push_wide(FingerprintQueue& queue,
                                                 std::uint64_t fingerprint,
                                                 const LineVector& reach) {
  queue.push(fingerprint, reach);
}
bool has_wide_registers() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("popcnt");
}
#else
bool find_wide(const FingerprintQueue&, std::uint64_t, LineVector&) { return false; }
void push_wide(FingerprintQueue&, std::uint64_t, const LineVector&) {}
bool has_wide_registers() { return false; }
#endif

// All buckets of a line at once: what happens in one must not be seen in another.
void compare(const Shape& shape, bool wide, std::mt19937_64& random) {
  Line line{};
  std::vector<std::vector<std::uint64_t>> lists(shape.buckets());
  const std::uint64_t largest = low_bits(shape.bits);
  // Few different fingerprints, with long runs of ones and zeros among them.
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
    FingerprintQueue queue(shape.bits, shape.length, line.bytes, start);
    BOOST_REQUIRE(contents(queue) == lists[bucket]);
    LineVector reach;
    const bool found = wide ? find_wide(queue, fingerprint, reach) : queue.find(fingerprint, reach);
    BOOST_REQUIRE_EQUAL(queue.is_full(), lists[bucket].size() == shape.length);
    const unsigned before = place_in(lists[bucket], fingerprint, shape.length);
    BOOST_REQUIRE_EQUAL(queue.last_place(reach), before);
    BOOST_REQUIRE_EQUAL(found, touch(lists[bucket], fingerprint, shape.length));
    wide ? push_wide(queue, fingerprint, reach) : queue.push(fingerprint, reach);
    queue.store(line.bytes);
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
  for (unsigned bits = queue_model::kFewestBits; bits <= kWidestFingerprint; ++bits)
    for (unsigned length = 1; length <= queue_model::longest(bits); ++length, ++shapes)
      BOOST_TEST_CONTEXT(bits << " bits x " << length) {
        compare({bits, length}, false, random);
        if (has_wide_registers()) compare({bits, length}, true, random);
      }
  BOOST_TEST(shapes > 800u);
}

BOOST_AUTO_TEST_CASE(impossible_shapes) {
  BOOST_TEST((Shape{12, 42}.is_possible()));
  BOOST_TEST((!Shape{12, 43}.is_possible()));
  BOOST_TEST((Shape{3, 7}.is_possible()));
  BOOST_TEST((!Shape{3, 8}.is_possible()));  // there are seven different fingerprints
  BOOST_TEST((Shape{7, 64}.is_possible()));
  BOOST_TEST((!Shape{7, 65}.is_possible()));
}

// 1 % at .63 S and .1 % at .54 S keys for buckets of 31.
BOOST_AUTO_TEST_CASE(the_probability_of_falling_out) {
  using queue_model::fnr;
  BOOST_TEST(std::fabs(fnr(.63 * 31 * 1000, 31, 1000) - .01) < .0001);
  BOOST_TEST(std::fabs(fnr(.54 * 31 * 1000, 31, 1000) - .001) < .0002);
  BOOST_TEST(fnr(0, 31, 1000) == 0);
  BOOST_TEST(fnr(1e18, 31, 1000) == 1);
  // Against the sum of Poisson probabilities that it is.
  for (const double mean : {.5, 4., 20.})
    for (const unsigned length : {1u, 5u, 40u}) {
      double below = 0, one = std::exp(-mean);
      for (unsigned i = 0; i < length; one *= mean / ++i) below += one;
      BOOST_TEST(std::fabs(fnr(mean * 100, length, 100) - (1 - below)) < 1e-12);
    }
}

// No other shape that keeps fpr remembers more keys with 1 % false negatives.
BOOST_AUTO_TEST_CASE(the_best_shape) {
  const auto window = [](const Shape& shape) {  // keys of one line
    double low = 0, high = 1000;
    for (unsigned i = 0; i < 60; ++i) {
      const double middle = (low + high) / 2;
      (queue_model::fnr(middle, shape.length, shape.buckets()) <= .01 ? low : high) = middle;
    }
    return low;
  };
  for (const double fpr : {.9, .3, .1, .04, .01, .001, 1e-6, 1e-12}) {
    double most = 0;
    for (unsigned bits = queue_model::kFewestBits; bits <= kWidestFingerprint; ++bits)
      for (unsigned length = 1; length <= queue_model::longest(bits); ++length)
        if (const Shape shape{bits, length}; shape.fpr() <= fpr)
          most = std::max(most, window(shape));
    Shape best{};
    BOOST_TEST_REQUIRE(queue_model::best_shape(fpr, 0, 0, best));
    BOOST_TEST(best.is_possible());
    BOOST_TEST(best.fpr() <= fpr);
    BOOST_TEST(std::fabs(window(best) / most - 1) < 1e-9, fpr);
  }
  Shape best{};
  BOOST_TEST(!queue_model::best_shape(1e-15, 0, 0, best));
  BOOST_TEST_REQUIRE(queue_model::best_shape(.01, 16, 0, best));
  BOOST_TEST((best.bits == 16 && best.length == 32));
  BOOST_TEST_REQUIRE(queue_model::best_shape(.01, 0, 20, best));
  BOOST_TEST((best.bits == 11 && best.length == 20));
  BOOST_TEST(!queue_model::best_shape(.01, 6, 0, best));
}

BOOST_AUTO_TEST_SUITE_END()
