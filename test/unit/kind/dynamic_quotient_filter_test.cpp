// Dynamic SQF against a plain reference and its formulas.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <list>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "core/base/hash.hpp"
#include "core/kind/kind_list.hpp"
#include "core/kind/quotient_table.hpp"
#include "unit/support/filters.hpp"
#include "unit/support/kind_checks.hpp"
#include "unit/support/statistics.hpp"
#include "unit/support/streams.hpp"

using namespace streamfilter;
using namespace unit;

BOOST_AUTO_TEST_SUITE(dynamic_quotient_filter)

namespace {

using quotient::locate;
using quotient::RowEntry;

// Dutta et al. 2013 §5.1 on lists, one slice: the newest bucket of a row first, the least recently
// accessed row first. Signatures and rows come from the filter; quotient_filter_test checks these.
class PlainDynamicFilter {
 public:
  PlainDynamicFilter(const Parameters& p, std::uint64_t random) : p_(p), random_(random) {}

  bool insert(std::uint64_t hash) {
    const RowEntry place = locate(p_, {hash});
    const bool found = contains(place);
    if (!rows_[place.row].empty()) {
      order_.remove(place.row);
      order_.push_back(place.row);
    }
    if (found) return true;
    if (used == p_.integer(quotient::kSliceBuckets)) evict();
    rows_[place.row].insert(rows_[place.row].begin(), place.code);
    if (rows_[place.row].size() == 1) order_.push_back(place.row);
    ++used;
    return false;
  }

  bool erase(std::uint64_t hash) {
    const RowEntry place = locate(p_, {hash});
    if (!contains(place)) return false;
    std::vector<std::uint64_t>& row = rows_[place.row];
    remove(place.row,
           static_cast<std::size_t>(std::find(row.begin(), row.end(), place.code) - row.begin()));
    return true;
  }

  bool test(std::uint64_t hash) { return contains(locate(p_, {hash})); }

  std::uint64_t used = 0;

 private:
  bool contains(const RowEntry& place) {
    const std::vector<std::uint64_t>& row = rows_[place.row];
    return std::find(row.begin(), row.end(), place.code) != row.end();
  }

  void evict() {
    const std::uint64_t row = order_.front();
    remove(row, scale(next_random(random_), rows_[row].size()));
  }

  void remove(std::uint64_t row, std::size_t i) {
    rows_[row].erase(rows_[row].begin() + static_cast<std::ptrdiff_t>(i));
    if (rows_[row].empty()) order_.remove(row);
    --used;
  }

  Parameters p_;
  std::uint64_t random_;
  std::map<std::uint64_t, std::vector<std::uint64_t>> rows_;
  std::list<std::uint64_t> order_;
};

constexpr const char* kDefinitions[] = {
    "dsqf(memory=2kB)",
    "dsqf(memory=1kB, rows=1)",
    "dsqf(memory=2kB, rows=2, slices=2)",
    "dsqf(memory=2kB, rows=50, r=4, r_prime=2)",
    "dsqf(memory=4kB, rows=100, buckets=20, r=9, omega=161)",
    "dsqf(memory=2kB, r=24, r_prime=23, slices=3)",
    "dsqf(memory=4kB, r=6, p=12)",
    "dsqf(memory=2kB, keys=3000, fingerprint=integer)",
    "dsqf(memory=2kB, keys=3000, rows=20, fingerprint=integer, slices=3)",
    "dsqf(memory=1200, r=4, r_prime=2, p=9, fingerprint=integer, slices=1)",
};

// Three quarters of all keys come from a few rows, which change over time.
std::uint64_t drifting(std::mt19937_64& random, std::uint64_t i) {
  return random() % 4 == 0 ? random() % 3000 : i / 5000 * 100 + random() % 100;
}

}  // namespace

