// Kind vqf without a window: rates, what is held and lost, deletion, merging, other sizes, options,
// and wrong bytes.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "core/kind/vector_quotient_steps.hpp"
#include "unit/support/filters.hpp"
#include "unit/support/kind_checks.hpp"
#include "unit/support/rates.hpp"
#include "unit/support/resizing.hpp"
#include "unit/support/statistics.hpp"
#include "unit/support/streams.hpp"

using namespace streamfilter;
using namespace unit;

BOOST_AUTO_TEST_SUITE(vector_quotient)

namespace {

const FilterOps& ops() { return *find_ops(Kind::vqf); }

std::uint64_t held(const Filter& filter) {
  return static_cast<std::uint64_t>(ops().held_keys(filter.parameters()));
}

double slots(const Parameters& p) {
  return static_cast<double>(vqf::lines_of(p, body_bytes(p)) * vqf::shape_of(p).slots * p.slices);
}

// The rate that new keys meet, against the estimate.
void check_fpr(const Filter& filter, std::uint64_t probes) {
  const double found = count_known(filter, 1u << 30, (1u << 30) + probes),
               predicted = filter.estimate().fpr, n = static_cast<double>(probes);
  BOOST_TEST(predicted <= filter.fpr_bound() * (1 + 1e-9));
  BOOST_TEST(found >= least(n, predicted * .98));
  BOOST_TEST(found <= most(n, predicted * 1.02));
}

}  // namespace

BOOST_AUTO_TEST_CASE(definitions_are_read_back) {
  for (const char* text :
       {"vqf()", "vqf(memory=192)", "vqf(memory=1kB, fpr=0.3)", "vqf(memory=1MB, fpr=1e-9)",
        "vqf(keys=1000)", "vqf(keys=1e7, fpr=0.001)", "vqf(memory=64kB, bits=12)",
        "vqf(memory=64kB, buckets=40)", "vqf(memory=64kB, bits=9, buckets=60)",
        "vqf(memory=64kB, growth=16)", "vqf(memory=64kB, origin='500,20,3')",
        "vqf(memory=192, bits=32, buckets=127)", "vqf(memory=64kB, bits=1, buckets=1)",
        "vqf(memory=64kB, window='1 hour')", "vqf(memory=64kB, window='1 hour', lateness='1 hour')",
        "vqf(memory=64kB, window='1 hour', ages=8, extend=yes)", "vqf(memory=256, window='1 day')",
        "vqf(memory=64kB, window='1000 rows', slices=3)", "vqf(memory=64kB, window='1 us')"})
    read_back(text);
  check_refused(
      Error::conflict,
      {"vqf(memory=64kB, fpr=1e-12)", "vqf(memory=64kB, ages=4)", "vqf(memory=64kB, extend=yes)",
       "vqf(lateness='1 hour')", "vqf(memory=64kB, window='5 rows', lateness='1 s')",
       "vqf(memory=64kB, fpr=1e-8, growth=1e6)", "vqf(memory=64kB, origin='20,20')",
       "vqf(memory=64kB, origin='1e6')", "vqf(memory=64kB, origin='20.5')"});
  check_refused(Error::unsupported, {"vqf(window='1 hour', lateness='61 minutes')",
                                     "vqf(memory=64kB, slicing=vertical, slices=4)"});
  check_refused(Error::too_small, {"vqf(memory=192, window='1 hour')"});
  check_refused(Error::out_of_range,
                {"vqf(bits=33)", "vqf(buckets=128)", "vqf(growth=0.5)", "vqf(window='1 s', ages=9)",
                 "vqf(window='1 s', ages=2)", "vqf(origin='5,4,3,2,1')"});
}

// Without what slices cost.
BOOST_AUTO_TEST_CASE(bits_per_key_are_those_of_the_design) {
  struct Case {
    const char* fpr;
    double known, window;
  };
  for (const Case& c : {Case{"0.1", 8.4, 11.8}, Case{"0.01", 9.95, 15.6}, Case{"0.001", 13.7, 19.4},
                        Case{"0.0001", 17.4, 23.6}, Case{"1e-6", 25.1, 31.8}}) {
    const std::string more = std::string(", fpr=") + c.fpr;
    const Parameters known = parameters_of("vqf(memory=64MB, slices=1" + more + ")"),
                     window =
                         parameters_of("vqf(memory=64MB, slices=1, window='1 hour'" + more + ")");
    BOOST_TEST(8 * 67108864. / ops().held_keys(known) < c.known, more);
    BOOST_TEST(8 * 67108864. / ops().held_keys(window) < c.window, more);
    BOOST_TEST(ops().fpr_bound(known) <= std::atof(c.fpr));
    BOOST_TEST(ops().fpr_bound(window) <= std::atof(c.fpr));
  }
}

