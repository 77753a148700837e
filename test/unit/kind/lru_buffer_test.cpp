// Kinds lru and fplru: the replacement policies against plain references, exactness, and the safety
// of check.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstring>
#include <list>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/hash.hpp"
#include "unit/support/filters.hpp"
#include "unit/support/kind_checks.hpp"
#include "unit/support/statistics.hpp"
#include "unit/support/streams.hpp"

using namespace streamfilter;
using namespace unit;

BOOST_AUTO_TEST_SUITE(recent_keys)

namespace {

// LRU with a list and a map.
class Lru {
 public:
  explicit Lru(std::size_t size) : size_(size) {}

  bool insert(std::uint64_t key) {
    const bool found = erase(key);
    if (places_.size() == size_) {
      places_.erase(keys_.back());
      keys_.pop_back();
    }
    keys_.push_front(key);
    places_[key] = keys_.begin();
    return found;
  }

  bool erase(std::uint64_t key) {
    const auto at = places_.find(key);
    if (at == places_.end()) return false;
    keys_.erase(at->second);
    places_.erase(at);
    return true;
  }

  std::size_t count() const { return places_.size(); }

 private:
  std::size_t size_;
  std::list<std::uint64_t> keys_;
  std::unordered_map<std::uint64_t, std::list<std::uint64_t>::iterator> places_;
};

// Clock with an array that is searched. Erased places are filled first, the last one erased before
// the others.
class Clock {
 public:
  explicit Clock(std::size_t size) : size_(size) {}

  bool insert(std::uint64_t key) {
    for (KeyProbe& place : places_)
      if (place.held && place.key == key) return place.seen = true;
    std::size_t at;
    if (!left_.empty()) {
      at = left_.back();
      left_.pop_back();
    } else if (places_.size() < size_) {
      at = places_.size();
      places_.emplace_back();
    } else {
      for (; places_[hand_].seen; hand_ = (hand_ + 1) % size_) places_[hand_].seen = false;
      at = hand_;
      hand_ = (hand_ + 1) % size_;
    }
    places_[at] = {key, true, true};
    return false;
  }

  bool erase(std::uint64_t key) {
    for (std::size_t i = 0; i < places_.size(); ++i)
      if (places_[i].held && places_[i].key == key) {
        places_[i] = {};
        left_.push_back(i);
        return true;
      }
    return false;
  }

  std::size_t count() const { return places_.size() - left_.size(); }

 private:
  struct KeyProbe {
    std::uint64_t key = 0;
    bool held = false, seen = false;
  };
  std::size_t size_;
  std::vector<KeyProbe> places_;
  std::vector<std::size_t> left_;
  std::size_t hand_ = 0;
};

// The number of keys in a full filter.
std::size_t capacity(const std::string& definition) {
  Filter filter(definition);
  std::size_t count = 0;
  for (std::uint64_t i = 0; filter.estimate().fill < 1; ++i) count += !filter.insert(key(i));
  return count;
}

template <typename Reference>
void compare_with(const std::string& definition, bool erasing) {
  const std::size_t size = capacity(definition);
  Filter filter(definition);
  Reference reference(size);
  // Two populations, one of them hot, so that hits occur at all depths.
  const Compared counts = compare(filter, reference, 30000, erasing, [&](std::mt19937_64& random) {
    return random() % 3 == 0 ? random() % size : random() % (size * 3);
  });
  BOOST_TEST(
      filter.estimate().fill == static_cast<double>(reference.count()) / static_cast<double>(size),
      tolerance(1e-9));
  BOOST_TEST(counts.repeats > 3000u);
  if (erasing) BOOST_TEST(counts.erased > 500u);
}

const char* const kDefinitions[] = {
    "(memory=192",
    "(memory=252",
    "(memory=1kB",
    "(memory=1kB, entry_bits=40",
    "(memory=3000",
    "(memory=2kB, seed=3",
    "(memory=4kB, entry_bits=33",
};

}  // namespace

BOOST_AUTO_TEST_CASE(lru_is_lru) {
  for (const std::string rest : kDefinitions)
    for (const bool erasing : {false, true}) compare_with<Lru>("lru" + rest + ")", erasing);
  compare_with<Lru>("fplru(memory=2kB, q=0)", true);
}

