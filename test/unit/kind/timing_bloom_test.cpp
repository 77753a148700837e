// Kind timer: sliding windows of time and rows against a plain reference, late events, growth, the
// equal timers heuristic by formula and by simulation.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "bench/lib/paper_formulas.hpp"
#include "unit/support/filters.hpp"
#include "unit/support/kind_checks.hpp"
#include "unit/support/statistics.hpp"
#include "unit/support/streams.hpp"

using namespace streamfilter;
using namespace unit;

BOOST_AUTO_TEST_SUITE(timing_bloom)

namespace {

constexpr std::int64_t kEarliest = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kLatest = std::numeric_limits<std::int64_t>::max();

// Ticks count from the earliest time there is.
std::int64_t tick_of(std::int64_t time, std::int64_t tick) {
  const std::uint64_t since = static_cast<std::uint64_t>(time) + (std::uint64_t{1} << 63);
  return static_cast<std::int64_t>(since / static_cast<std::uint64_t>(tick));
}

struct Shape {
  std::uint64_t m, filters, ticks, limit, k, equal, grow, timer_bits;
};

// The derived numbers: behind the options' words, in this order.
Shape shape_of(const Parameters& p) {
  const std::uint64_t* derived = &p.word[8];
  return {derived[3],
          derived[2],
          derived[0],
          derived[4],
          option_value(p, "k"),
          option_value(p, "equal_timers"),
          option_value(p, "grow"),
          derived[1]};
}

// Koloniari et al. 2011 §4 and §5 to the letter: arrays of integers that are all decremented
// at each tick.
class Reference {
 public:
  explicit Reference(const Parameters& p) : shape_(shape_of(p)) {}

  void pass(std::uint64_t ticks) {
    for (; ticks > 0 && !filters_.empty(); --ticks) {
      for (One& one : filters_)
        for (std::uint64_t& timer : one.timers) timer -= timer > 0;
      while (filters_.size() > 1 && filters_.front().running() == 0)
        filters_.erase(filters_.begin());
      // Discards empty filters, even the last one.
      if (filters_.back().running() == 0) filters_.back().keys = 0;
    }
  }

  // All timers have more than so many ticks to go.
  bool has(std::uint64_t hash, std::uint64_t after = 0) const {
    for (const One& one : filters_) {
      std::map<std::uint64_t, unsigned> values;
      for (unsigned i = 0; i < shape_.k; ++i) ++values[one.timers[position(hash, i, shape_.m)]];
      if (values.begin()->first <= after) continue;
      unsigned largest = 0;
      for (const auto& value : values) largest = std::max(largest, value.second);
      if (largest >= shape_.equal) return true;
    }
    return false;
  }

  void add(std::uint64_t hash, std::int64_t value) {
    if (value <= 0) return;
    if (filters_.empty()) filters_.emplace_back(shape_.m);
    const One& newest = filters_.back();
    const std::uint64_t load = shape_.grow == 2 ? newest.keys : newest.running();
    if (shape_.grow != 0 && load >= shape_.limit && filters_.size() < shape_.filters)
      filters_.emplace_back(shape_.m);
    for (unsigned i = 0; i < shape_.k; ++i) {
      std::uint64_t& timer = filters_.back().timers[position(hash, i, shape_.m)];
      timer = std::max(timer, static_cast<std::uint64_t>(value));
    }
    ++filters_.back().keys;
  }

  std::size_t count() const { return filters_.size(); }
  double running_share() const {
    double sum = 0;
    for (const One& one : filters_) sum += static_cast<double>(one.running());
    return sum / static_cast<double>(shape_.m * shape_.filters);
  }

 private:
  struct One {
    explicit One(std::uint64_t m) : timers(m) {}
    std::uint64_t running() const {
      std::uint64_t count = 0;
      for (const std::uint64_t timer : timers) count += timer > 0;
      return count;
    }
    std::vector<std::uint64_t> timers;
    std::uint64_t keys = 0;
  };
  Shape shape_;
  std::vector<One> filters_;
};

}  // namespace

