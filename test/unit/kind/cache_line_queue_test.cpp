// Kind clq: its rule against plain references, merging, and check.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "core/bits/fingerprint_queue.hpp"
#include "core/bits/packed_words.hpp"
#include "unit/support/cache_lines.hpp"
#include "unit/support/filters.hpp"
#include "unit/support/kind_checks.hpp"
#include "unit/support/streams.hpp"

using namespace streamfilter;
using namespace unit;

BOOST_AUTO_TEST_SUITE(cache_line_queue)

namespace {

using List = std::vector<std::uint64_t>;

// A plain version of the rule: a list for every bucket, found by the key's hash.
class Reference {
 public:
  explicit Reference(const Parameters& p)
      : bits_(static_cast<unsigned>(option_value(p, "bits"))),
        length_(option_value(p, "bucket")),
        fifo_(option_value(p, "policy") == 1),
        lines_((p.slice_bytes - sizeof(SliceState)) / 64),
        p_(p) {}

  bool insert(std::uint64_t hash) {
    List& list = lists_[bucket(hash)];
    const auto at = std::find(list.begin(), list.end(), fingerprint(hash));
    const bool found = at != list.end();
    if (found && fifo_) return true;
    if (found) list.erase(at);
    list.insert(list.begin(), fingerprint(hash));
    if (list.size() > length_) list.pop_back();
    return found;
  }

  bool erase(std::uint64_t hash) {
    List& list = lists_[bucket(hash)];
    const auto at = std::find(list.begin(), list.end(), fingerprint(hash));
    if (at == list.end()) return false;
    list.erase(at);
    return true;
  }

  std::size_t count() const {
    std::size_t sum = 0;
    for (const auto& [bucket, list] : lists_) sum += list.size();
    return sum;
  }

 private:
  using Bucket = std::pair<std::uint32_t, std::pair<std::uint64_t, std::uint64_t>>;

  Bucket bucket(std::uint64_t hash) const {
    const unsigned __int128 at =
        static_cast<unsigned __int128>(mix64(hash + kGoldenRatio)) * lines_;
    const std::uint64_t per_line = 512 / (bits_ * length_);
    return {
        slice_of(p_, hash),
        {static_cast<std::uint64_t>(at >> 64), scale(static_cast<std::uint64_t>(at), per_line)}};
  }

  std::uint64_t fingerprint(std::uint64_t hash) const {
    return 1 + position(hash, 1, (std::uint64_t{1} << bits_) - 1);
  }

  unsigned bits_;
  std::uint64_t length_;
  bool fifo_;
  std::uint64_t lines_;
  const Parameters& p_;
  std::map<Bucket, List> lists_;
};

// A filter of one bucket whose fingerprints never collide: an exact list of keys.
class Exact {
 public:
  explicit Exact(const Parameters& p)
      : length_(option_value(p, "bucket")), fifo_(option_value(p, "policy") == 1) {}

  bool insert(std::uint64_t hash) {
    const auto at = std::find(list_.begin(), list_.end(), hash);
    const bool found = at != list_.end();
    if (found && fifo_) return true;
    if (found) list_.erase(at);
    list_.insert(list_.begin(), hash);
    if (list_.size() > length_) list_.pop_back();
    return found;
  }

  bool erase(std::uint64_t hash) {
    const auto at = std::find(list_.begin(), list_.end(), hash);
    if (at == list_.end()) return false;
    list_.erase(at);
    return true;
  }

  std::size_t count() const { return list_.size(); }