BOOST_AUTO_TEST_CASE(clock_is_clock) {
  for (const std::string rest : kDefinitions)
    for (const bool erasing : {false, true})
      compare_with<Clock>("lru" + rest + ", policy=clock)", erasing);
  compare_with<Clock>("fplru(memory=2kB, q=0, policy=clock)", true);
}

BOOST_AUTO_TEST_CASE(the_last_n_keys_are_remembered) {
  for (const char* text : {"lru(memory=50kB)", "lru(memory=50kB, policy=clock)"}) {
    const std::size_t n = capacity(text);
    Filter filter(text);
    for (std::uint64_t i = 0; i < 5 * n; ++i) BOOST_REQUIRE(!filter.insert(key(i)));
    for (std::uint64_t i = 0; i < 5 * n; ++i) BOOST_REQUIRE_EQUAL(filter.test(key(i)), i >= 4 * n);
    const FilterOps& ops = *find_ops(Kind::lru);
    BOOST_TEST(ops.fnr_at(filter.parameters(), static_cast<double>(n)) == 0);
    BOOST_TEST(ops.fnr_at(filter.parameters(), static_cast<double>(n + 1)) == 1);
    BOOST_TEST(window_keys(filter.parameters(), 0.01) == static_cast<double>(n));
  }
}

// 64-bit fingerprints as in Deng, Rafiei 2006 §5.2, and the memory that the paper did not count.
BOOST_AUTO_TEST_CASE(all_state_counts_as_memory) {
  const auto bits_per_key = [](const std::string& text) {
    return 8e6 / static_cast<double>(capacity(text));
  };
  BOOST_TEST(bits_per_key("lru(memory=1000000, slices=1)") == 64 + 4 * 16, tolerance(.001));
  BOOST_TEST(bits_per_key("lru(memory=1000000, slices=1, policy=clock)") == 64 + 2 * 17 + 2,
             tolerance(.001));
  BOOST_TEST(bits_per_key("lru(memory=1000000, slices=1, entry_bits=32)") == 32 + 4 * 17,
             tolerance(.001));
}

BOOST_AUTO_TEST_CASE(slices_forget_by_themselves) {
  const char* const text = "lru(memory=64kB, slices=8)";
  Filter filter(text);
  const double n = capacity("lru(memory=8256, slices=1)");  // 64 + 8192: one slice like each
  BOOST_TEST(n == static_cast<double>(slice_at(filter.header(), 0).bytes * 8 / 108), tolerance(.1));
  const std::uint64_t gap = static_cast<std::uint64_t>(8 * n);
  double missed = 0;
  const std::uint64_t rounds = scaled(60000);
  for (std::uint64_t i = 0; i < rounds + gap; ++i) {
    filter.insert(key(i));
    if (i >= gap) missed += !filter.test(key(i - gap + 1));
  }
  // Neighbours in the stream nearly share their fate.
  const double rate = find_ops(Kind::lru)->fnr_at(filter.parameters(), static_cast<double>(gap));
  BOOST_TEST(rate > .3);
  BOOST_TEST(rate < .7);
  BOOST_TEST(missed / static_cast<double>(rounds) == rate, tolerance(.25));
}

BOOST_AUTO_TEST_CASE(false_positives_are_equal_fingerprints) {
  Filter filter("lru(memory=8kB, entry_bits=16)");
  const double n = static_cast<double>(capacity("lru(memory=8kB, entry_bits=16)"));
  const std::uint64_t count = scaled(400000);
  const double positives = insert_keys(filter, 0, count), bound = filter.fpr_bound();
  BOOST_TEST(bound == n / 65536, tolerance(1e-9));
  check_rate(positives, count, bound);
  BOOST_TEST(filter.estimate().fpr == bound, tolerance(1e-9));
  BOOST_TEST(find_ops(Kind::lru)->fpr_bound(parameters_of("lru(memory=1GB)")) < 1e-11);
}