BOOST_AUTO_TEST_CASE(windows_of_time_are_as_in_the_reference) {
  for (const char* text :
       {"timer(memory=1kB, window='100 us', tick='1 us', k=3)",
        "timer(memory=1kB, window='100 us', tick='7 us', k=4)",
        "timer(memory=1kB, window='100 us', k=2)", "timer(memory=252, window='5 us', k=3)",
        "timer(memory=252, window='1 us', k=2)",
        "timer(memory=1kB, window='50 us', tick='50 us', k=3)",
        "timer(memory=2kB, window='200 us', tick='1 us', k=4, equal_timers=2)",
        "timer(memory=2kB, window='100 us', lateness='50 us', tick='3 us', k=4)",
        "timer(memory=2kB, window='60 us', tick='2 us', k=4, equal_timers=4)",
        "timer(memory=3kB, window='100 us', tick='2 us', k=3, fpr=0.3, grow=density, size=200)",
        "timer(memory=3kB, window='100 us', tick='2 us', k=3, fpr=0.3, grow=cardinality, size=200)",
        "timer(memory=2kB, window='60 us', k=3, fpr=0.1, grow=cardinality, size=256, "
        "equal_timers=2)"}) {
    Filter filter(text);
    Reference reference(filter.parameters());
    const std::int64_t tick = static_cast<std::int64_t>(option_value(filter.parameters(), "tick"));
    const std::int64_t ticks = static_cast<std::int64_t>(shape_of(filter.parameters()).ticks);
    const std::int64_t lateness =
        (static_cast<std::int64_t>(option_value(filter.parameters(), "lateness")) + tick - 1) /
        tick;
    std::mt19937_64 random(1);
    std::int64_t now = 1000, clock = 0;
    unsigned repeats = 0, late = 0;
    std::size_t most_filters = 0;
    for (unsigned i = 0; i < 6000; ++i) {
      // Bursts, quiet times and gaps longer than a window; a tenth of the events is late.
      const std::uint64_t pace = i / 500 % 3 == 0 ? 1 : i / 500 % 3 == 1 ? 3 : 20;
      if (random() % 3 == 0) now += static_cast<std::int64_t>(random() % (pace + 1));
      if (random() % 400 == 0) now += static_cast<std::int64_t>(random() % 300);
      std::int64_t time = now;
      if (random() % 10 == 0) time -= static_cast<std::int64_t>(random() % 150);
      if (i > 0 && random() % 100 == 0) time = random() % 2 ? kEarliest : kLatest;
      const bool infinite = time == kEarliest || time == kLatest;
      const std::int64_t then = infinite ? clock : tick_of(time, tick);
      if (i > 0 && then > clock) reference.pass(static_cast<std::uint64_t>(then - clock));
      clock = i == 0 ? then : std::max(clock, then);
      late += then < clock;
      const Element element = at(random() % 60 + i / 300 * 10, time);
      const std::int64_t behind = clock - then;
      const bool known = reference.has(
          element.hash, static_cast<std::uint64_t>(std::max<std::int64_t>(lateness - behind, 0)));
      const bool seen = known && behind <= std::max<std::int64_t>(lateness, 1);
      BOOST_REQUIRE_EQUAL(filter.test(element), known);
      BOOST_REQUIRE_EQUAL(filter.insert(element), seen);
      if (!seen) reference.add(element.hash, ticks - (clock - then));
      repeats += seen;
      most_filters = std::max(most_filters, reference.count());
      if (i % 100 == 0) {
        BOOST_REQUIRE_MESSAGE(filter.is_valid(), text << " at " << i);
        BOOST_REQUIRE_CLOSE(1 + filter.estimate().fill, 1 + reference.running_share(), 1e-9);
      }
    }
    BOOST_TEST(repeats > 200);
    BOOST_TEST(late > 100);
    if (option_value(filter.parameters(), "grow") != 0) BOOST_TEST(most_filters > 2, text);
  }
}

