// Kind capped: its rule against a plain reference, its promises, merging, and check.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "bench/lib/streams.hpp"
#include "core/base/hash.hpp"
#include "unit/support/filters.hpp"
#include "unit/support/kind_checks.hpp"
#include "unit/support/statistics.hpp"
#include "unit/support/streams.hpp"

using namespace streamfilter;
using namespace unit;

BOOST_AUTO_TEST_SUITE(capped_bloom)

namespace {

const FilterOps& ops() { return *find_ops(Kind::capped); }

double option_real(const Parameters& p, const std::string& name) {
  for (const OptionSpec& option : ops().options)
    if (name == option.name) return p.real(option.word);
  BOOST_FAIL("no option " << name);
  return 0;
}

// Numbers of nine bits, seven from each word of the generator, the lowest first.
class Numbers {
 public:
  explicit Numbers(std::uint64_t& state) : state_(state) {}
  unsigned next() {
    if (left_.empty()) {
      std::uint64_t word = next_random(state_);
      for (unsigned i = 0; i < 7; ++i, word >>= 9) left_.push_back(word & 511);
      std::reverse(left_.begin(), left_.end());
    }
    const unsigned number = left_.back();
    left_.pop_back();
    return number;
  }

 private:
  std::uint64_t& state_;
  std::vector<unsigned> left_;
};

// A plain version of the rule for a slice, with a bool for each bit.
class Reference {
 public:
  Reference(const Parameters& p, std::uint64_t random)
      : p_(p),
        random_(random),
        lines_((p.slice_bytes - sizeof(SliceState)) / 64, std::vector<bool>(512)) {}

  bool insert(std::uint64_t hash) {
    std::vector<bool>& line = lines_[position(hash, 0, lines_.size())];
    std::vector<unsigned> own;
    std::uint64_t state = hash + kGoldenRatio;
    for (Numbers numbers(state); own.size() < option_value(p_, "k");) {
      const unsigned place = numbers.next();
      if (std::find(own.begin(), own.end(), place) == own.end()) own.push_back(place);
    }
    if (std::all_of(own.begin(), own.end(), [&](unsigned place) { return line[place]; }))
      return true;
    const double admission = option_real(p_, "admission");
    if (admission < 1 && !random_chance(random_, admission)) return false;
    for (const unsigned place : own) line[place] = true;
    Numbers numbers(random_);
    while (std::count(line.begin(), line.end(), true) > option_real(p_, "cap") * 512) {
      const unsigned place = numbers.next();
      if (std::find(own.begin(), own.end(), place) == own.end()) line[place] = false;
    }
    return false;
  }

  bool equals(Slice slice) const {
    for (std::size_t l = 0; l < lines_.size(); ++l)
      for (unsigned bit = 0; bit < 512; ++bit)
        if (lines_[l][bit] != (slice.body()[64 * l + bit / 8] >> bit % 8 & 1)) return false;
    return true;
  }

 private:
  Parameters p_;
  std::uint64_t random_;
  std::vector<std::vector<bool>> lines_;
};

double fpr_bound(const std::string& text) { return ops().fpr_bound(parameters_of(text)); }

}  // namespace

BOOST_AUTO_TEST_CASE(the_rule_is_followed) {
  for (const char* text :
       {"capped(memory=640)", "capped(memory=1kB, fpr=0.1)", "capped(memory=2003, slices=3)",
        "capped(memory=1kB, k=8, cap=0.5, seed=3)",
        "capped(memory=1kB, k=3, cap=0.65, admission=0.6)", "capped(memory=640, k=32, cap=0.5)",
        "capped(memory=640, k=1, cap=1)"}) {
    Filter filter(text);
    PlainSlices<Reference> reference(filter);
    const auto check_equal = [&] {
      BOOST_TEST_REQUIRE(filter.is_valid(), text);
      for (std::uint32_t s = 0; s < filter.parameters().slices; ++s)
        BOOST_TEST_REQUIRE(reference[s].equals(filter.slice(s)), text);
    };
    std::mt19937_64 random(1);
    unsigned repeats = 0;
    for (unsigned i = 0; i < 3000; ++i) {
      const Element element = key(random() % (i % 2 == 0 ? 3 : 400));
      const bool tested = filter.test(element), seen = filter.insert(element);
      BOOST_REQUIRE_EQUAL(seen, reference.insert(element.hash));
      BOOST_REQUIRE_EQUAL(seen, tested);
      repeats += seen;
      if (i % 200 == 0) check_equal();
    }
    check_equal();
    BOOST_TEST(repeats > 20u, text);
  }
}

