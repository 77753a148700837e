// Kind clq with an importance: against plain lists, also with a window, and its benefit.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "unit/support/cache_lines.hpp"
#include "unit/support/filters.hpp"
#include "unit/support/kind_checks.hpp"
#include "unit/support/statistics.hpp"
#include "unit/support/streams.hpp"

using namespace streamfilter;
using namespace unit;

BOOST_AUTO_TEST_SUITE(cache_line_importance)

namespace {

Element element_of(std::uint64_t number, double importance, std::int64_t time = 0) {
  return {key(number).hash, importance, time};
}

struct Entry {
  std::uint64_t fingerprint;
  std::int64_t time;
};

// A plain version of the rule. `levels`: 0, the most important, up to `parts`. Ticks are 1 us and
// begin at time 0; elements come in order.
class Reference {
 public:
  Reference(const Parameters& p, std::int64_t window)
      : places(p), fifo_(option_value(p, "policy") == 1), window_(window) {}

  bool insert(const Element& element, unsigned level, unsigned parts) {
    std::vector<Entry>& list = lists_[places.bucket(element.hash)];
    if (window_ > 0)
      list.erase(std::remove_if(list.begin(), list.end(),
                                [&](const Entry& e) { return element.time - e.time >= window_; }),
                 list.end());
    const std::uint64_t fingerprint = places.fingerprint(element.hash);
    const std::size_t slot = level * (places.length * 3 / 4) / parts;
    const auto found = std::find_if(list.begin(), list.end(),
                                    [&](const Entry& e) { return e.fingerprint == fingerprint; });
    if (found != list.end()) {
      const std::size_t i = static_cast<std::size_t>(found - list.begin());
      if (!fifo_ && slot < i)
        std::rotate(list.begin() + static_cast<std::ptrdiff_t>(slot), found, found + 1);
      return true;
    }
    list.insert(list.begin() + static_cast<std::ptrdiff_t>(std::min(slot, list.size())),
                {fingerprint, element.time});
    if (list.size() > places.length) list.pop_back();
    return false;
  }

  const CacheLines places;

 private:
  bool fifo_;
  std::int64_t window_;
  std::map<CacheLines::Bucket, std::vector<Entry>> lists_;
};

constexpr double kInfinite = std::numeric_limits<double>::infinity();

}  // namespace

BOOST_AUTO_TEST_CASE(the_rule_is_followed) {
  for (const std::string shape :
       {"bits=12", "bits=16, bucket=24", "bits=8, bucket=4", "bits=8, bucket=13, policy=fifo",
        "bits=5, bucket=7", "bits=48, bucket=9", "bits=20, bucket=1", "bits=20, bucket=2",
        "bits=7, bucket=42"})
    for (const std::int64_t window : {0, 16})
      for (const bool ranged : {true, false}) {
        const std::string text =
            "clq(memory=1kB, slices=1, " + shape + (window > 0 ? ", window='16 us'" : "") +
            (ranged ? ", importance_range='0,80')" : ", importance_levels='-1,5,100')");
        BOOST_TEST_CONTEXT(text) {
          Filter filter(text);
          BOOST_TEST(uses_importance(filter.parameters()));
          Reference reference(filter.parameters(), window);
          std::mt19937_64 random(1);
          unsigned repeats = 0;
          for (std::uint64_t i = 0; i < scaled(20000); ++i) {
            // Every level at its middle, its lower end, and beyond the ends.
            const unsigned parts = ranged ? 7 : 3,
                           part = static_cast<unsigned>(random() % (parts + 1));
            double importance = part * 10 + (random() % 2 ? 5 : 0);
            if (!ranged) importance = std::vector<double>{-2, -1, 5, 100}[part];
            if (part == parts && random() % 2) importance = random() % 2 ? kInfinite : 1e6;
            if (part == 0 && random() % 2) importance = random() % 2 ? -kInfinite : NAN;
            const Element element =
                element_of(random() % (reference.places.slots * 3 / 2 + 2), importance,
                           static_cast<std::int64_t>(i / (reference.places.slots / 8 + 1)));
            const bool seen = reference.insert(element, parts - part, parts);
            BOOST_REQUIRE_EQUAL(filter.test(element), seen);
            BOOST_REQUIRE_EQUAL(filter.insert(element), seen);
            BOOST_REQUIRE(filter.test(element));
            repeats += seen;
            if (i % 500 == 0) BOOST_REQUIRE(filter.is_valid());
          }
          BOOST_TEST(filter.is_valid());
          BOOST_TEST(repeats > scaled(20000) / 20);
        }
      }
}