BOOST_AUTO_TEST_CASE(windows_of_rows_are_as_in_the_reference) {
  for (const char* text :
       {"timer(memory=1kB, window='50 rows', tick='1 row', k=3)",
        "timer(memory=1kB, window='50 rows', tick='7 rows', k=4)",
        "timer(memory=2kB, window='100 rows', fpr=0.05)", "timer(memory=252, window='1 row', k=2)",
        "timer(memory=2kB, window='100 rows', k=4, equal_timers=3)",
        "timer(memory=3kB, window='200 rows', k=3, fpr=0.3, grow=density, size=400)",
        "timer(memory=3kB, window='200 rows', k=3, fpr=0.3, grow=cardinality, size=400)"}) {
    Filter filter(text);
    Reference reference(filter.parameters());
    const std::uint64_t tick = option_value(filter.parameters(), "tick");
    const std::uint64_t ticks = shape_of(filter.parameters()).ticks;
    std::mt19937_64 random(2);
    std::uint64_t rows = 0;
    unsigned repeats = 0;
    for (unsigned i = 0; i < 6000; ++i) {
      const Element element = at(random() % 300, static_cast<std::int64_t>(random()));
      const bool seen = reference.has(element.hash);
      BOOST_REQUIRE_EQUAL(filter.test(element), seen);
      BOOST_REQUIRE_EQUAL(filter.insert(element), seen);
      repeats += seen;
      if (seen) continue;
      if (++rows % tick == 0) reference.pass(1);
      reference.add(element.hash, static_cast<std::int64_t>(ticks));
    }
    BOOST_TEST(filter.is_valid(), text);
    BOOST_TEST(repeats > 10);
  }
}

// Definition 4, with practically no false positives: one tick of excess is all that is allowed.
BOOST_AUTO_TEST_CASE(repeats_are_found_within_the_window_and_not_after_it) {
  const char* const text = "timer(memory=256kB, window='1000 us', k=8, slices=4)";
  const std::int64_t tick = static_cast<std::int64_t>(option_value(parameters_of(text), "tick"));
  Filter filter(text);
  std::mt19937_64 random(3);
  std::map<std::uint64_t, std::int64_t> accepted;
  unsigned in = 0, out = 0;
  std::int64_t now = -50000;  // before 1970
  for (unsigned i = 0; i < 100000; ++i) {
    now += static_cast<std::int64_t>(random() % 3);
    const std::uint64_t number = random() % 2000;
    const bool seen = filter.insert(at(number, now));
    const auto last = accepted.find(number);
    if (last != accepted.end() && now - last->second < 1000) {
      BOOST_REQUIRE(seen);
      ++in;
    } else if (last == accepted.end() || now - last->second >= 1000 + 2 * tick) {
      BOOST_REQUIRE(!seen);
      ++out;
    }
    if (!seen) accepted[number] = now;
  }
  BOOST_TEST(in > 1000);
  BOOST_TEST(out > 1000);

  Filter rows("timer(memory=16kB, window='100 rows', tick='1 row', k=8)");
  for (std::uint64_t i = 0; i < 1000; ++i) BOOST_REQUIRE(!rows.insert(key(i)));
  for (std::uint64_t i = 0; i < 1000; ++i) BOOST_REQUIRE_EQUAL(rows.test(key(i)), i >= 900);
  BOOST_TEST(window_keys(rows.parameters(), 0.01) == 100);
}

BOOST_AUTO_TEST_CASE(times_at_the_ends) {
  for (const char* text : {"timer(memory=1kB, window='1 us', k=2)",
                           "timer(memory=1kB, window='1000 us', tick='1 us', k=2)",
                           "timer(memory=1kB, window='365 days', k=2)",
                           "timer(memory=3kB, window='10 us', keys=5, grow=density, size=500)"}) {
    Filter filter(text);
    unsigned i = 0;
    for (const std::int64_t time :
         {kLatest, kEarliest, kEarliest + 1, std::int64_t{-1}, std::int64_t{0}, std::int64_t{1},
          kLatest - 1, kLatest, kEarliest, kEarliest + 1, kLatest - 1}) {
      filter.insert(at(++i, time));
      BOOST_TEST(filter.is_valid(), text << " after " << time);
    }
    // An infinite time is the present.
    BOOST_TEST(!filter.insert(at(100, kLatest)));
    BOOST_TEST(filter.test(at(100, kLatest)));
    BOOST_TEST(filter.test(at(100, kLatest - 1)));
  }
}