// At every load, and far beyond the last free slot.
BOOST_AUTO_TEST_CASE(the_rate_is_what_the_filter_says) {
  for (const char* more : {"fpr=0.3", "fpr=0.1", "fpr=0.01", "fpr=0.001", "bits=5",
                           "bits=2, buckets=90", "fpr=0.02, slices=5", "fpr=1e-4"})
    BOOST_TEST_CONTEXT(more) {
      Filter filter(std::string("vqf(memory=64kB, ") + more + ")");
      std::uint64_t keys = 0;
      for (const double load : {.1, .5, .9, 1., 3.}) {
        const auto end = static_cast<std::uint64_t>(load * slots(filter.parameters()));
        insert_keys(filter, keys, end);
        keys = end;
        BOOST_TEST(filter.is_valid());
        check_fpr(filter, scaled(400000));
      }
      BOOST_TEST(filter.estimate().fill > .999);
    }
}

BOOST_AUTO_TEST_CASE(the_least_rate_is_kept, *boost::unit_test::label("long")) {
  Filter filter("vqf(memory=64kB, fpr=1e-6)");
  insert_keys(filter, 0, 40000);
  check_fpr(filter, scaled(100000000));
}

// In every size, one key in 10,000 at most is lost up to the number of keys held; none is missed
// before the first is lost.
BOOST_AUTO_TEST_CASE(keys_are_held_as_promised) {
  for (const char* fpr : {"0.1", "0.01", "0.001", "1e-6"})
    for (const char* memory : {"1500, slices=1", "16kB", "256kB", "256kB, slices=16", "4MB"}) {
      const std::string text = std::string("vqf(memory=") + memory + ", fpr=" + fpr + ")";
      double keys = 0, missed = 0;
      for (unsigned round = 0; keys < scaled(400000); ++round) {
        Filter filter(text);
        const std::uint64_t first = std::uint64_t{round} << 32, end = first + held(filter);
        insert_keys(filter, first, end);
        const double lost = static_cast<double>(end - first) - count_known(filter, first, end);
        keys += static_cast<double>(end - first);
        missed += lost;
      }
      BOOST_TEST(missed <= most(keys, 1.3e-4), text);
    }
}

BOOST_AUTO_TEST_CASE(memory_for_keys_holds_them) {
  for (const char* text :
       {"vqf(keys=1000)", "vqf(keys=300000, fpr=0.001)", "vqf(keys=50000, fpr=1e-7)"}) {
    const Filter filter = filled(text, parameters_of(text).keys);
    const double n = static_cast<double>(filter.parameters().keys);
    BOOST_TEST(count_known(filter, 0, filter.parameters().keys) >= n - most(n, 2e-4), text);
  }
}

BOOST_AUTO_TEST_CASE(distinct_keys_are_counted) {
  for (const char* more : {"fpr=0.1", "bits=3", "fpr=0.01"}) {
    Filter filter(std::string("vqf(memory=256kB, ") + more + ")");
    const auto keys = static_cast<std::uint64_t>(.9 * slots(filter.parameters()));
    insert_keys(filter, 0, keys);
    insert_keys(filter, 0, keys);
    const double n = static_cast<double>(keys), collisions = n * filter.fpr_bound();
    BOOST_TEST(std::fabs(filter.estimate().distinct - n) < 5 * std::sqrt(collisions), more);
  }
}

namespace {

// What a filter says of keys, by a set of (pair of lines, tag). Nothing is lost while there is
// room.
class PlainTags {
 public:
  explicit PlainTags(const Filter& filter) : p_(filter.parameters()) {}

  bool insert(std::uint64_t hash) { return !tags_.insert(tag(hash)).second; }
  bool erase(std::uint64_t hash) { return tags_.erase(tag(hash)) > 0; }

 private:
  std::vector<std::uint64_t> tag(std::uint64_t hash) const {
    const AnyShape shape = vqf::shape_of(p_);
    const vqf::Place place =
        vqf::place_of(p_, shape.buckets, shape.bits, vqf::lines_of(p_, body_bytes(p_)), hash);
    return {slice_of(p_, hash), std::min(place.line[0], place.line[1]),
            std::max(place.line[0], place.line[1]), place.bucket, place.remainder};
  }