// Half of the keys matter; all come once more after as many others as the filter has slots.
BOOST_AUTO_TEST_CASE(what_matters_is_remembered_longer) {
  Filter ranked("clq(memory=64kB, slices=1, importance_levels='1')"),
      plain("clq(memory=64kB, slices=1)");
  const std::uint64_t gap = static_cast<std::uint64_t>(window_keys(plain.parameters(), .2));
  const std::uint64_t count = gap + 100000;
  double missed[2] = {}, all[2] = {}, missed_plain = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    ranked.insert(element_of(i, static_cast<double>(i % 2)));
    plain.insert(element_of(i, 0));
    if (i < gap) continue;
    const unsigned matters = (i - gap) % 2;
    ++all[matters];
    missed[matters] += !ranked.test(element_of(i - gap, matters));
    missed_plain += !plain.test(element_of(i - gap, 0));
  }
  // Equal rates would not differ so much by chance.
  const double mean = missed_plain / (all[0] + all[1]);
  BOOST_TEST(missed[1] < least(all[1], mean));
  BOOST_TEST(missed[0] > most(all[0], mean));
}

// The bound is the rate of the least important key among equals, equal fingerprints aside. One key
// in 40 is tested, so that hardly two share a bucket.
BOOST_AUTO_TEST_CASE(the_least_important_are_missed_as_foretold) {
  Filter filter("clq(memory=640kB, slices=1, importance_levels='1')");
  const Parameters& p = filter.parameters();
  const double gap = window_keys(p, .1);
  BOOST_TEST(gap < window_keys(parameters_of("clq(memory=640kB, slices=1)"), .1) / 2);
  const std::uint64_t distance = static_cast<std::uint64_t>(gap), before = 4 * p.memory,
                      count = scaled(400000);
  double missed = 0, n = 0;
  for (std::uint64_t i = 0; i < before + count; ++i) {
    filter.insert(element_of(i, 0));
    if (i < before || i % 40 != 0) continue;
    ++n;
    missed += !filter.test(element_of(i - distance, 0));
  }
  const FilterOps& ops = *find_ops(Kind::clq);
  const double rate = ops.fnr_at(p, static_cast<double>(distance));
  BOOST_TEST(missed <= most(n, rate));
  BOOST_TEST(missed >= least(n, rate * (1 - ops.fpr_bound(p))));
}

BOOST_AUTO_TEST_CASE(the_false_positive_rate_is_kept) {
  Filter filter("clq(memory=4kB, fpr=0.05, importance_range='0,8')");
  std::mt19937_64 random(1);
  const std::uint64_t count = scaled(400000);
  const double positives = insert_keys(filter, 0, count, [&](std::uint64_t i) {
    return with_importance(i, static_cast<double>(random() % 8));
  });
  BOOST_TEST(positives <= most(count, filter.fpr_bound()));
  BOOST_TEST(positives > count * .02);
}

BOOST_AUTO_TEST_CASE(definitions) {
  for (const char* text : {"clq(importance_range='0,100')", "clq(importance_levels='3,5,7')",
                           "clq(window='1 hour', importance_levels='1', policy=fifo)"}) {
    const Parameters p = read_back(text);
    BOOST_TEST(uses_importance(p));
  }
  BOOST_TEST(!uses_importance(parameters_of("clq(window='1 hour')")));
  BOOST_TEST(uses_importance(parameters_of("ibfmc()")));
  for (const char* text :
       {"clq(importance_range='0,100', importance_levels='1')", "clq(importance_range='1')",
        "clq(importance_range='2,1')", "clq(importance_levels='2,1')"})
    refusal(text);
}

BOOST_AUTO_TEST_SUITE_END()