// Definitions are complete and read back, too.
BOOST_AUTO_TEST_CASE(equals_a_plain_reference) {
  for (const char* definition : kDefinitions) BOOST_TEST_CONTEXT(definition) {
      Filter filter(read_back(definition));
      const Parameters& p = filter.parameters();
      PlainSlices<PlainDynamicFilter> plain(filter);
      std::uint64_t i = 0;
      compare(filter, plain, scaled(30000), true,
              [&](std::mt19937_64& random) { return element_of(p, drifting(random, i++)); });
      for (std::uint64_t number = 0; number < 3000; ++number) {
        const Element element = element_of(p, number);
        BOOST_TEST_REQUIRE(filter.test(element) == plain.test(element.hash));
      }
      for (std::uint32_t s = 0; s < p.slices; ++s)
        BOOST_TEST(filter.slice(s).state->own[0] == plain[s].used);
    }
}

// Heads, links and the order of access count as memory.
BOOST_AUTO_TEST_CASE(all_memory_counts) {
  const Parameters p = parameters_of("dsqf(memory=64kB, rows=1000, r=10, r_prime=8, slices=1)");
  const std::uint64_t bits = (p.slice_bytes - sizeof(SliceState)) * 8;
  BOOST_TEST(p.integer(quotient::kSliceBuckets) == (bits - 1000 * 96) / (32 + 10));
  const Parameters derived = parameters_of("dsqf(memory=64kB)");
  BOOST_TEST(static_cast<double>(derived.integer(quotient::kSliceBuckets)) /
                     static_cast<double>(derived.integer(quotient::kSliceRows)) ==
                 4.0,
             tolerance(0.01));
}

// On a stream that stays in a few rows, sqf has only their buckets; dsqf gives them the whole pool.
BOOST_AUTO_TEST_CASE(buckets_go_where_the_stream_goes) {
  const std::uint64_t hot = 2000;  // integer keys 0..1999 of a million
  const auto forgotten = [&](const std::string& definition) {
    const auto integer = [](std::uint64_t number) { return Element{number}; };
    return hot - count_known(filled(definition, hot, integer), 0, hot, integer);
  };
  BOOST_TEST(forgotten("dsqf(memory=32kB, keys=1e6, fingerprint=integer, slices=1)") == 0u);
  BOOST_TEST(forgotten("sqf(memory=32kB, keys=1e6, fingerprint=integer, slices=1)") > hot / 2);
}

BOOST_AUTO_TEST_CASE(endless_new_keys_meet_the_models) {
  for (const char* text :
       {"dsqf(memory=16kB)", "dsqf(memory=16kB, rows=600, r=7, r_prime=3)",
        "dsqf(memory=32kB, rows=200, r=12, r_prime=10)", "dsqf(memory=16kB, fpr=0.1, slices=2)"})
    BOOST_TEST_CONTEXT(text) {
      Filter filter(text);
      const Parameters& p = filter.parameters();
      const double rows = static_cast<double>(p.integer(quotient::kSliceRows)) * p.slices;
      const std::uint64_t capacity = p.integer(quotient::kSliceBuckets) * p.slices;
      std::uint64_t number = capacity * 10;
      insert_keys(filter, 0, number);
      BOOST_TEST(filter.estimate().fill == 1.0);
      BOOST_TEST(std::isnan(filter.estimate().distinct));
      const double bound = dsqf_ops.fpr_bound(p);
      const double life = quotient_model::lifetime(rows, static_cast<double>(capacity));
      for (const double lives : {0.6, 0.9, 1.1, 1.5, 2.5, 4.0}) {
        const std::uint64_t gap = static_cast<std::uint64_t>(lives * life);
        double forgotten = 0, false_positives = 0, predicted = 0;
        const std::uint64_t count = scaled(40000);
        insert_keys(filter, number, number + gap);
        number += gap;
        for (std::uint64_t i = 0; i < count; ++i) {
          if (i % 64 == 0) predicted += 64 * filter.estimate().fpr;
          false_positives += filter.insert(key(number++));
          forgotten += !filter.test(key(number - 1 - gap));
        }
        const double n = static_cast<double>(count);
        const double model = dsqf_ops.fnr_at(p, static_cast<double>(gap));
        // The lifetime varies a little, and collisions are correlated with long chains.
        BOOST_TEST(std::fabs(forgotten / n - model) <=
                   0.02 + bound / 4 + 6 * std::sqrt(model * (1 - model) / n));
        BOOST_TEST(false_positives <= most(n, bound));
        check_rate(false_positives, n, predicted / n);
      }
    }
}