// The k bits of a key are different, and every bit of a line is as likely as any other.
BOOST_AUTO_TEST_CASE(the_bits_of_a_key) {
  std::vector<std::uint64_t> counts(512);
  for (std::uint64_t i = 0; i < scaled(20000); ++i) {
    Filter filter("capped(memory=640, k=20, cap=1)");
    filter.insert(key(i));
    unsigned ones = 0;
    for (unsigned bit = 0; bit < 512; ++bit) {
      const bool set = filter.slice().body()[bit / 8] >> bit % 8 & 1;
      counts[bit] += set;
      ones += set;
    }
    BOOST_REQUIRE_EQUAL(ones, 20u);
  }
  BOOST_TEST(is_uniform(counts));
}

// Uniform streams of 60 % distinct keys, b bits a key: both errors in per cent over the whole
// stream, as an independent simulation printed them to two digits.
BOOST_AUTO_TEST_CASE(finite_streams) {
  if (kSanitized) return;
  struct Row {
    unsigned bits, k;
    double fpr;
  };
  const std::uint64_t rows = 1000000, distinct = 600000;
  for (const Row& row : {Row{4, 3, 4.63}, Row{8, 6, .46}, Row{10, 7, .17}, Row{16, 8, .01}}) {
    const std::uint64_t bytes = row.bits * distinct / 8 / 64 * 64;
    Filter filter("capped(slices=1, cap=0.65, memory=" + std::to_string(576 + bytes) +
                  ", k=" + std::to_string(row.k) + ")");
    bench::ShuffledList stream(rows, distinct, 1);
    const Errors errors = errors_of(filter, rows, [&] { return stream.next(); });
    BOOST_TEST(errors.positives <= most(distinct, (row.fpr + .005) / 100), row.bits);
    BOOST_TEST(errors.positives >= least(distinct, (row.fpr - .005) / 100), row.bits);
    BOOST_TEST(errors.negatives <= most(rows - distinct, .005 / 100), row.bits);
  }
}

// Once every line is at its cap, a new key meets C(ones, K) of the C(512, K) ways to choose K bits.
BOOST_AUTO_TEST_CASE(for_ever_the_rate_of_false_positives_is_the_bound) {
  for (const char* text : {"capped(memory=4kB)", "capped(memory=4kB, fpr=0.1)",
                           "capped(memory=4kB, fpr=0.001)", "capped(memory=4kB, k=8, cap=0.65)"}) {
    Filter filter(text);
    const double bound = fpr_bound(text), cap = option_real(filter.parameters(), "cap");
    BOOST_TEST(bound <= std::pow(cap, option_value(filter.parameters(), "k")));
    const double full = std::floor(cap * 512) / 512;
    std::uint64_t next = 0;
    while (filter.estimate().fill < full) filter.insert(key(next++));
    BOOST_TEST(std::fabs(filter.estimate().fpr / bound - 1) < .1);
    const std::uint64_t count = scaled(1000000);
    check_rate(insert_keys(filter, next, next + count), count, bound);
  }
}

BOOST_AUTO_TEST_CASE(fpr_is_kept_on_any_stream) {
  const std::uint64_t count = scaled(300000);
  for (const char* text :
       {"capped(memory=16kB)", "capped(memory=16kB, fpr=0.1)", "capped(memory=16kB, keys=12000)"}) {
    const Parameters p = parameters_of(text);
    const std::uint64_t universe = p.keys > 0 ? p.keys : count / 2;
    bench::Uniform uniform(universe, 1);
    bench::Zipf zipf(universe, 1, 2);
    std::uint64_t next = 0;
    const auto check = [&](auto next_key) {
      Filter filter(text);
      const Errors errors = errors_of(filter, count, next_key);
      BOOST_TEST(errors.positives <= most(errors.fresh, wanted_fpr(p)), text);
    };
    check([&] { return uniform.next(); });
    check([&] { return zipf.next(); });
    check([&] { return next++ % universe; });
  }
}

// With the promised number of keys, the next key has the promised rate: all keys go in, then others
// are tested. The filters are fresh ones, since one filter's lines are the same for all its tests.
BOOST_AUTO_TEST_CASE(the_promise_for_a_number_of_keys_is_exact) {
  for (const char* options : {"keys=600, k=3, cap=1", "keys=900, k=6, cap=1"}) {
    double positives = 0, asked = 0;
    const std::string text = std::string("capped(memory=1600, slices=1, ") + options + ")";
    const double bound = fpr_bound(text);
    const std::uint64_t keys = parameters_of(text).keys;
    std::uint64_t next = 0;
    for (std::uint64_t round = 0; round < scaled(1000); ++round) {
      Filter filter(text);
      insert_keys(filter, next, next + keys);
      next += keys + 4;
      positives += count_known(filter, next - 4, next);
      asked += 4;
    }
    // The number of keys is fixed here, not Poisson: hardly fewer false positives.
    BOOST_TEST(positives <= most(asked, bound), positives);
    BOOST_TEST(positives >= least(asked, bound * .97), positives);
  }
}

