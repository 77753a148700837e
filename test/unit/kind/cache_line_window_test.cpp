// Kind clq with a window: against plain lists with times, merging, rates, and check.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
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

BOOST_AUTO_TEST_SUITE(cache_line_window)

namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::min();

struct Entry {
  std::uint64_t fingerprint;
  std::uint64_t tick;  // at which it was accepted
  bool operator==(const Entry& other) const {
    return fingerprint == other.fingerprint && tick == other.tick;
  }
};
using List = std::vector<Entry>;

// A plain version of the rule: a list with times for every bucket.
class Reference {
 public:
  using Bucket = CacheLines::Bucket;

  explicit Reference(const Parameters& p)
      : places(p), fifo_(option_value(p, "policy") == 1), p_(p) {
    const std::uint64_t window = option_value(p, "window");
    tick_ = std::max<std::uint64_t>(1, (window - 1 + 14) / 15);
    ticks_ = (window - 1 + tick_ - 1) / tick_ + 1;
  }

  bool test(const Element& element) const {
    const auto list = lists_.find(places.bucket(element.hash));
    if (list == lists_.end()) return false;
    for (const Entry& entry : list->second)
      if (entry.fingerprint == places.fingerprint(element.hash))
        return clock(element.hash) - entry.tick < ticks_ && is_near(entry, tick_of(element));
    return false;
  }

  bool insert(const Element& element) {
    const std::uint64_t then = tick_of(element);
    std::uint64_t& present = clocks_[slice_of(p_, element.hash)];
    present = std::max(present, then);
    List& list = live(places.bucket(element.hash));
    const auto found = find(list, element.hash);
    if (found != list.end()) {
      const bool seen = present - then <= 1 && is_near(*found, then);
      if (!seen) found->tick = std::max(found->tick, then);
      if (!fifo_ || !seen) std::rotate(list.begin(), found, found + 1);
      return seen;
    }
    if (present - then >= ticks_) return false;
    list.insert(list.begin(), {places.fingerprint(element.hash), then});
    if (list.size() > places.length) list.pop_back();
    return false;
  }

  bool is_near(const Entry& entry, std::uint64_t tick) const {
    return std::max(entry.tick, tick) - std::min(entry.tick, tick) < ticks_;
  }

  bool erase(const Element& element) {
    const bool was_there = test(element);
    List& list = lists_[places.bucket(element.hash)];
    const auto found = find(list, element.hash);
    if (found != list.end()) list.erase(found);
    return was_there;
  }

  // Front to front, the younger of two ages.
  void merge(const Reference& other) {
    for (const auto& [slice, clock] : other.clocks_)
      clocks_[slice] = std::max(clocks_[slice], clock);
    for (const auto& [bucket, list] : other.lists_) lists_[bucket];
    for (auto& [bucket, list] : lists_) {
      const List a = live(bucket);
      const auto from = other.lists_.find(bucket);
      const List b = from == other.lists_.end() ? List() : live_of(from->second, bucket.first);
      List both;
      const auto add = [&](const List& source, std::size_t i) {
        if (i >= source.size()) return;
        for (Entry& entry : both)
          if (entry.fingerprint == source[i].fingerprint) {
            entry.tick = std::max(entry.tick, source[i].tick);
            return;
          }
        both.push_back(source[i]);
      };
      for (std::size_t i = 0; i < places.length; ++i) {
        const bool turned = (bucket.second.first + bucket.second.second) % 2 != 0;
        add(turned ? b : a, i);
        add(turned ? a : b, i);
      }
      if (both.size() > places.length) both.resize(places.length);
      list = both;
    }
  }

  // The present content of a filter's bucket; the reference keeps the ticks.
  List live_list(const Bucket& bucket) const {
    const auto list = lists_.find(bucket);
    return list == lists_.end() ? List() : live_of(list->second, bucket.first);
  }

  std::uint64_t clock_of_slice(std::uint32_t slice) const {
    const auto it = clocks_.find(slice);
    return it == clocks_.end() ? 0 : it->second;
  }
  std::uint64_t ticks() const { return ticks_; }

  const CacheLines places;

 private:
  List::iterator find(List& list, std::uint64_t hash) const {
    return std::find_if(list.begin(), list.end(), [&](const Entry& entry) {
      return entry.fingerprint == places.fingerprint(hash);
    });
  }

