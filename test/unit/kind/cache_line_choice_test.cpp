// Kind clq with a choice of two lines: its rule against a plain reference, the promised rates, and
// refused definitions.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "core/bits/line_tail.hpp"
#include "unit/support/cache_lines.hpp"
#include "unit/support/filters.hpp"
#include "unit/support/kind_checks.hpp"
#include "unit/support/statistics.hpp"
#include "unit/support/streams.hpp"

using namespace streamfilter;
using namespace unit;

BOOST_AUTO_TEST_SUITE(cache_line_choice)

namespace {

// A plain version of the rule: lists, a key in up to two of them, and a count of entries for each.
class Reference {
 public:
  explicit Reference(const Parameters& p)
      : length_(option_value(p, "bucket")),
        different_((std::uint64_t{1} << option_value(p, "bits")) - 1),
        lines_((p.slice_bytes - sizeof(SliceState)) / 64),
        slices_(p.slices),
        of_(slices_ * lines_) {}

  bool insert(std::uint64_t hash) {
    Line *first = line(hash, 0), *second = line(hash, 2), *to = first;
    const std::uint64_t fingerprint = 1 + position(hash, 1, different_);
    const bool seen = first->has(fingerprint) || second->has(fingerprint);
    if (seen ? !first->has(fingerprint) : second->entered < first->entered) to = second;
    to->remove(fingerprint);
    to->list.insert(to->list.begin(), fingerprint);
    if (to->list.size() > length_) to->list.pop_back();
    to->entered += !seen;
    return seen;
  }

  bool erase(std::uint64_t hash) {
    bool was_there = false;
    for (const unsigned i : {0u, 2u}) {
      Line& one = *line(hash, i);
      if (!one.remove(1 + position(hash, 1, different_))) continue;
      --one.entered;
      was_there = true;
    }
    return was_there;
  }

  std::size_t count() const {
    std::size_t sum = 0;
    for (const Line& one : of_) sum += one.list.size();
    return sum;
  }

  int spread() const {
    const auto fewer = [](const Line& a, const Line& b) { return a.entered < b.entered; };
    const auto [low, high] = std::minmax_element(of_.begin(), of_.end(), fewer);
    return high->entered - low->entered;
  }

 private:
  struct Line {
    std::vector<std::uint64_t> list;
    int entered = 0;

    bool has(std::uint64_t one) const {
      return std::find(list.begin(), list.end(), one) != list.end();
    }
    bool remove(std::uint64_t one) {
      const auto at = std::find(list.begin(), list.end(), one);
      if (at == list.end()) return false;
      list.erase(at);
      return true;
    }
  };

  Line* line(std::uint64_t hash, unsigned which) {
    return &of_[scale(hash, slices_) * lines_ + position(hash, which, lines_)];
  }