BOOST_AUTO_TEST_CASE(fplru_guesses_with_probability_q) {
  for (const char* text : {"fplru(memory=4kB, q=0.2)", "fplru(memory=4kB, fpr=0.2)",
                           "fplru(memory=4kB, fpr=0.2, policy=clock, entry_bits=20)"}) {
    Filter filter(text);
    const double bound = filter.fpr_bound();
    BOOST_TEST(bound == .2, tolerance(1e-9));
    double positives = 0;
    const std::uint64_t count = scaled(100000);
    for (std::uint64_t i = 0; i < count; ++i) {
      const bool expected = filter.test(key(i));
      BOOST_REQUIRE_EQUAL(filter.insert(key(i)), expected);
      BOOST_REQUIRE(filter.test(key(i)));
      positives += expected;
    }
    check_rate(positives, count, .2);
    BOOST_TEST(filter.estimate().distinct == static_cast<double>(count), tolerance(.02));
  }
  BOOST_TEST(find_ops(Kind::fplru)->fpr_bound(parameters_of("fplru()")) <= .01);
  BOOST_TEST(find_ops(Kind::fplru)->fpr_bound(parameters_of("fplru()")) > .0099);
}

BOOST_AUTO_TEST_CASE(definitions) {
  for (const char* text : {"lru()", "lru(entry_bits=16, policy=clock)", "fplru()", "fplru(q=0)",
                           "fplru(q=1)", "fplru(fpr=0.001, memory=100kB, slices=7, entry_bits=61)"})
    read_back(text);
  for (const char* text :
       {"lru(entry_bits=15)", "lru(entry_bits=65)", "lru(policy=fifo)", "lru(q=0.1)",
        "fplru(q=1.1)", "fplru(q=-0.1)", "fplru(q=nan)", "lru(memory=1GB, fpr=1e-15)",
        "fplru(memory=1MB, entry_bits=16, fpr=0.001)"})
    refusal(text);
}

// ---- merging ------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(what_fits_is_merged_whole) {
  for (const char* text : {"lru(memory=8kB)", "lru(memory=8kB, policy=clock, slices=2)",
                           "fplru(memory=8kB, q=0)", "lru(memory=4kB, entry_bits=20)"}) {
    const MergedFew merged = merge_few(text, 30, false);
    BOOST_TEST(totals(merged.both.header()).inserted_new == 90u);
    BOOST_TEST(totals(merged.same.header()).inserted_new == 60u);
  }
}

// Of a and b with n entries each, the n/2 most recent of either stay, by turns.
BOOST_AUTO_TEST_CASE(the_most_recent_of_both_are_kept) {
  const std::string text = "lru(memory=4kB, slices=1)";
  const std::uint64_t n = parameters_of(text).integer(3);  // entries of a slice
  Filter a = filled(text, 3 * n), b(text);
  insert_keys(b, 100000, 100000 + 2 * n);
  BOOST_TEST_REQUIRE(a.merge(b));
  BOOST_TEST(a.is_valid());
  for (std::uint64_t back = 0; back < n; ++back) {
    BOOST_TEST_REQUIRE(a.test(key(3 * n - 1 - back)) == (back < n / 2), back);
    BOOST_TEST_REQUIRE(a.test(key(100000 + 2 * n - 1 - back)) == (back < n / 2), back);
  }
  // Half as many new keys push out the older half of either.
  insert_keys(a, 200000, 200000 + n / 2 + n % 2);
  const double of_a = count_known(a, 3 * n - n / 2, 3 * n),
               of_b = count_known(a, 100000 + 2 * n - n / 2, 100000 + 2 * n);
  BOOST_TEST(of_a + of_b <= n / 2);
  BOOST_TEST(of_a + 1 >= of_b);
  BOOST_TEST(of_b + 1 >= of_a);
  BOOST_TEST(a.test(key(3 * n - 1)));
  BOOST_TEST(a.test(key(100000 + 2 * n - 1)));
}