  std::uint64_t clock(std::uint64_t hash) const { return clock_of_slice(slice_of(p_, hash)); }

  // Ticks are counted from the earliest time there is.
  std::uint64_t tick_of(const Element& element) const {
    if (element.time == kNever) return clock(element.hash);
    return static_cast<std::uint64_t>((static_cast<__int128>(element.time) - kNever) / tick_);
  }

  List live_of(const List& list, std::uint32_t slice) const {
    List result;
    for (const Entry& entry : list)
      if (clock_of_slice(slice) - entry.tick < ticks_) result.push_back(entry);
    return result;
  }

  List& live(const Bucket& bucket) {
    List& list = lists_[bucket];
    list = live_of(list, bucket.first);
    return list;
  }

  bool fifo_;
  std::uint64_t tick_, ticks_;
  const Parameters& p_;
  std::map<std::uint32_t, std::uint64_t> clocks_;
  std::map<Bucket, List> lists_;
};

std::uint64_t bits_at(const unsigned char* line, unsigned bit, unsigned width) {
  std::uint64_t value = 0;
  for (unsigned i = 0; i < width; ++i)
    value |= static_cast<std::uint64_t>(line[(bit + i) / 8] >> (bit + i) % 8 & 1) << i;
  return value;
}

// The bytes as documented: fingerprints from the first bit on; 4 bits of age for each up to the
// last 32 bits, which are the tick that ages refer to.
void require_bytes(Filter& filter, const Reference& reference) {
  const CacheLines& places = reference.places;
  const unsigned bits = static_cast<unsigned>(places.bits),
                 length = static_cast<unsigned>(places.length),
                 slots = static_cast<unsigned>(places.buckets) * length;
  for (std::uint32_t s = 0; s < filter.parameters().slices; ++s) {
    const Slice slice = filter.slice(s);
    for (std::uint64_t l = 0; l < places.lines; ++l) {
      const unsigned char* line = slice.body() + l * 64;
      const std::uint64_t stamp = bits_at(line, 480, 32),
                          since = (slice.state->own[1] - stamp) & 0xffffffff;
      for (unsigned b = 0; b < places.buckets; ++b) {
        List list;
        for (unsigned i = b * length; i < (b + 1) * length; ++i) {
          const std::uint64_t fingerprint = bits_at(line, i * bits, bits),
                              age = bits_at(line, 480 - (slots - i) * 4, 4) + since;
          if (fingerprint != 0 && age < reference.ticks())
            list.push_back({fingerprint, reference.clock_of_slice(s) - age});
        }
        BOOST_REQUIRE(list == reference.live_list({s, {l, b}}));
      }
    }
  }
}

// Bursts, quiet times and gaps longer than a window; a tenth of the events is late.
class Times {
 public:
  Times(std::int64_t start, std::int64_t window, std::mt19937_64& random)
      : present_(start), window_(window), random_(random) {}

  std::int64_t next() {
    const std::uint64_t draw = random_() % 1000;
    if (draw == 0)
      present_ += window_ * static_cast<std::int64_t>(random_() % 40);
    else if (draw < 300)
      present_ += static_cast<std::int64_t>(random_() % (window_ / 25 + 2));
    if (random_() % 10 == 0)
      return present_ - static_cast<std::int64_t>(random_() % (2 * window_ + 1));
    return random_() % 50 == 0 ? kNever : present_;
  }

 private:
  std::int64_t present_, window_;
  std::mt19937_64& random_;
};

const char* const kDefinitions[] = {
    "clq(memory=192, window='100 us')",
    "clq(memory=2000, bits=12, bucket=30, window='1000 us')",
    "clq(memory=4kB, slices=3, window='16 us')",
    "clq(memory=1kB, bits=8, bucket=13, window='17 us')",
    "clq(memory=1kB, bits=16, bucket=24, window='1 us')",
    "clq(memory=2kB, bits=8, bucket=4, policy=fifo, window='90 us')",
    "clq(memory=1kB, bits=3, bucket=7, window='2 us')",
    "clq(memory=1kB, bits=48, bucket=9, window='600 us')",
    "clq(memory=1kB, bits=33, bucket=3, policy=fifo, window='30 us')",
    "clq(memory=1kB, bits=4, bucket=15, window='1 hour')",
    "clq(memory=3003, fpr=0.2, seed=7, window='5 us')",
};