BOOST_AUTO_TEST_CASE(late_events_neither_lower_a_timer_nor_outlive_their_window) {
  Filter filter("timer(memory=8kB, window='100 us', tick='1 us', k=6)");
  filter.insert(at(1, 1000));
  filter.insert(at(2, 950));  // late by 50
  filter.insert(at(3, 900));  // late by a whole window: not remembered
  filter.insert(at(1, 960));  // late, too: it passes
  BOOST_TEST(filter.test(at(1, 1000)));
  BOOST_TEST(filter.test(at(2, 1000)));
  BOOST_TEST(!filter.test(at(3, 1000)));
  BOOST_TEST(filter.test(at(2, 1049)));
  BOOST_TEST(!filter.test(at(2, 1050)));
  BOOST_TEST(filter.test(at(1, 1099)));
  BOOST_TEST(!filter.test(at(1, 1100)));
}

// ---- parameters ---------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(timers_are_as_narrow_as_they_can) {
  // w as derived, and ceil(log2(w + 1)) bits with w/4 to spare.
  const auto shape = [](const char* text) { return shape_of(parameters_of(text)); };
  BOOST_TEST(shape("timer(window='1000 rows', tick='1 row', slices=1)").ticks == 1000u);
  BOOST_TEST(shape("timer(window='1000 rows', tick='1 row', slices=1)").timer_bits == 11u);
  BOOST_TEST(shape("timer(window='800 rows', tick='1 row', slices=1)").timer_bits == 10u);
  BOOST_TEST(shape("timer(window='10 minutes', tick='1 minute', k=3)").ticks == 11u);
  BOOST_TEST(shape("timer(window='10 minutes', tick='1 minute', k=3)").timer_bits == 4u);
  BOOST_TEST(shape("timer(window='10 minutes', k=3)").ticks == 33u);
  BOOST_TEST(shape("timer(window='10 minutes', k=3)").timer_bits == 6u);
}

BOOST_AUTO_TEST_CASE(promises_are_kept_or_refused) {
  const FilterOps& ops = *find_ops(Kind::timer);
  for (const char* text :
       {"timer(window='1 hour', keys=10000)", "timer(window='1 hour', keys=10000, fpr=0.0001)",
        "timer(window='20000 rows')", "timer(window='20000 rows', slices=1)",
        "timer(window='1 hour', keys=10000, grow=density)",
        "timer(window='10000 rows', grow=cardinality)",
        "timer(window='10000 rows', grow=density, size=50000)"}) {
    const Parameters p = read_back(text);
    BOOST_TEST(ops.fpr_bound(p) <= wanted_fpr(p), text);
  }
  BOOST_TEST(ops.fpr_bound(parameters_of("timer(window='1 hour', k=3)")) == 1);
  // Memory and fpr alone determine the number of keys in a window.
  for (const char* text : {"timer(window='1 hour')", "timer(window='1 hour', grow=density)"}) {
    const Parameters derived = parameters_of(text);
    BOOST_TEST(derived.keys > 0u, text);
    BOOST_TEST(ops.fpr_bound(derived) <= 0.01, text);
  }
  for (const char* text :
       {"timer()", "timer(k=3)", "timer(window='1 hour', memory=1MB, keys=1e7)",
        "timer(window='0 rows')", "timer(window='-1 s')", "timer(window='10', k=3)",
        "timer(window='1 hour', tick='2 hours', k=3)",
        "timer(window='1 hour', tick='10 rows', k=3)", "timer(window='365 days', tick='1 us', k=3)",
        "timer(window='1 hour', k=33)", "timer(window='1 hour', k=3, equal_timers=4)",
        "timer(window='1 hour', k=3, equal_timers=1)", "timer(window='1 hour', k=3, grow=yes)",
        "timer(window='1 hour', k=3, size=1000)",
        "timer(window='1 hour', k=3, grow=density, size=10)"})
    refusal(text);
}

