// Kind bloom with `grow`: filters that are opened one after another, against a plain reference; the
// rate of false positives while they fill.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "core/model/timing_model.hpp"
#include "unit/support/filters.hpp"
#include "unit/support/kind_checks.hpp"
#include "unit/support/statistics.hpp"
#include "unit/support/streams.hpp"

using namespace streamfilter;
using namespace unit;

BOOST_AUTO_TEST_SUITE(bloom_growth)

namespace {

struct Shape {
  std::uint64_t k, m, limit;
  bool by_keys;
};

// The derived numbers are in the words beside the options'.
Shape shape_of(const Parameters& p) {
  return {option_value(p, "k"), p.word[1], p.word[4], option_value(p, "grow") == 2};
}

class Reference {
 public:
  explicit Reference(const Shape& shape) : shape_(shape), filters_(1, One(shape.m)) {}

  bool insert(std::uint64_t hash) {
    for (const One& one : filters_) {
      bool all = true;
      for (unsigned i = 0; i < shape_.k; ++i) all = all && one.bits[position(hash, i, shape_.m)];
      if (all) return true;
    }
    const One& last = filters_.back();
    if ((shape_.by_keys ? last.keys : last.ones) >= shape_.limit && filters_.size() < 8)
      filters_.emplace_back(shape_.m);
    One& newest = filters_.back();
    for (unsigned i = 0; i < shape_.k; ++i) {
      const std::uint64_t at = position(hash, i, shape_.m);
      newest.ones += !newest.bits[at];
      newest.bits[at] = true;
    }
    ++newest.keys;
    return false;
  }

  std::size_t count() const { return filters_.size(); }

 private:
  struct One {
    explicit One(std::uint64_t m) : bits(m) {}
    std::vector<bool> bits;
    std::uint64_t keys = 0, ones = 0;
  };
  Shape shape_;
  std::vector<One> filters_;
};

}  // namespace

BOOST_AUTO_TEST_CASE(every_key_is_answered_as_by_the_reference) {
  for (const char* text :
       {"bloom(memory=2kB, k=3, grow=density, fpr=0.1)", "bloom(memory=192, k=2, grow=density)",
        "bloom(memory=2kB, k=3, grow=cardinality, fpr=0.1)",
        "bloom(memory=3kB, keys=500, fpr=0.2, grow=cardinality)"}) {
    Filter filter(text);
    Reference reference(shape_of(filter.parameters()));
    UniformStream stream(2000, 1);
    for (unsigned i = 0; i < 5000; ++i) {
      const Element element = stream.next();
      const bool seen = reference.insert(element.hash);
      BOOST_REQUIRE_EQUAL(filter.test(element), seen);
      BOOST_REQUIRE_EQUAL(filter.insert(element), seen);
      BOOST_REQUIRE(filter.test(element));
      BOOST_REQUIRE_EQUAL(filter.slice().state->own[1] + 1, reference.count());
      if (i % 500 == 0) BOOST_REQUIRE_MESSAGE(filter.is_valid(), text);
    }
    BOOST_TEST(filter.is_valid(), text);
    BOOST_TEST(reference.count() >= 4u);
  }
}