BOOST_AUTO_TEST_CASE(admission_is_a_probability) {
  Filter filter("capped(memory=64kB, k=4, cap=0.65, admission=0.3)");
  const std::uint64_t count = 3000;
  double known = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    BOOST_TEST(!filter.insert(key(i)));
    known += filter.test(key(i));
  }
  check_rate(known, count, .3);
}

BOOST_AUTO_TEST_CASE(merging) {
  for (const char* text :
       {"capped(memory=8kB, keys=4000)", "capped(memory=8kB, slices=3, k=5, cap=0.6)"})
    BOOST_TEST(std::fabs(merge_few(text, 300, true).both.estimate().distinct / 900 - 1) < .05);
  // Where both are full, the cap holds.
  Filter a("capped(memory=1kB)"), b("capped(memory=1kB)");
  for (std::uint64_t i = 0; i < 1000; ++i) a.insert(key(i)), b.insert(key(5000 + i));
  const double fill = a.estimate().fill;
  BOOST_TEST(a.merge(b));
  BOOST_TEST(a.is_valid());
  BOOST_TEST(a.estimate().fill == fill);
}

BOOST_AUTO_TEST_CASE(definitions) {
  const auto derived = [](const char* text) {
    const Parameters p = read_back(text);
    BOOST_TEST(ops().fpr_bound(p) <= wanted_fpr(p), text_of(p));
    return p;
  };
  for (const char* text : {"capped(fpr=0.5)", "capped()", "capped(fpr=0.003)", "capped(fpr=1e-9)",
                           "capped(fpr=0.9)", "capped(k=4)", "capped(cap=0.5)",
                           "capped(keys=1000, memory=1MB)", "capped(keys=100000, fpr=0.05)"})
    derived(text);
  BOOST_TEST(option_value(derived("capped(cap=0.65)"), "k") == 11u);
  BOOST_TEST(option_real(derived("capped(keys=10000)"), "cap") == .65);
  // Takes no more memory than the promise needs, but at least as much as without keys.
  BOOST_TEST(derived("capped(keys=1000)").memory == 1u << 20);
  const std::uint64_t memory = derived("capped(keys=10000000)").memory;
  BOOST_TEST(memory > 11000000u);
  BOOST_TEST(memory < 13500000u);
  for (const char* text :
       {"capped(k=0)", "capped(k=33)", "capped(cap=0)", "capped(cap=1.1)", "capped(admission=0)",
        "capped(admission=2)", "capped(k=10, cap=0.01)", "capped(fpr=1e-60)",
        "capped(k=1, fpr=0.001)", "capped(keys=1000000, memory=1MB)", "capped(layout=blocked)",
        "capped(max=1)"})
    refusal(text);
  const Problem problem = refusal("capped(keys=1000000, memory=1MB)");
  BOOST_TEST((problem.error == Error::conflict));
  BOOST_TEST(std::string(problem.hint).find("bytes would do") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(damaged_bytes_are_found_or_harmless) {
  for (const char* text :
       {"capped(memory=640)", "capped(memory=1kB, slices=2, k=3, cap=0.65, admission=0.5)"}) {
    Filter sound = filled(text, 100);
    for (std::uint64_t bit = 0; bit < sound.slice().bytes * 8; ++bit)
      BOOST_TEST(!with_bit(sound, bit).is_valid());
    for (unsigned counter = 0; counter < 5; ++counter)
      BOOST_TEST(!with_own(sound, counter, sound.slice().state->own[counter] + 1).is_valid());
    damage(sound, scaled(20000), [](Filter& filter) {
      for (std::uint64_t i = 0; i < 50; ++i) filter.insert(key(1000 + i));
    });
  }
  // More ones than the cap allows, with matching counts.
  Filter filter("capped(memory=640, k=3, cap=0.1)");
  filter.slice().state->insertions = 1000;
  std::memset(filter.slice().body(), 0xff, 7);
  filter.slice().state->own[0] = 56;
  filter.slice().state->own[1] = 56 * 56;
  BOOST_TEST(!filter.is_valid());
  std::memset(filter.slice().body(), 0x7f, 7);
  filter.slice().state->own[0] = 49;
  filter.slice().state->own[1] = 49 * 49;
  BOOST_TEST(filter.is_valid());
}

BOOST_AUTO_TEST_SUITE_END()