  Parameters p_;
  std::set<std::vector<std::uint64_t>> tags_;
};

}  // namespace

BOOST_AUTO_TEST_CASE(it_is_a_set_of_tags) {
  for (const char* more :
       {"fpr=0.1", "fpr=0.01", "bits=3, buckets=20", "fpr=1e-6, slices=3", "bits=6, origin='9'"}) {
    Filter filter(std::string("vqf(memory=2kB, ") + more + ")");
    PlainTags plain(filter);
    std::mt19937_64 random(1);
    const auto keys = static_cast<std::uint64_t>(.8 * slots(filter.parameters()));
    const Compared counts = compare(filter, plain, static_cast<unsigned>(scaled(40000)), true,
                                    [&](auto& draw) { return draw() % keys; });
    BOOST_TEST(counts.repeats > scaled(5000));
    BOOST_TEST(counts.erased > scaled(500));
  }
}

BOOST_AUTO_TEST_CASE(answers_and_bytes_are_the_same_without_bmi2) {
  for (const char* more :
       {"fpr=0.1", "fpr=0.01", "fpr=0.001", "fpr=1e-4", "fpr=1e-5", "fpr=1e-6", "fpr=0.05"})
    for (const char* window :
         {"", ", window='1 s'", ", window='1 s', lateness='500 ms', extend=yes"}) {
      Filter native(std::string("vqf(memory=4kB, ") + more + window + ")"), plain = native;
      const Parameters& p = native.parameters();
      std::mt19937_64 random(2);
      for (unsigned i = 0; i < scaled(20000); ++i) {
        Element element = key(random() % 3 == 0 ? random() % 100 : random() % 3000);
        element.time = static_cast<std::int64_t>(i * 1000 + random() % 800000);
        const Slice slice = plain.slice();
        BOOST_REQUIRE_EQUAL(native.test(element),
                            (vqf::test_lines<AnyShape, false>(p, as_const(slice), element)));
        const bool seen = vqf::has_window(p)
                              ? vqf::insert_in_window<AnyShape, false>(p, slice, element, false)
                              : vqf::insert_known<AnyShape, false>(p, slice, element);
        BOOST_REQUIRE_EQUAL(native.insert(element), seen);
        if (i % 64 == 0)
          BOOST_REQUIRE(
              std::equal(slice.body(), slice.body() + slice.bytes, native.slice().body()));
      }
      BOOST_TEST(native.is_valid());
    }
}

// A part of the stored format.
BOOST_AUTO_TEST_CASE(bytes_are_what_they_were) {
  struct Case {
    const char* options;
    std::uint64_t checksum;
  };
  for (const Case& c : {
           Case{"seed=1", 6566857549426755232u},
           Case{"seed=1, fpr=1e-5, slices=3", 7950824759275887860u},
           Case{"seed=1, bits=5, buckets=70, origin='20,7'", 12529778763424289851u},
           Case{"seed=1, window='1 s', lateness='300 ms'", 273562260179989228u},
           Case{"seed=1, window='300 rows', ages=6", 892786565173232965u},
       }) {
    Filter filter(std::string("vqf(memory=2kB, ") + c.options + ")");
    for (std::uint64_t i = 0; i < 3000; ++i)
      filter.insert(at(i * i % 2003, static_cast<std::int64_t>(i * 1000)));
    for (std::uint64_t i = 0; i < 40; ++i) erase(filter.header(), key(i * i % 2003));
    BOOST_TEST(filter.is_valid());
    BOOST_TEST(checksum(filter.header()) == c.checksum,
               c.options << ": " << checksum(filter.header()));
  }
}

BOOST_AUTO_TEST_CASE(merged_filters_know_keys_of_both) {
  for (const char* more : {"", ", fpr=1e-4", ", slices=3", ", origin='500'"}) {
    const std::string text = std::string("vqf(memory=64kB") + more + ")";
    merged_halves(text, 20000);
    const MergedFew few = merge_few(text, 5000, true);
    BOOST_TEST(few.both.estimate().distinct == 15000, tolerance(.01));
  }
  merge_with_itself_for_ever("vqf(memory=64kB)");
}