BOOST_AUTO_TEST_CASE(fnr_has_its_limits) {
  const Parameters p = parameters_of("dsqf(memory=64kB)");
  double last = 0;
  for (double gap = 0; gap < 1e9; gap = gap * 1.1 + 1) {
    const double now = dsqf_ops.fnr_at(p, gap);
    BOOST_TEST_REQUIRE(now >= last - 1e-9);
    last = now;
  }
  const double fpr = dsqf_ops.fpr_bound(p);
  BOOST_TEST(last == 1 - fpr, tolerance(1e-9));
  const double life =
      quotient_model::lifetime(static_cast<double>(p.integer(quotient::kSliceRows)) * p.slices,
                               static_cast<double>(p.integer(quotient::kSliceBuckets)) * p.slices);
  // By what lifetimes of slices differ, none is lost before.
  BOOST_TEST(window_keys(p, 1e-9) < life);
  BOOST_TEST(window_keys(p, 1e-9) > .9 * life);
}

BOOST_AUTO_TEST_CASE(derived_parameters_keep_fpr) {
  for (const double fpr : {0.5, 0.1, 0.01, 0.001, 1e-5})
    for (const std::uint64_t keys : {0u, 100u, 10000u, 40000u, 4000000u})
      for (const char* memory : {"1kB", "64kB", "1MB"}) {
        const Parameters p =
            parameters_of("dsqf(memory=" + std::string(memory) + ", fpr=" + std::to_string(fpr) +
                          (keys > 0 ? ", keys=" + std::to_string(keys) : "") + ")");
        BOOST_TEST_CONTEXT(text_of(p)) {
          BOOST_TEST(dsqf_ops.fpr_bound(p) <= fpr);
          BOOST_TEST(text_of(parameters_of(text_of(p))) == text_of(p));
        }
      }
}

// Few keys in rows of few signatures, a bound by `keys`. With other hashes one of the 9 checks
// fails by chance with odds of 1e-5.
BOOST_AUTO_TEST_CASE(the_bound_for_a_number_of_keys) {
  for (const char* text : {"dsqf(memory=16kB, keys=1000, r=4, r_prime=2)",
                           "dsqf(memory=16kB, keys=3000, r=8, r_prime=5)",
                           "dsqf(memory=16kB, keys=8000, r=6, r_prime=2, rows=300)"})
    BOOST_TEST_CONTEXT(text) {
      Filter filter(text);
      const double bound = dsqf_ops.fpr_bound(filter.parameters());
      const std::uint64_t keys = filter.parameters().keys;
      std::uint64_t number = keys + 100000;
      insert_keys(filter, 0, keys);
      check_rate(count_known(filter, keys, number), 100000, filter.estimate().fpr);

      // The bound is one of the mean: the rate depends on which signatures the keys have.
      constexpr unsigned kFilters = 50;
      double sum = 0, squares = 0;
      for (unsigned i = 0; i < kFilters; ++i) {
        Filter other(filter.parameters());
        insert_keys(other, number, number + keys);
        number += keys;
        const double its = other.estimate().fpr;
        sum += its;
        squares += its * its;
      }
      const double mean = sum / kFilters,
                   error = std::sqrt((squares / kFilters - mean * mean) / kFilters);
      BOOST_TEST(mean <= bound + 4.75 * error);  // odds of 1e-6
    }
}