 private:
  std::uint64_t length_;
  bool fifo_;
  List list_;
};

// The number of fingerprints that a filter can hold.
std::uint64_t capacity(const Parameters& p) {
  const std::uint64_t length = option_value(p, "bucket");
  return p.slices * ((p.slice_bytes - sizeof(SliceState)) / 64) *
         (512 / (option_value(p, "bits") * length)) * length;
}

template <typename Plain>
void compare_with(const char* definition) {
  BOOST_TEST_CONTEXT(definition) {
    Filter filter(definition);
    Plain reference(filter.parameters());
    const std::uint64_t universe = 2 * capacity(filter.parameters());
    const Compared counts = compare(filter, reference, 20000, true, [&](std::mt19937_64& random) {
      return random() % 3 == 0 ? random() % (universe / 8 + 1) : random() % universe;
    });
    const double used = filter.estimate().fill * static_cast<double>(universe) / 2;
    BOOST_TEST(std::fabs(used - static_cast<double>(reference.count())) < 1e-6);
    BOOST_TEST(counts.repeats > 2000u);
    BOOST_TEST(counts.erased > 300u);
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_rule_is_followed) {
  for (const char* text :
       {"clq(memory=640)", "clq(memory=2000, bits=12, bucket=40)", "clq(memory=4kB, slices=3)",
        "clq(memory=1kB, bits=16, bucket=32)", "clq(memory=1kB, bits=8, bucket=16)",
        "clq(memory=2kB, bits=8, bucket=4, policy=fifo)", "clq(memory=1kB, bits=5, bucket=7)",
        "clq(memory=4kB, bits=20, bucket=25, policy=fifo, slices=2)",
        "clq(memory=1kB, bits=3, bucket=7)", "clq(memory=1kB, bits=33, bucket=3)",
        "clq(memory=1kB, bits=48, bucket=1)", "clq(memory=3003, fpr=0.2, seed=7)"})
    compare_with<Reference>(text);
}

// Independent of how a bucket or a fingerprint is found: 8 bits are left over.
BOOST_AUTO_TEST_CASE(one_bucket_of_long_fingerprints_is_an_exact_queue) {
  for (const char* text :
       {"clq(memory=640, bits=48, bucket=10)", "clq(memory=640, bits=46, bucket=8)",
        "clq(memory=640, bits=48, bucket=10, policy=fifo)"})
    compare_with<Exact>(text);
}

BOOST_AUTO_TEST_CASE(merging_alternates_front_to_front) {
  for (const char* text :
       {"clq(memory=640, bits=48, bucket=10)", "clq(memory=640, bits=40, bucket=9)"}) {
    const std::uint64_t length = Filter(text).parameters().word[1];
    Filter a(text), b(text);
    for (std::uint64_t i = 0; i < 20; ++i) a.insert(key(i));
    for (std::uint64_t i = 0; i < 20; ++i) b.insert(key(i % 2 == 0 ? i : 100 + i));
    Filter both = a;
    BOOST_TEST_REQUIRE(both.merge(b));
    BOOST_TEST(both.is_valid());
    // 19, 119, 18 (both), 17, 117, 16 (both), …
    List expected;
    for (std::uint64_t i = 0; i < 20; ++i) {
      expected.push_back(19 - i);
      if (i % 2 == 0) expected.push_back(119 - i);
    }
    expected.resize(length);
    for (std::uint64_t number = 0; number < 120; ++number)
      BOOST_TEST(both.test(key(number)) ==
                 (std::find(expected.begin(), expected.end(), number) != expected.end()));
    // In that order: new keys push out fingerprints from the end.
    for (std::uint64_t i = 0; i < length; ++i) {
      BOOST_TEST(both.test(key(expected[length - 1 - i])));
      both.insert(key(1000 + i));
      BOOST_TEST(!both.test(key(expected[length - 1 - i])));
    }
  }
}

BOOST_AUTO_TEST_CASE(merging_with_little_loses_nothing) {
  for (const char* text : {"clq(memory=8kB, slices=3)", "clq(memory=8kB, bits=20, bucket=4)"}) {
    Filter a(text), b(text);
    for (std::uint64_t i = 0; i < 100; ++i) a.insert(key(i));
    for (std::uint64_t i = 50; i < 150; ++i) b.insert(key(i));
    Filter both = a, same = a, empty(text);
    BOOST_TEST(both.merge(b));
    for (std::uint64_t i = 0; i < 150; ++i) BOOST_TEST(both.test(key(i)));
    BOOST_TEST(std::fabs(both.estimate().distinct / 150 - 1) < .03);
    BOOST_TEST(same.merge(a));
    BOOST_TEST(empty.merge(a));
    for (std::uint32_t s = 0; s < a.parameters().slices; ++s)
      for (Filter* one : {&same, &empty})
        BOOST_TEST(std::memcmp(one->slice(s).body(), a.slice(s).body(), a.slice(s).bytes) == 0);
    BOOST_TEST(both.is_valid());
  }
}

BOOST_AUTO_TEST_CASE(a_filter_can_be_merged_with_itself_for_ever) {
  merge_with_itself_for_ever("clq(memory=1kB)");
}

BOOST_AUTO_TEST_CASE(definitions) {
  BOOST_TEST(cache_line_shape("clq()") == "12x40");
  BOOST_TEST(cache_line_shape("clq(fpr=0.1)") == "9x51");
  BOOST_TEST(cache_line_shape("clq(fpr=0.001, memory=100kB, slices=3)") == "15x32");
  BOOST_TEST(cache_line_shape("clq(fpr=0.2)") == "7x24");
  BOOST_TEST(cache_line_shape("clq(bits=16)") == "16x32");
  BOOST_TEST(cache_line_shape("clq(bits=14)") == "14x36");
  BOOST_TEST(cache_line_shape("clq(bucket=4, policy=fifo, keys=100)") == "9x4");
  BOOST_TEST(cache_line_shape("clq(bits=12, bucket=42)") == "12x42");
  for (const char* text :
       {"clq(bits=1)", "clq(bits=49)", "clq(bucket=0)", "clq(bucket=65)", "clq(bits=12, bucket=43)",
        "clq(bits=3, bucket=8)", "clq(bits=6)", "clq(fpr=1e-15)", "clq(bucket=64, fpr=0.001)",
        "clq(policy=clock)", "clq(layout=blocked)"}) {
    const Problem problem = refusal(text);
    BOOST_TEST((problem.hint[0] != '\0' || problem.detail[0] != '\0' ||
                problem.error == Error::unsupported),
               text << ": " << problem.message);
  }
}

// ---- check --------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(holes_doubles_and_stray_bits_are_refused) {
  Filter filter("clq(memory=640, bits=12, bucket=42)");  // 8 bits of the line are left over
  for (std::uint64_t i = 0; i < 10; ++i) filter.insert(key(i));
  BOOST_TEST_REQUIRE(filter.is_valid());
  const auto with = [&](unsigned slot, std::uint64_t fingerprint) {
    Filter changed = filter;
    FingerprintQueue queue(12, 42, changed.slice().body(), 0);
    changed.slice().state->own[0] +=
        (fingerprint != 0) - static_cast<std::uint64_t>(queue.get(slot) != 0);
    queue.set(slot, fingerprint);
    queue.store(changed.slice().body());
    return changed.is_valid();
  };
  const FingerprintQueue queue(12, 42, filter.slice().body(), 0);
  BOOST_TEST(with(9, 0));   // the last one gone
  BOOST_TEST(!with(8, 0));  // a hole
  BOOST_TEST(!with(0, 0));
  BOOST_TEST(!with(11, 4095));
  BOOST_TEST(!with(3, queue.get(7)));  // a double
  BOOST_TEST(!with(10, queue.get(0)));
  for (unsigned bit = 504; bit < 512; ++bit) BOOST_TEST(!with_bit(filter, bit).is_valid());
  for (unsigned counter = 0; counter < 5; ++counter)
    for (const std::uint64_t value : {11ull, 9ull, 1ull << 63, ~0ull})
      BOOST_TEST(!with_own(filter, counter, value).is_valid());
}

BOOST_AUTO_TEST_CASE(damaged_bytes_are_found_or_harmless) {
  for (const char* text : {"clq(memory=640)", "clq(memory=700, bits=8, bucket=7)",
                           "clq(memory=1kB, slices=2, bits=48, bucket=3, policy=fifo)"}) {
    Filter sound(text);
    for (std::uint64_t i = 0; i < 50; ++i) sound.insert(key(i));
    for (std::uint64_t i = 40; i < 49; i += 2) erase(sound.header(), key(i));
    damage(sound, scaled(20000), insert_and_erase);
  }
}

// A bucket's fields whose bit is flipped: still fingerprints that differ, and the same number.
bool fits(std::vector<std::uint64_t> fields, std::size_t field, std::uint64_t flip) {
  if (fields[field] == 0) return false;
  fields[field] ^= flip;
  return fields[field] != 0 && std::count(fields.begin(), fields.end(), fields[field]) == 1;
}

BOOST_AUTO_TEST_CASE(every_wrong_bit_is_found_that_makes_no_other_fingerprint) {
  for (const char* text : {"clq(memory=640)", "clq(memory=700, bits=8, bucket=7)",
                           "clq(memory=1kB, bits=48, bucket=3, policy=fifo)"}) {
    Filter sound(text);
    for (std::uint64_t i = 0; i < 50; ++i) sound.insert(key(i));
    for (std::uint64_t i = 40; i < 49; i += 2) erase(sound.header(), key(i));
    const unsigned bits = static_cast<unsigned>(option_value(sound.parameters(), "bits"));
    const std::size_t bucket = option_value(sound.parameters(), "bucket"),
                      per_line = 512 / (bits * bucket);
    std::size_t accepted = 0;
    for (std::size_t bit = 0; bit < sound.slice().bytes * 8; ++bit) {
      const std::size_t at = bit % 512 / bits, first = at / bucket * bucket;
      bool expected = false;
      if (at < per_line * bucket) {
        std::vector<std::uint64_t> fields(bucket);
        for (std::size_t i = 0; i < bucket; ++i)
          fields[i] =
              PackedFields(sound.slice().body() + bit / 512 * 64, 64).get((first + i) * bits, bits);
        expected = fits(fields, at - first, std::uint64_t{1} << bit % 512 % bits);
      }
      BOOST_TEST_REQUIRE(with_bit(sound, bit).is_valid() == expected, text << ", bit " << bit);
      accepted += expected;
    }
    BOOST_TEST(accepted > 0u);
  }
}

BOOST_AUTO_TEST_SUITE_END()