// Of two full filters about half of each is left, and the rate stays.
BOOST_AUTO_TEST_CASE(full_filters_lose_as_much_of_each) {
  Filter a("vqf(memory=64kB)"), b = a;
  const std::uint64_t n = held(a);
  insert_keys(a, 0, n);
  insert_keys(b, n, 2 * n);
  BOOST_TEST_REQUIRE(a.merge(b));
  BOOST_TEST(a.is_valid());
  const double all = static_cast<double>(n);
  BOOST_TEST(same_rate(count_known(a, 0, n), all, count_known(a, n, 2 * n), all));
  check_fpr(a, scaled(400000));
}

// Again and again, to any size: no key is missed while there is room, and the rate is what the
// filter says.
BOOST_AUTO_TEST_CASE(another_size_is_possible_again_and_again) {
  for (const char* window : {"", ", window='1 hour'"}) {
    Filter filter(std::string("vqf(memory=64kB, fpr=1e-4, slices=2") + window + ")");
    const std::uint64_t keys = 4000;
    std::uint64_t end = keys;
    insert_keys(filter, 0, keys);
    for (const char* memory :
         {"100kB", "97kB", "250kB", "50kB", "51kB", "400kB", "40kB", "90kB", "1MB", "36kB"}) {
      BOOST_TEST_CONTEXT(text_of(filter.parameters()) << " to " << memory) {
        BOOST_TEST_REQUIRE(resize(
            filter, std::string("vqf(memory=") + memory + ", slices=2, fpr=1e-4" + window + ")"));
        BOOST_TEST(count_known(filter, 0, end) == static_cast<double>(end));
        insert_keys(filter, end, end + 200);
        end += 200;
        check_fpr(filter, scaled(2000000));
      }
    }
    BOOST_TEST(option_value(filter.parameters(), "origin") == 4u);
    // A fifth number would be needed.
    BOOST_TEST(!resize(filter, std::string("vqf(memory=30kB, slices=2, fpr=1e-4") + window + ")"));
    BOOST_TEST(resize(filter, std::string("vqf(memory=60kB, slices=1, fpr=1e-4") + window + ")"));
    BOOST_TEST(count_known(filter, 0, end) == static_cast<double>(end));
  }
}

BOOST_AUTO_TEST_CASE(growth_is_planned_for) {
  Filter filter("vqf(memory=64kB, growth=4)");
  insert_keys(filter, 0, held(filter));
  BOOST_TEST_REQUIRE(resize(filter, "vqf(memory=256kB, slices=1, growth=4)"));
  BOOST_TEST(filter.fpr_bound() <= .01);
  insert_keys(filter, held(filter), 2 * held(filter));
  check_fpr(filter, scaled(400000));
  const OverfullLimit limit = overfull_limit(filter.parameters(), .01);
  BOOST_TEST(limit.is_none());
  Filter other = filled("vqf(memory=64kB)", 50000);
  BOOST_TEST_REQUIRE(resize(other, "vqf(memory=256kB, slices=1)"));
  BOOST_TEST(count_known(other, 0, 50000) >= 50000. - most(50000, 1e-4));
  BOOST_TEST(!overfull_limit(other.parameters(), .01).is_none());
  insert_keys(other, 50000, 200000);
  check_fpr(other, scaled(400000));
}

BOOST_AUTO_TEST_CASE(wrong_bytes_are_refused_or_do_no_harm) {
  for (const char* text :
       {"vqf(memory=1kB)", "vqf(memory=1kB, fpr=0.2)", "vqf(memory=1kB, fpr=1e-6)",
        "vqf(memory=1kB, bits=30, buckets=3)", "vqf(memory=2kB, window='1 hour')",
        "vqf(memory=2kB, window='1000 rows')", "vqf(memory=2kB, window='1 s', ages=7)"}) {
    const Filter filter = filled(text, 60);
    BOOST_TEST(damage(filter, scaled(20000),
                      [](Filter& bad) {
                        for (std::uint64_t i = 0; i < 40; ++i) {
                          bad.insert(at(i * 7, static_cast<std::int64_t>(i) << (i % 50)));
                          erase(bad.header(), key(i * 5));
                        }
                        Filter into = bad;
                        into.merge(bad);
                        BOOST_REQUIRE(into.is_valid());
                      }) > scaled(10000),
               text);
  }
  const Filter filter = filled("vqf(memory=1kB)", 60);
  for (unsigned own = 0; own < 5; ++own)
    BOOST_TEST(!with_own(filter, own, ~std::uint64_t{0}).is_valid(), own);
}

BOOST_AUTO_TEST_SUITE_END()