  std::uint64_t length_, different_, lines_, slices_;
  std::vector<Line> of_;
};

std::uint64_t lines_of(const Parameters& p) {
  return p.slices * (p.slice_bytes - sizeof(SliceState)) / 64;
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_rule_is_followed) {
  for (const char* text :
       {"clq(memory=16kB, lines=2)", "clq(memory=16kB, lines=2, slices=3)",
        "clq(memory=192, lines=2, slices=1)", "clq(memory=4kB, lines=2, bits=16, bucket=20)",
        "clq(memory=4kB, lines=2, fpr=0.1)", "clq(memory=4kB, lines=2, bits=8, bucket=7)",
        "clq(memory=4kB, lines=2, bits=48)", "clq(memory=8kB, lines=2, fpr=0.001, seed=7)"})
    BOOST_TEST_CONTEXT(text) {
      Filter filter(text);
      const Parameters& p = filter.parameters();
      Reference reference(p);
      const std::uint64_t slots = lines_of(p) * option_value(p, "bucket");
      const Compared counts = compare(filter, reference, 20000, true, [&](std::mt19937_64& random) {
        return random() % 3 == 0 ? random() % (slots / 4 + 1) : random() % (2 * slots);
      });
      const double used = filter.estimate().fill * static_cast<double>(slots);
      BOOST_TEST(std::fabs(used - static_cast<double>(reference.count())) < 1e-6);
      BOOST_TEST(reference.spread() < 16);  // more than 5 bits of entries could not express
      BOOST_TEST(counts.repeats > 2000u);
      BOOST_TEST(counts.erased > 300u);
    }
}

BOOST_AUTO_TEST_CASE(numbers_of_entries_go_round) {
  unsigned char a[64] = {}, b[64] = {};
  a[63] = b[63] = 5;  // bits of a fingerprint
  for (unsigned i = 0; i < 100; ++i) {
    BOOST_TEST((!is_behind(a, b) && !is_behind(b, a)));
    for (unsigned ahead = 1; ahead < 16; ++ahead) {
      add_entries(b, 1);
      BOOST_TEST((is_behind(a, b) && !is_behind(b, a)));
    }
    add_entries(b, ~0u * 15);
    BOOST_TEST(entries(b) == i % 32);
    add_entries(a, 1);
    add_entries(b, 1);
    BOOST_TEST((a[63] & 7) == 5);
  }
}

BOOST_AUTO_TEST_CASE(definitions) {
  BOOST_TEST(cache_line_shape("clq(lines=2)") == "13x39");
  BOOST_TEST(cache_line_shape("clq(lines=2, fpr=0.1)") == "10x50");
  BOOST_TEST(cache_line_shape("clq(lines=2, fpr=0.001)") == "16x31");
  BOOST_TEST(cache_line_shape("clq(lines=2, fpr=0.000001)") == "26x19");
  BOOST_TEST(cache_line_shape("clq(lines=2, bits=12)") == "12x20");
  BOOST_TEST(cache_line_shape("clq(lines=2, memory=1MB, keys=1000000)") == "13x39");
  BOOST_TEST(cache_line_shape("clq(lines=1)") == "12x40");
  BOOST_TEST(text_of(parameters_of("clq(memory=4kB)")).find("lines") == std::string::npos);
  for (const char* text :
       {"clq(lines=3)", "clq(lines=0)", "clq(lines=2, policy=fifo)", "clq(lines=2, policy=second)",
        "clq(lines=2, window='1 hour')", "clq(lines=2, importance_range='0,1')",
        "clq(lines=2, bits=12, bucket=43)", "clq(lines=2, bits=20, bucket=26)",
        "clq(lines=2, fpr=1e-15)"})
    refusal(text);
}

BOOST_AUTO_TEST_CASE(the_rate_of_false_positives) {
  for (const char* text : {"clq(memory=16kB, lines=2)", "clq(memory=16kB, lines=2, fpr=0.1)",
                           "clq(memory=16kB, lines=2, fpr=0.4)", "clq(memory=192, lines=2)"}) {
    Filter filter(text);
    const double bound = filter.fpr_bound();
    const double one = static_cast<double>(option_value(filter.parameters(), "bucket")) /
                       (std::exp2(option_value(filter.parameters(), "bits")) - 1);
    BOOST_TEST(std::fabs(bound / (2 * one) - 1) < 1e-12);
    std::uint64_t next = 0;
    while (filter.estimate().fill < 1) filter.insert(key(next++));
    const std::uint64_t count = scaled(1000000);
    const double positives = insert_keys(filter, next, next + count);
    BOOST_TEST(positives <= most(count, bound, kFourErrors), text);
    // Both lines, unless they are the same one.
    const double lines = static_cast<double>(lines_of(filter.parameters())) /
                         filter.parameters().slices,
                 exact = 1 - (1 - one) * (1 - one * (1 - 1 / lines));
    BOOST_TEST(fits(positives, count, exact, kFourErrors), text << ": " << positives);
  }
}

// False positives hide some misses: a key that shares bucket and fingerprint with a new one. The
// model's table and its normal distribution are within 2 % of the truth.
BOOST_AUTO_TEST_CASE(the_rate_of_false_negatives, *boost::unit_test::label("long")) {
  if (kSanitized) return;  // shorter streams would prove nothing
  constexpr std::uint64_t kSamples = 10000;
  for (const char* text : {"clq(memory=640kB, lines=2, bits=16, bucket=31)",
                           "clq(memory=640kB, lines=2, slices=1, bits=20)",
                           "clq(memory=640kB, lines=2, slices=32, bits=16)"}) {
    const Parameters p = parameters_of(text);
    for (const double wanted : {.003, .01, .05, .3}) {
      const double window = window_keys(p, wanted);
      const auto others = static_cast<std::uint64_t>(window);
      Filter filter(text);
      const double missed = count_missed(filter, 3 * others, others, kSamples,
                                         [](Filter& one, std::uint64_t i) { one.insert(key(i)); });
      BOOST_TEST(missed <= most(kSamples, 1.02 * wanted, kFourErrors), text);
      BOOST_TEST(missed >= least(kSamples, .98 * wanted, kFourErrors), text);
    }
  }
}

// At 1 % of both errors, the same memory holds a third more keys than with one line.
BOOST_AUTO_TEST_CASE(the_window_is_a_third_longer) {
  const Parameters one = parameters_of("clq(memory=1MB)"),
                   two = parameters_of("clq(memory=1MB, lines=2)");
  BOOST_TEST(window_keys(two, .01) > 1.3 * window_keys(one, .01));
  BOOST_TEST(8 * two.memory < 14.5 * window_keys(two, .01));
}

// Repeats keep lines less even than new keys do, but fewer repeats are missed than with one line of
// as many bits.
BOOST_AUTO_TEST_CASE(fewer_repeats_are_missed_at_every_gap) {
  if (kSanitized) return;
  constexpr std::uint64_t kRows = 1000000;
  for (const double gap : {10000., 20000., 26000.}) {
    const auto missed = [&](const char* text) {
      Filter filter(text);
      std::mt19937_64 random(3);
      std::vector<std::uint64_t> rows;
      std::uint64_t next = 0;
      const Errors errors = errors_of(filter, kRows, [&] {
        const std::uint64_t back = static_cast<std::uint64_t>(gap) + random() % 1000;
        const bool again = random() % 2 == 0 && back < rows.size();
        rows.push_back(again ? rows[rows.size() - back] : next++);
        return rows.back();
      });
      BOOST_TEST(errors.positives <= most(errors.fresh, filter.fpr_bound()));
      return errors.negatives;
    };
    BOOST_TEST(
        missed("clq(memory=64kB, slices=1, lines=2)") <= missed("clq(memory=64kB, slices=1)"), gap);
  }
}

BOOST_AUTO_TEST_CASE(merging_with_little_loses_nothing) {
  Filter both = merge_few("clq(memory=8kB, slices=3, lines=2)", 50, true).both;
  // A key of both filters may be in both of its lines; forgetting removes it from both.
  for (std::uint64_t i = 0; i < 150; ++i) {
    BOOST_TEST(erase(both.header(), key(i)));
    BOOST_TEST(!both.test(key(i)));
  }
  BOOST_TEST(both.is_valid());
}

BOOST_AUTO_TEST_CASE(doubles_and_stray_bits_are_refused) {
  Filter filter("clq(memory=192, lines=2, slices=1, bits=20, bucket=20)");  // leaves 107 bits over
  insert_keys(filter, 0, 30);
  BOOST_TEST_REQUIRE(filter.is_valid());
  for (unsigned bit = 400; bit < 512; ++bit)
    BOOST_TEST(with_bit(filter, bit).is_valid() == (bit >= 507), bit);
  Filter doubled = filter;
  FingerprintQueue queue(20, 20, doubled.slice().body(), 0);
  queue.set(0, queue.get(1));
  queue.store(doubled.slice().body());
  BOOST_TEST(!doubled.is_valid());
}

BOOST_AUTO_TEST_SUITE_END()