// 2^32 us are a whole turn of a stamp where a tick is 1 us.
constexpr std::int64_t kStarts[] = {0, 1767225600000000, (std::int64_t{1} << 32) * 1000 - 300,
                                    -(std::int64_t{1} << 40) - 50};

}  // namespace

BOOST_AUTO_TEST_CASE(windows_are_as_in_the_reference) {
  for (const char* text : kDefinitions)
    for (const std::int64_t start : kStarts) BOOST_TEST_CONTEXT(text << " from " << start) {
        Filter filter(text);
        Reference reference(filter.parameters());
        std::mt19937_64 random(1);
        const std::int64_t window =
            static_cast<std::int64_t>(option_value(filter.parameters(), "window"));
        Times times(start, window, random);
        const std::uint64_t slots = reference.places.slots;
        unsigned repeats = 0, erased = 0, gone = 0;
        filter.insert(at(0, start));
        reference.insert(at(0, start));
        for (unsigned i = 0; i < 6000; ++i) {
          const Element element = at(random() % (slots + 5), times.next());
          const std::vector<unsigned char> before = filter.bytes();
          BOOST_REQUIRE_EQUAL(filter.test(element), reference.test(element));
          BOOST_REQUIRE(filter.bytes() == before);
          if (random() % 8 == 0) {
            const bool was_there = reference.erase(element);
            BOOST_REQUIRE_EQUAL(erase(filter.header(), element), was_there);
            BOOST_REQUIRE(!filter.test(element));
            erased += was_there;
          } else {
            const bool seen = reference.insert(element);
            BOOST_REQUIRE_EQUAL(filter.insert(element), seen);
            repeats += seen;
            gone += !filter.test(element);
          }
          if (i % 100 == 0) {
            BOOST_REQUIRE(filter.is_valid());
            require_bytes(filter, reference);
          }
        }
        BOOST_TEST(filter.is_valid());
        require_bytes(filter, reference);
        BOOST_TEST(repeats > 40u);
        BOOST_TEST(erased > 6u);
        BOOST_TEST(gone > 0u);  // later than the window
      }
}

// At every phase of a tick.
BOOST_AUTO_TEST_CASE(keys_stay_for_the_window_and_at_most_a_tick_longer) {
  for (const std::int64_t window : {1, 2, 15, 16, 17, 31, 100, 1000, 1501}) {
    const std::string text =
        "clq(memory=192, bits=48, bucket=9, window='" + std::to_string(window) + " us')";
    const std::int64_t tick = std::max<std::int64_t>(1, (window - 1 + 14) / 15);
    for (std::int64_t start = 0; start < tick; ++start) {
      Filter filter(text);
      filter.insert(at(1, start));
      BOOST_REQUIRE(filter.test(at(1, start + window - 1)));
      // A tick is a fifteenth of the window, rounded up to microseconds.
      BOOST_REQUIRE(!filter.test(at(1, start + window + tick + 14)));
      BOOST_REQUIRE(filter.insert(at(1, start + window - 1)));  // which does not prolong it
      BOOST_REQUIRE(!filter.insert(at(1, start + window + tick + 14)));
      BOOST_REQUIRE(filter.test(at(1, start + window + tick + 14)));
    }
    if (15 * tick == window) {
      Filter filter(text);
      filter.insert(at(1, 0));
      BOOST_TEST(!filter.test(at(1, window + tick)));
    }
  }
}

// Late events and events without a time. A stamp has 2^32 ticks; a clock that jumps further does
// not look as if it stood still.
BOOST_AUTO_TEST_CASE(jumps_beyond_a_stamp) {
  for (const std::int64_t late : {0, 1, 14}) {
    Filter filter("clq(memory=4096, window=15 us, slices=1)");
    filter.insert(at(1, 1000));
    const Element again = at(1, 1000 + (std::int64_t{1} << 32) + late);
    BOOST_TEST(!filter.test(again));
    BOOST_TEST(!filter.insert(again));
    BOOST_TEST(filter.test(again));
  }
}