BOOST_AUTO_TEST_CASE(merged_buffers_stay_sound) {
  for (const char* text :
       {"lru(memory=1kB, slices=1)", "lru(memory=1kB, policy=clock, slices=1)"}) {
    std::uint64_t random = 1;
    Filter filter(text);
    for (int round = 0; round < 300; ++round) {
      Filter other(text);
      for (std::uint64_t i = random_below(random, 60); i > 0; --i)
        other.insert(key(random_below(random, 100)));
      for (std::uint64_t i = random_below(random, 10); i > 0; --i)
        erase(other.header(), key(random_below(random, 100)));
      BOOST_TEST_REQUIRE(filter.merge(other));
      BOOST_TEST_REQUIRE(filter.is_valid(), text);
      for (std::uint64_t i = random_below(random, 8); i > 0; --i)
        filter.insert(key(random_below(random, 100)));
      for (std::uint64_t i = random_below(random, 8); i > 0; --i)
        erase(filter.header(), key(random_below(random, 100)));
      BOOST_TEST_REQUIRE(filter.is_valid(), text);
    }
  }
}

// ---- check --------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(damaged_bytes_are_found_or_harmless) {
  for (const char* text :
       {"lru(memory=252)", "lru(memory=1kB)", "lru(memory=1kB, policy=clock)",
        "fplru(memory=1kB, slices=2, q=0)", "lru(memory=1200, policy=clock, entry_bits=17)"}) {
    Filter sound = filled(text, 100);
    for (std::uint64_t i = 90; i < 99; i += 2) erase(sound.header(), key(i));
    damage(sound, scaled(40000), insert_and_erase);
  }
}

// Of all bits those of a fingerprint may be wrong, where they lead to the same chain, one of n, and
// whether an entry was seen. A correct one fails here with odds of 6e-6 when hashes are changed.
BOOST_AUTO_TEST_CASE(every_wrong_bit_is_found_that_leads_elsewhere) {
  for (const char* text : {"lru(memory=1kB)", "lru(memory=1kB, policy=clock)",
                           "lru(memory=1200, policy=clock, entry_bits=17)"})
    BOOST_TEST_CONTEXT(text) {
      Filter sound = filled(text, 100);
      for (std::uint64_t i = 90; i < 99; i += 2) erase(sound.header(), key(i));
      const Parameters& p = sound.parameters();
      const std::uint64_t n = p.integer(3), entry_bits = option_value(p, "entry_bits"),
                          held = sound.slice().state->own[0];
      const bool is_clock = option_value(p, "policy") == 1;
      const std::uint64_t marks = is_clock ? 2 * 64 * ((n + 63) / 64) : 0;
      double of_marks = 0, of_prints = 0, others = 0;
      for (std::uint64_t bit = 0; bit < sound.slice().bytes * 8; ++bit) {
        if (with_bit(sound, bit).is_valid())
          ++(bit < marks ? of_marks : bit < marks + n * entry_bits ? of_prints : others);
      }
      BOOST_TEST(others == 0);
      BOOST_TEST(of_marks == static_cast<double>(is_clock ? held : 0));
      const double all = static_cast<double>(held * entry_bits), same = 1 / static_cast<double>(n);
      check_rate(of_prints, all, same);
    }
}

// Every way to change the counters and one link, in a small buffer with erased entries.
BOOST_AUTO_TEST_CASE(no_wrong_counter_or_bit_is_accepted_and_unsafe) {
  const auto use_if_valid = [](Filter filter) {
    if (!filter.is_valid()) return;
    insert_and_erase(filter);
    BOOST_REQUIRE(filter.is_valid());
  };
  for (const char* text : {"lru(memory=252)", "lru(memory=252, policy=clock)"}) {
    Filter sound = filled(text, 4);
    erase(sound.header(), key(1));
    erase(sound.header(), key(2));
    BOOST_REQUIRE(sound.is_valid());
    for (unsigned counter = 0; counter < 5; ++counter)
      for (std::uint64_t value :
           {0ull, 1ull, 2ull, 3ull, 4ull, 5ull, 6ull, 7ull, 1ull << 20, 1ull << 63, ~0ull}) {
        use_if_valid(with_own(sound, counter, value));
      }
    for (std::size_t bit = 0; bit < sound.slice().bytes * 8; ++bit)
      use_if_valid(with_bit(sound, bit));
  }
}

BOOST_AUTO_TEST_SUITE_END()