BOOST_AUTO_TEST_CASE(it_grows_as_far_as_keys_need) {
  for (const char* grow : {"density", "cardinality"}) {
    Filter filter(std::string("bloom(memory=80kB, keys=50000, fpr=0.05, slices=1, grow=") + grow +
                  ")");
    const Parameters p = filter.parameters();
    const double bound = find_ops(Kind::bloom)->fpr_bound(p);
    BOOST_TEST(bound <= .05);
    std::uint64_t next = 0, opened = 0;
    while (next < p.keys) {
      filter.insert(key(next++));
      if (filter.slice().state->own[1] == opened) continue;
      // `opened` filters are full: 1 - (1 - P)^j.
      opened = filter.slice().state->own[1];
      const std::uint64_t count = scaled(100000);
      const double positives = count_known(filter, 1000000, 1000000 + count);
      const double one = timing_model::share_of_rate(.05, 8);
      const double rate = timing_model::rate_of_filters(one, static_cast<double>(opened)) * count;
      // The fill of a filter of a given number of keys varies, by 1 % of the rate.
      BOOST_TEST(std::fabs(positives - rate) < 6 * std::sqrt(rate) + .04 * rate,
                 grow << " " << opened << ": " << positives << " instead of " << rate);
      BOOST_TEST(filter.estimate().fpr == rate / static_cast<double>(count), tolerance(.05));
    }
    BOOST_TEST(opened >= 4u);
    BOOST_TEST(opened < 8u);
    BOOST_TEST(filter.estimate().distinct == 50000, tolerance(.02));
    BOOST_TEST(count_known(filter, 1000000, 1000000 + scaled(100000)) <=
               most(scaled(100000), bound * 1.04));
  }
}

BOOST_AUTO_TEST_CASE(definitions) {
  for (const char* text :
       {"bloom(keys=10000, grow=density)", "bloom(keys=10000, grow=cardinality, slices=4)",
        "bloom(k=4, grow=density)", "bloom(k=4, grow=none)"})
    read_back(text);
  // grow=none means the same as no option.
  const Parameters p = parameters_of("bloom(k=4, grow=none)"), q = parameters_of("bloom(k=4)");
  BOOST_TEST(std::memcmp(&p, &q, sizeof p) == 0);
  // Memory and fpr alone determine the number of keys.
  const Parameters derived = parameters_of("bloom(grow=density)");
  BOOST_TEST(derived.keys > 0u);
  BOOST_TEST(find_ops(derived.kind)->fpr_bound(derived) <= 0.01);
  for (const char* text :
       {"bloom(keys=1000, grow=often)", "bloom(memory=10kB, keys=100000, grow=density)"})
    refusal(text);
}

// If no load reaches the limit, the first filter takes all keys, and its rate is the bound.
BOOST_AUTO_TEST_CASE(a_limit_out_of_reach) {
  const Parameters p =
      parameters_of("bloom(memory=192, keys=50, k=6, grow=cardinality, limit=429496729607)");
  const double m = static_cast<double>(p.word[1]);
  BOOST_TEST(find_ops(p.kind)->fpr_bound(p) == timing_model::rate(6, 50, m), tolerance(1e-12));
  BOOST_TEST(timing_model::rate_of_filters(1, 0) == 0);
}

BOOST_AUTO_TEST_CASE(merged_filters_remember_both) {
  for (const char* grow : {"density", "cardinality"})
    for (const std::uint64_t other : {100u, 1000u, 4000u}) {
      const std::string text = std::string("bloom(memory=4kB, k=4, fpr=0.2, grow=") + grow + ")";
      Filter a(text), b(text);
      share_stream(a.header());
      share_stream(b.header());
      insert_keys(a, 0, 1000);
      insert_keys(b, 100000, 100000 + other);
      BOOST_REQUIRE(a.merge(b));
      BOOST_TEST(a.is_valid());
      BOOST_TEST(count_known(a, 0, 1000) == 1000);
      BOOST_TEST(count_known(a, 100000, 100000 + other) == other);
      insert_keys(a, 200000, 205000);
      BOOST_TEST(a.is_valid());
    }
}

BOOST_AUTO_TEST_CASE(damaged_bytes_are_found_or_harmless) {
  for (const char* text : {"bloom(memory=1kB, k=3, fpr=0.2, grow=density)",
                           "bloom(memory=1kB, k=3, fpr=0.2, grow=cardinality)"}) {
    Filter sound = filled(text, 150);
    const std::uint64_t found = damage(sound, scaled(20000), [](Filter& filter) {
      for (std::uint64_t i = 0; i < 200; ++i) filter.insert(key(i + 1000));
    });
    BOOST_TEST(found > scaled(20000) / 2);
  }
}

BOOST_AUTO_TEST_SUITE_END()