// With the promised number of live keys, on an endless stream.
BOOST_AUTO_TEST_CASE(the_rate_is_kept) {
  for (const char* text :
       {"timer(memory=11kB, window='2000 rows', fpr=0.05, slices=1)",
        "timer(memory=11kB, window='2000 us', keys=2000, fpr=0.05)",
        "timer(memory=64kB, window='2000 rows', fpr=0.05, grow=density, size=10000, slices=1)",
        "timer(memory=64kB, window='2000 rows', fpr=0.05, grow=cardinality, size=10000, "
        "slices=1)"}) {
    Filter filter(text);
    double positives = 0;
    const std::uint64_t count = scaled(100000);
    double estimate = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
      positives += filter.insert(at(i, static_cast<std::int64_t>(i)));
      if (i % 1000 == 0 && i >= count / 2) estimate += filter.estimate().fpr;
    }
    const double bound = filter.fpr_bound();
    BOOST_TEST(bound <= .05, text);
    BOOST_TEST(positives <= most(count, bound), text);
    estimate /= static_cast<double>(count) / 2000;
    if (!kSanitized) BOOST_TEST(estimate == positives / static_cast<double>(count), tolerance(.15));
  }
}

// ---- equal timers and growth by formula ---------------------------------------------------------

BOOST_AUTO_TEST_CASE(equal_timers_by_formula) {
  const double table[] = {.0005, .004, .02, .08, .21, .43, .71};
  for (unsigned equal = 2; equal <= 8; ++equal) {
    const double found = bench::mean_equal_timers_fnr(8, equal, .34);
    const double rounding = equal == 2 ? .00005 : equal == 3 ? .0005 : .005;
    BOOST_TEST(std::fabs(found - table[equal - 2]) <= rounding * 1.2,
               equal << ": " << found << " instead of " << table[equal - 2]);
  }
  BOOST_TEST(bench::mean_equal_timers_fnr(8, 0, .34) == 0);
}

// Fill .34 with k = 8: each accepted key is asked for again, without being inserted, at an age
// spread evenly over the window.
BOOST_AUTO_TEST_CASE(equal_timers_by_simulation) {
  constexpr std::uint64_t window = 2000;
  for (const unsigned equal : {2u, 3u, 4u, 5u, 6u, 7u, 8u}) {
    // Tick by row, m = 8 * 2000 / -ln(1 - .34) timers of 12 bits.
    Filter filter(
        "timer(memory=58436, window='2000 rows', tick='1 row', k=8, slices=1, "
        "equal_timers=" +
        std::to_string(equal) + ")");
    BOOST_TEST(shape_of(filter.parameters()).timer_bits == 12u);
    std::mt19937_64 random(equal);
    std::vector<std::uint64_t> accepted;
    double missed = 0, asked = 0;
    const std::uint64_t count = scaled(60000) + 3 * window;
    for (std::uint64_t i = 0; i < count; ++i) {
      if (!filter.insert(key(i))) accepted.push_back(i);
      if (i < 2 * window) continue;
      ++asked;
      missed += !filter.test(key(accepted[accepted.size() - 1 - random() % window]));
    }
    BOOST_TEST(filter.estimate().fill == .34, tolerance(.03));
    const double rate = bench::mean_equal_timers_fnr(8, equal, .34);
    BOOST_TEST(missed / asked == rate, tolerance(6 / std::sqrt(asked * rate) + .05));
  }
}