BOOST_AUTO_TEST_CASE(late_events_live_for_what_is_left) {
  Filter filter("clq(memory=192, bits=48, bucket=9, window='15 us')");  // ticks of 1 us
  filter.insert(at(1, 1000));
  BOOST_TEST(!filter.insert(at(2, 990)));
  BOOST_TEST(filter.insert(at(2, 1004)));
  BOOST_TEST(filter.insert(at(1, 1004)));
  BOOST_TEST(filter.insert(at(1, 1003)));   // as much as a tick behind
  BOOST_TEST(!filter.insert(at(1, 1002)));  // late: it passes, and the later time stays
  BOOST_TEST(filter.test(at(1, 1014)));
  BOOST_TEST(!filter.test(at(1, 985)));
  BOOST_TEST(!filter.test(at(2, 1005)));
  BOOST_TEST(!filter.insert(at(3, 980)));  // late by more than a window: not remembered
  BOOST_TEST(!filter.test(at(3, 980)));
  BOOST_TEST(!filter.insert(at(4, kNever)));  // the present: 1004
  BOOST_TEST(filter.test(at(4, 1018)));
  BOOST_TEST(!filter.test(at(4, 1019)));
  BOOST_TEST(filter.is_valid());
}

BOOST_AUTO_TEST_CASE(times_of_one_window) {
  const Parameters p = parameters_of("clq(memory=192, window='15 us')"),
                   none = parameters_of("clq(memory=192)");
  BOOST_TEST(are_in_window(window_of(p), at(1, 1000), at(1, 1014), 1000000));
  BOOST_TEST(are_in_window(window_of(p), at(1, 1014), at(1, 1000), 1000000));
  BOOST_TEST(!are_in_window(window_of(p), at(1, 1000), at(1, 1015), 0));
  BOOST_TEST(!are_in_window(window_of(p), at(1, 1015), at(1, 1000), 0));
  BOOST_TEST(!are_in_window(window_of(p), at(1, kNever), at(1, 1000), 0));
  BOOST_TEST(are_in_window(window_of(p), at(1, 1000), at(1, kNever), 0));
  BOOST_TEST(are_in_window(window_of(none), at(1, kNever), at(1, 1000), 1000000));
  BOOST_TEST(uses_time(p));
  BOOST_TEST(!uses_time(none));
  BOOST_TEST(uses_time(parameters_of("timer(window='1 hour', k=3)")));
  BOOST_TEST(!uses_time(parameters_of("bloom(keys=1000)")));
}

BOOST_AUTO_TEST_CASE(merging_takes_the_younger) {
  for (const char* text : kDefinitions) BOOST_TEST_CONTEXT(text) {
      std::mt19937_64 random(2);
      unsigned both_live = 0;
      for (unsigned round = 0; round < 30; ++round) {
        Filter a(text), b(text);
        Reference plain_a(a.parameters()), plain_b(b.parameters());
        const std::int64_t window =
            static_cast<std::int64_t>(option_value(a.parameters(), "window"));
        const std::uint64_t slots = plain_a.places.slots;
        const std::int64_t shift = static_cast<std::int64_t>(random() % 3) * window / 2;
        const auto fill = [&](Filter& filter, Reference& plain, std::int64_t start) {
          for (std::uint64_t i = 0; i < slots; ++i) {
            const std::int64_t late = static_cast<std::int64_t>(random() % (window + 1));
            const Element element = at(random() % slots, start - (i > 0 ? late : 0));
            filter.insert(element);
            plain.insert(element);
          }
        };
        fill(a, plain_a, 5000);
        fill(b, plain_b, round % 2 == 0 ? 5000 + shift : 5000 - shift);
        BOOST_TEST_REQUIRE(a.merge(b));
        plain_a.merge(plain_b);
        BOOST_REQUIRE(a.is_valid());
        require_bytes(a, plain_a);
        both_live += a.estimate().fill > 0;
      }
      BOOST_TEST(both_live > 10u);
    }
}

// New keys in every tick of many windows: the content of the line does not matter.
BOOST_AUTO_TEST_CASE(the_false_positive_rate_is_kept) {
  for (const char* text :
       {"clq(memory=4kB, window='150 us')", "clq(memory=4kB, fpr=0.1, window='150 us')",
        "clq(memory=4kB, bits=8, bucket=4, window='3000 us')"}) {
    Filter filter(text);
    const double bound = filter.fpr_bound();
    BOOST_TEST(bound <= (filter.parameters().fpr > 0 ? filter.parameters().fpr : .0157));
    const std::uint64_t count = scaled(400000);
    const double positives = insert_keys(
        filter, 0, count, [](std::uint64_t i) { return at(i, static_cast<std::int64_t>(i / 10)); });
    BOOST_TEST(positives <= most(count, bound), text);
    BOOST_TEST(positives > 0);
  }
}