BOOST_AUTO_TEST_CASE(impossible_definitions_are_explained) {
  check_refused(Error::out_of_range, {"dsqf(rows=0)", "dsqf(buckets=0)"});
  check_refused(Error::too_small, {"dsqf(rows=1e6, memory=64kB)", "dsqf(buckets=1e6, memory=64kB)",
                                   "dsqf(fingerprint=integer, p=64)"});
  check_refused(Error::conflict,
                {"dsqf(p=20, r=7, rows=9000)", "dsqf(p=5, r=6)", "dsqf(r=3, r_prime=3)",
                 "dsqf(fpr=1e-9)", "dsqf(fingerprint=integer)"});
  check_refused(Error::unsupported, {"dsqf(layout=blocked)"});
}

BOOST_AUTO_TEST_CASE(integer_keys_get_a_place_each) {
  for (const char* text : {"dsqf(memory=64kB, keys=1000000, fingerprint=integer)",
                           "dsqf(memory=16kB, p=20, fingerprint=integer, slices=3)"})
    BOOST_TEST_CONTEXT(text) {
      Filter filter(text);
      BOOST_TEST(dsqf_ops.fpr_bound(filter.parameters()) == 0.0);
      const auto shuffled = [](std::uint64_t number) { return Element{number * 7919 % 1000000}; };
      BOOST_TEST(insert_keys(filter, 0, 200000, shuffled) == 0);
    }
}

BOOST_AUTO_TEST_CASE(erase_gives_buckets_back) {
  for (const char* definition : kDefinitions) BOOST_TEST_CONTEXT(definition) {
      Filter filter(definition);
      const auto numbered = [&](std::uint64_t n) { return element_of(filter.parameters(), n); };
      insert_keys(filter, 0, 3000, numbered);
      for (std::uint64_t number = 0; number < 3000; ++number) {
        const Element element = numbered(number);
        const bool there = filter.test(element);
        BOOST_TEST_REQUIRE(erase(filter.header(), element) == there);
        BOOST_TEST_REQUIRE(!filter.test(element));
      }
      BOOST_TEST(filter.estimate().fill == 0.0);
      BOOST_TEST(filter.estimate().fpr == 0.0);
      BOOST_TEST(filter.is_valid());
      insert_keys(filter, 0, 3000, numbered);
      BOOST_TEST(filter.is_valid());
    }
}

BOOST_AUTO_TEST_CASE(merge_prefers_neither_side) {
  const std::string text = "dsqf(memory=64kB, slices=2)";
  const Filter a = merge_few(text, 1600, false).both;
  BOOST_TEST(static_cast<double>(totals(a.header()).inserted_new) == 4800, tolerance(0.01));
  BOOST_TEST(a.estimate().distinct == 4800, tolerance(0.01));

  // Two full filters: each keeps half of its buckets, those of the rows accessed last.
  Filter one(text), other(text);
  for (std::uint64_t number = 0; number < 50000; ++number) one.insert(key(number));
  for (std::uint64_t number = 0; number < 50000; ++number) other.insert(key(100000 + number));
  const Filter before = one, other_before = other;
  BOOST_TEST_REQUIRE(one.merge(other));
  BOOST_TEST(one.is_valid());
  BOOST_TEST(one.estimate().fill == 1.0, tolerance(0.01));
  double known[2] = {}, kept[2] = {}, known_late[2] = {}, kept_late[2] = {};
  for (std::uint64_t number = 0; number < 50000; ++number)
    for (int side = 0; side < 2; ++side) {
      const Element element = key(number + 100000 * static_cast<std::uint64_t>(side));
      if (!(side == 0 ? before : other_before).test(element)) continue;
      const bool late = number >= 49800;
      known[side] += 1;
      kept[side] += one.test(element);
      known_late[side] += late;
      kept_late[side] += late && one.test(element);
    }
  BOOST_TEST(kept[0] / known[0] == kept[1] / known[1], tolerance(0.03));
  for (int side = 0; side < 2; ++side) BOOST_TEST(kept_late[side] >= 0.9 * known_late[side]);
}