BOOST_AUTO_TEST_CASE(filters_asked_together) {
  using namespace timing_model;
  BOOST_TEST(rate_of_filters(.1, 1) == .1, tolerance(1e-12));
  BOOST_TEST(rate_of_filters(.1, 3) == 1 - .9 * .9 * .9, tolerance(1e-12));
  for (const double j : {1., 2., 7., 100.})
    BOOST_TEST(rate_of_filters(share_of_rate(.05, j), j) == .05, tolerance(1e-12));
  for (const double n : {1e4, 1e5, 3e5})
    BOOST_TEST(keys_for(4, accepted(4, n, 1e6), 1e6) == n, tolerance(1e-9));
  BOOST_TEST(rate(4, keys_for(4, cardinality_limit(.02, 4, 1e6), 1e6), 1e6) == .02,
             tolerance(1e-4));
  BOOST_TEST(std::pow(density_limit(.02, 4, 1e6) / 1e6, 4) == .02, tolerance(1e-9));
}

// j full filters in an endless window: 1 - (1 - P)^j.
BOOST_AUTO_TEST_CASE(full_filters_by_simulation) {
  for (const char* text :
       {"timer(memory=40kB, window='1000 days', k=4, fpr=0.3, grow=cardinality, size=10000)",
        "timer(memory=40kB, window='1000 days', k=4, fpr=0.3, grow=density, size=10000)"}) {
    Filter filter(text);
    const Shape shape = shape_of(filter.parameters());
    BOOST_TEST(shape.filters == 4u);
    const double p = timing_model::share_of_rate(.3, 4);
    std::uint64_t next = 0, opened = 0;
    for (unsigned full = 1; full <= 4; ++full) {
      const auto load = [&] {
        const std::uint64_t* state =
            reinterpret_cast<const std::uint64_t*>(filter.slice().body()) + (full - 1) * 10000 / 8;
        return option_value(filter.parameters(), "grow") == 2 ? state[0] : state[1];
      };
      while (load() < shape.limit) filter.insert(at(next++, 0));
      opened = filter.slice().state->own[2];
      BOOST_TEST(opened == full);
      const double count = scaled(100000),
                   positives = count_known(filter, 1000000000, 1000000000 + scaled(100000));
      // The load of a filter of a given number of keys varies a little.
      const double rate = timing_model::rate_of_filters(p, full);
      BOOST_TEST(positives / count == rate, tolerance(kSanitized ? .2 : .06));
    }
    BOOST_TEST(filter.is_valid());
  }
}

// Koloniari et al. 2011 §7, figures 10 and 11: a burst opens filters, which go when it has left the
// window.
BOOST_AUTO_TEST_CASE(filters_follow_the_rate_of_events) {
  for (const char* grow : {"density", "cardinality"}) {
    Filter filter(std::string("timer(memory=64kB, window='1000 us', tick='10 us', k=4, fpr=0.1, "
                              "size=10000, grow=") +
                  grow + ")");
    std::uint64_t number = 0;
    std::int64_t now = 0;
    std::vector<std::uint64_t> most(3);
    for (unsigned third = 0; third < 3; ++third)
      for (std::int64_t end = now + 5000; now < end; ++now) {
        for (unsigned i = 0; i < (third == 1 ? 5 : 1); ++i) filter.insert(at(number++, now));
        if (now > end - 2500) most[third] = std::max(most[third], filter.slice().state->own[2]);
      }
    BOOST_TEST(most[0] <= 2u);
    BOOST_TEST(most[1] >= 4u);
    BOOST_TEST(most[2] <= 2u);
    if (grow[0] == 'd') BOOST_TEST(most[0] == 1u);  // it never needs to grow
    BOOST_TEST(filter.is_valid());
  }
}