// Keys that have left the window do not count, though nothing was swept.
BOOST_AUTO_TEST_CASE(the_fill_is_that_of_the_window) {
  Filter filter("clq(memory=64kB, slices=1, window='150 us')");
  for (std::uint64_t i = 0; i < 10000; ++i) filter.insert(at(i, 0));
  const Totals then = totals(filter.header());
  BOOST_TEST(then.estimate.fill > .2);
  BOOST_TEST(std::isnan(then.estimate.distinct));
  filter.insert(at(0, 1000));
  const Totals now = totals(filter.header());
  BOOST_TEST(now.estimate.fill > 0);
  BOOST_TEST(now.estimate.fill < .0001);
}

BOOST_AUTO_TEST_CASE(definitions) {
  BOOST_TEST(cache_line_shape("clq(window='10 minutes')") == "12x30");
  BOOST_TEST(cache_line_shape("clq(window='1 us', bits=16)") == "16x24");
  BOOST_TEST(cache_line_shape("clq(window='365 days', bits=8, bucket=10)") == "8x10");
  for (const char* text : {"clq(window='1000 rows')", "clq(window='0 us')", "clq(window='10')",
                           "clq(window='1 hour', bits=12, bucket=31)", "clq(tick='1 s')"})
    refusal(text);
  const Problem problem = refusal("clq(window='5 rows')");
  BOOST_TEST((problem.error == Error::unsupported));
}

// ---- check --------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(stray_ages_and_stamps_are_refused) {
  // 24 slots; bits 384 up to the stamp are ages. A window of 10 ticks.
  Filter filter("clq(memory=192, bits=16, bucket=24, window='10 us')");
  for (std::uint64_t i = 0; i < 10; ++i) filter.insert(at(i, static_cast<std::int64_t>(i)));
  BOOST_TEST_REQUIRE(filter.is_valid());
  const auto with_age = [&](unsigned slot, unsigned age) {
    Filter changed = filter;
    unsigned char& byte = changed.slice().body()[48 + slot / 2];
    const unsigned shift = slot % 2 * 4;
    byte = static_cast<unsigned char>((byte & ~(15u << shift)) | age << shift);
    return changed.is_valid();
  };
  for (unsigned slot = 0; slot < 24; ++slot)
    for (unsigned age = 0; age < 16; ++age)
      BOOST_TEST(with_age(slot, age) == (age < (slot < 10 ? 10 : 1)));
  for (unsigned counter = 0; counter < 5; ++counter)
    for (const std::uint64_t value : {5ull, ~0ull})
      BOOST_TEST(!with_own(filter, counter, value).is_valid());
  // With a small clock, a stamp is known to be in the future.
  Filter early("clq(memory=192, bits=16, bucket=24, window='10 us')");
  early.insert(at(1, kNever + 5));
  BOOST_TEST(early.is_valid());
  early.slice().body()[60] = 6;
  BOOST_TEST(!early.is_valid());
  // Between fingerprints and ages.
  Filter padded("clq(memory=192, bits=12, bucket=29, window='10 us')");
  BOOST_TEST(padded.is_valid());
  for (unsigned bit = 12 * 29; bit < 480 - 4 * 29; ++bit)
    BOOST_TEST(!with_bit(padded, bit).is_valid());
  // Without a window there is no clock.
  Filter plain("clq(memory=192)");
  plain.slice().state->own[1] = 1;
  BOOST_TEST(!plain.is_valid());
}

BOOST_AUTO_TEST_CASE(damaged_bytes_are_found_or_harmless) {
  for (const char* text : kDefinitions) {
    Filter sound(text);
    for (std::uint64_t i = 0; i < 50; ++i) sound.insert(at(i, static_cast<std::int64_t>(i / 10)));
    const std::uint64_t found = damage(sound, scaled(4000), [&](Filter& filter) {
      BOOST_REQUIRE(filter.merge(sound));
      for (std::uint64_t i = 0; i < 40; ++i) {
        const Element element = at(i * 7, static_cast<std::int64_t>(i));
        if (i % 5 == 0)
          erase(filter.header(), element);
        else
          filter.insert(element);
      }
    });
    BOOST_TEST(found > scaled(4000) / 8);
  }
}

BOOST_AUTO_TEST_SUITE_END()