// On any bytes, check refuses, or every operation works and ends. Links are set to numbers that
// exist.
BOOST_AUTO_TEST_CASE(damaged_bytes_are_found_or_harmless) {
  std::mt19937_64 random(5);
  unsigned accepted = 0;
  for (const char* definition : kDefinitions) {
    Filter original(definition);
    const Parameters& p = original.parameters();
    for (std::uint64_t i = 0; i < 3000; ++i) {
      original.insert(element_of(p, drifting(random, i)));
      erase(original.header(), element_of(p, drifting(random, i)));
    }
    const std::uint64_t links_at = p.integer(quotient::kSliceRows) * 96;
    const unsigned step = 32 + quotient::Signatures(p).width();
    for (int round = 0; round < 600; ++round) {
      Filter filter = original;
      const Slice slice = filter.slice(static_cast<std::uint32_t>(random() % p.slices));
      const PackedFields fields(slice.body(), slice.bytes);
      const auto bucket = [&] { return random() % p.integer(quotient::kSliceBuckets); };
      const auto row = [&] { return random() % p.integer(quotient::kSliceRows); };
      for (std::uint64_t changes = random() % 4 + 1; changes > 0; --changes) {
        std::uint32_t word;
        switch (random() % 6) {
          case 0:
            filter.bytes()[random() % filter.bytes().size()] ^=
                static_cast<unsigned char>(1u << random() % 8);
            break;
          case 1:  // swap two links: the counts stay right
          {
            const std::uint64_t a = links_at + bucket() * step, b = links_at + bucket() * step;
            const std::uint64_t link = fields.get(a, 32);
            fields.set(a, 32, fields.get(b, 32));
            fields.set(b, 32, link);
            break;
          }
          case 2: fields.set(links_at + bucket() * step, 32, bucket()); break;
          case 3: fields.set(links_at + bucket() * step, 32, 0x80000000 | row()); break;
          case 4: fields.set(row() * 96 + 32 * (random() % 3), 32, random() % 40); break;
          default:
            word = static_cast<std::uint32_t>(random() % 4 == 0 ? random() : random() % 40);
            std::memcpy(reinterpret_cast<unsigned char*>(&slice.state->own[2]) + 4 * (random() % 4),
                        &word, 4);
        }
      }
      if (!filter.is_valid()) continue;
      ++accepted;
      for (std::uint64_t i = 0; i < 300; ++i) {
        filter.insert(element_of(p, random() % 4000));
        erase(filter.header(), element_of(p, random() % 4000));
      }
      BOOST_TEST(filter.is_valid());
    }
  }
  BOOST_TEST_MESSAGE(accepted << " damaged filters accepted");
  BOOST_TEST(accepted < 900u);
}

// Cases that no counter reveals.
BOOST_AUTO_TEST_CASE(shared_and_circular_chains_are_found) {
  Filter original = filled("dsqf(memory=2kB, rows=4, r=12, slices=1)", 20);
  BOOST_TEST_REQUIRE(original.is_valid());
  const Parameters& p = original.parameters();
  const unsigned step = 32 + quotient::Signatures(p).width();
  unsigned found = 0;
  for (std::uint64_t from = 0; from < 20; ++from)
    for (std::uint64_t to = 0; to < 24; ++to) {
      Filter filter = original;
      const Slice slice = filter.slice();
      const PackedFields fields(slice.body(), slice.bytes);
      const std::uint64_t at = 4 * 96 + from * step, link = to < 20 ? to : 0x80000000 | (to - 20);
      if (fields.get(at, 32) == link) continue;
      fields.set(at, 32, link);
      BOOST_TEST(!filter.is_valid());
      ++found;
    }
  BOOST_TEST(found == 20u * 23);
}

BOOST_AUTO_TEST_SUITE_END()