// ---- the rest -----------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(merged_filters_remember_both) {
  for (const char* text :
       {"timer(memory=8kB, window='1000 us', tick='10 us', k=4)",
        "timer(memory=8kB, window='1000 rows', tick='10 rows', k=4)",
        "timer(memory=16kB, window='1000 us', k=4, fpr=0.2, grow=density, size=2000)",
        "timer(memory=16kB, window='1000 rows', k=4, fpr=0.2, grow=cardinality, size=2000, "
        "slices=1)"}) {
    for (const bool swapped : {false, true}) {
      Filter a(text), b(text);
      share_stream(a.header());
      share_stream(b.header());
      const bool rows = option_value(a.parameters(), "window") == 1000 &&
                        std::string(text).find("rows") != std::string::npos;
      // Of 1500 rows each, which count as coming by turns, the last 500 are in the window, to two
      // ticks.
      const std::uint64_t first = rows ? 1100 : 950;
      for (std::uint64_t i = 0; i < 1500; ++i) a.insert(at(i, static_cast<std::int64_t>(i)));
      for (std::uint64_t i = 0; i < 1500; ++i)
        b.insert(at(i + 5000, static_cast<std::int64_t>(i) + 400));
      if (swapped) std::swap(a, b);
      std::vector<std::uint64_t> kept;
      for (std::uint64_t i = 0; i < 1500; ++i) {
        const std::int64_t now = 1899;
        if (i < first) continue;
        const std::uint64_t of_a = swapped ? i + 5000 : i, of_b = swapped ? i : i + 5000;
        if (a.test(at(of_a, rows ? 0 : now))) kept.push_back(of_a);
        if (b.test(at(of_b, rows ? 0 : now))) kept.push_back(of_b);
        // By time, even keys that only seem to be there are found.
        if (!rows && a.test(at(of_b, now))) kept.push_back(of_b);
        if (!rows && b.test(at(of_a, now))) kept.push_back(of_a);
      }
      BOOST_TEST(kept.size() > 500);
      // Where rows come by turns, keys that were never set but seemed to be there may be gone.
      const auto missing = [&] {
        std::size_t count = 0;
        for (const std::uint64_t number : kept) count += !a.test(at(number, rows ? 0 : 1899));
        return count;
      };
      BOOST_REQUIRE(a.merge(b));
      BOOST_TEST(a.is_valid(), text);
      BOOST_TEST(missing() <= (rows ? kept.size() / 50 : 0), text);
      Filter before(a);
      BOOST_REQUIRE(a.merge(before));
      BOOST_TEST(a.is_valid(), text);
      BOOST_TEST(missing() <= (rows ? kept.size() / 50 : 0), text);
    }
  }
}

BOOST_AUTO_TEST_CASE(damaged_bytes_are_found_or_harmless) {
  for (const char* text :
       {"timer(memory=1kB, window='100 us', k=3)", "timer(memory=1kB, window='50 rows', k=3)",
        "timer(memory=2kB, window='100 us', k=3, fpr=0.2, grow=density, size=300)",
        "timer(memory=3kB, window='100 rows', k=3, fpr=0.2, grow=cardinality, size=600, "
        "slices=2, equal_timers=2)"}) {
    Filter sound(text);
    for (std::uint64_t i = 0; i < 200; ++i) sound.insert(at(i, static_cast<std::int64_t>(i)));
    BOOST_REQUIRE(sound.is_valid());
    std::mt19937_64 random(4);
    const auto use = [&](Filter& filter) {
      for (std::uint64_t i = 0; i < 60; ++i) {
        filter.insert(at(i * 3, static_cast<std::int64_t>(200 + i * (random() % 8))));
        if (i % 20 == 0) {
          BOOST_REQUIRE(filter.is_valid());
          filter.insert(at(i, static_cast<std::int64_t>(random())));
        }
      }
      BOOST_REQUIRE(filter.is_valid());
      totals(filter.header());
    };
    // Mostly the state of the first slice, where the windows are.
    const std::size_t state = sizeof(Header) + sizeof(SliceState) + 40;
    std::uint64_t found = damage(sound, scaled(10000), use, 0);
    found += damage(sound, scaled(10000), use);
    found += damage(sound, scaled(20000), use, sizeof(Header), state);
    BOOST_TEST(found > scaled(40000) / 4);
  }
}

BOOST_AUTO_TEST_SUITE_END()
