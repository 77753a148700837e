// The Streaming Quotient Filter against a plain reference, its formulas, and table 2
// of Dutta et al. 2013.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <numeric>
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

BOOST_AUTO_TEST_SUITE(quotient_filter)

namespace {

using quotient::RowEntry;

// A signature as the paper describes it, bit by bit.
struct PlainSignature {
  std::string selected;
  unsigned ones;
  bool operator==(const PlainSignature& other) const {
    return selected == other.selected && ones == other.ones;
  }
  // The order of their codes.
  bool operator<(const PlainSignature& other) const {
    return selected != other.selected ? selected < other.selected : ones < other.ones;
  }
};

PlainSignature plain_signature(std::uint64_t remainder, unsigned r, std::uint64_t omega) {
  PlainSignature signature{"", 0};
  for (unsigned bit = r; bit-- > 0;) {
    const bool one = remainder >> bit & 1;
    if (omega >> bit & 1)
      signature.selected += one ? '1' : '0';
    else
      signature.ones += one;
  }
  return signature;
}

// Algorithm 1 on vectors, one slice. Where the filter keeps a row as a bitmap, the row here is
// sorted, so that bucket number i means the same.
class PlainQuotientFilter {
 public:
  PlainQuotientFilter(const Parameters& p, std::uint64_t random, bool sorted)
      : p_(p), table_(p.integer(quotient::kSliceRows)), random_(random), sorted_(sorted) {}

  bool insert(std::uint64_t hash) {
    ++insertions;
    std::vector<PlainSignature>& row = row_of(hash);
    const PlainSignature signature = signature_of(hash);
    if (std::find(row.begin(), row.end(), signature) != row.end()) return true;
    ++inserted_new;
    if (row.size() == p_.integer(quotient::kBuckets)) {
      row[scale(next_random(random_), row.size())] = signature;
    } else {
      row.push_back(signature);
      ++used;
    }
    if (sorted_) std::sort(row.begin(), row.end());
    return false;
  }

  bool erase(std::uint64_t hash) {
    std::vector<PlainSignature>& row = row_of(hash);
    const auto at = std::find(row.begin(), row.end(), signature_of(hash));
    if (at == row.end()) return false;
    if (sorted_) {
      row.erase(at);
    } else {
      *at = row.back();
      row.pop_back();
    }
    --used;
    return true;
  }

  bool test(std::uint64_t hash) {
    const std::vector<PlainSignature>& row = row_of(hash);
    return std::find(row.begin(), row.end(), signature_of(hash)) != row.end();
  }

  std::uint64_t insertions = 0, inserted_new = 0, used = 0;

 private:
  unsigned r() const { return static_cast<unsigned>(p_.integer(quotient::kR)); }

  std::uint64_t fingerprint(std::uint64_t key) const {
    const std::uint64_t p = p_.integer(quotient::kP);
    return p < 64 ? key % (std::uint64_t{1} << p) : key;
  }

  std::vector<PlainSignature>& row_of(std::uint64_t hash) {
    if (p_.key_shift == 0) return table_[position(hash, 0, table_.size())];
    return table_[(fingerprint(hash) >> r()) / p_.slices % table_.size()];
  }

  PlainSignature signature_of(std::uint64_t hash) const {
    const std::uint64_t remainder = p_.key_shift == 0
                                        ? position(hash, 1, std::uint64_t{1} << r())
                                        : fingerprint(hash) % (std::uint64_t{1} << r());
    return plain_signature(remainder, r(), p_.integer(quotient::kOmega));
  }

  Parameters p_;
  std::vector<std::vector<PlainSignature>> table_;
  std::uint64_t random_;
  bool sorted_;
};

// Few signatures: the filter keeps a bitmap of them.
bool keeps_bitmaps(const Parameters& p) {
  const quotient::Signatures signatures(p);
  return signatures.count() <= 57 &&
         signatures.count() <= p.integer(quotient::kBuckets) * signatures.width();
}

std::string shape_text(unsigned r, unsigned r_prime, unsigned buckets) {
  return "r=" + std::to_string(r) + ", r_prime=" + std::to_string(r_prime) +
         ", buckets=" + std::to_string(buckets);
}

// Bytes for at least so many rows of `row_bits` bits, in one slice.
std::uint64_t memory_for(std::uint64_t rows, unsigned row_bits) {
  const std::uint64_t bytes = (rows * row_bits + 7) / 8;
  return kStoredHeader + sizeof(SliceState) + (bytes + 63) / 64 * 64;
}

constexpr const char* kDefinitions[] = {
    "sqf(memory=4kB)",
    "sqf(memory=4kB, r=2, r_prime=1, buckets=4)",
    "sqf(memory=4kB, r=2, r_prime=1, buckets=3)",
    "sqf(memory=1kB, r=2, r_prime=1, buckets=1)",
    "sqf(memory=4kB, r=1, r_prime=0, buckets=1)",
    "sqf(memory=2kB, r=4, r_prime=2, p=12)",
    "sqf(memory=2kB, r=5, r_prime=2, buckets=3, slices=3)",
    "sqf(memory=2kB, r=11, r_prime=5, buckets=8)",
    "sqf(memory=4kB, r=24, r_prime=23, buckets=5, slices=2)",
    "sqf(memory=2kB, r=9, omega=161, buckets=7)",
    "sqf(memory=2kB, r=6, r_prime=0, buckets=64)",
    "sqf(memory=2kB, r=4, r_prime=2, fingerprint=integer)",
    "sqf(memory=2kB, r=4, omega=9, fingerprint=integer, p=9, slices=1)",
    "sqf(memory=2kB, r=4, r_prime=2, fingerprint=integer, p=11, slices=3)",
    "sqf(memory=2kB, keys=3000, fingerprint=integer)",
};

}  // namespace

// The example of Dutta et al. 2013 §3.1: fingerprint 10100111, r = 4, the two most significant bits
// selected.
BOOST_AUTO_TEST_CASE(the_signature_of_the_papers_example) {
  const Parameters p =
      parameters_of("sqf(memory=1kB, r=4, r_prime=2, buckets=1, p=8, fingerprint=integer)");
  BOOST_TEST(p.integer(quotient::kOmega) == 12u);
  BOOST_TEST(p.integer(quotient::kSliceRows) == 16u);
  const RowEntry place = quotient::locate(p, Element{0b10100111});
  BOOST_TEST(place.row == 0b1010u);
  BOOST_TEST(place.code == 1u + 0b01 * 3 + 2);  // reduced remainder 01, two ones among the others
}

// Every remainder: equal codes exactly where the signatures are equal, all codes in 1..count().
BOOST_AUTO_TEST_CASE(codes_stand_for_signatures) {
  for (unsigned r = 1; r <= 8; ++r)
    for (std::uint64_t omega = 0; omega + 1 < 1u << r; ++omega) {
      const unsigned r_prime = static_cast<unsigned>(__builtin_popcountll(omega));
      const quotient::Signatures signatures(r, r_prime);
      std::vector<PlainSignature> of_code(signatures.count() + 1, {"", ~0u});
      std::vector<std::uint64_t> times(signatures.count() + 1);
      for (std::uint64_t remainder = 0; remainder < 1u << r; ++remainder) {
        const std::uint64_t code = signatures.code(remainder, omega);
        BOOST_TEST_REQUIRE((code >= 1 && code <= signatures.count()));
        const PlainSignature signature = plain_signature(remainder, r, omega);
        if (times[code]++ > 0) BOOST_TEST_REQUIRE((of_code[code] == signature));
        of_code[code] = signature;
      }
      for (std::uint64_t code = 1; code <= signatures.count(); ++code) {
        BOOST_TEST_REQUIRE(times[code] == signatures.weight(code));
        if (code > 1) BOOST_TEST_REQUIRE((of_code[code - 1] < of_code[code]));
      }
      BOOST_TEST_REQUIRE(signatures.count() < 1u << signatures.width());
      BOOST_TEST_REQUIRE(signatures.count() >= 1u << (signatures.width() - 1));
    }
}

// (5,2) fits 5 bits a bucket, (11,5) 8 bits; where few signatures exist, a row is a bit for each.
BOOST_AUTO_TEST_CASE(rows_are_as_small_as_they_can_be) {
  const auto rows = [](const std::string& shape) {
    return parameters_of("sqf(" + shape +
                         ", slices=1, memory=" + std::to_string(memory_for(4096, 15)) + ")")
        .integer(quotient::kSliceRows);
  };
  BOOST_TEST(rows("r=5, r_prime=2, buckets=3") == 4096u);
  BOOST_TEST(rows("r=4, r_prime=2, buckets=4") == 4096u * 15 / 12);
  BOOST_TEST(rows("r=2, r_prime=1, buckets=4") == 4096u * 15 / 4);
  BOOST_TEST(rows("r=3, r_prime=1, buckets=2") == 4096u * 15 / 6);
  BOOST_TEST(rows("r=11, r_prime=5, buckets=8") == 4096u * 15 / 64);
}

// Definitions are complete and read back, too.
BOOST_AUTO_TEST_CASE(equals_a_plain_reference) {
  for (const char* definition : kDefinitions) BOOST_TEST_CONTEXT(definition) {
      Filter filter(read_back(definition));
      const Parameters& p = filter.parameters();
      PlainSlices<PlainQuotientFilter> plain(filter, keeps_bitmaps(p));
      const std::uint64_t keys = p.memory * 2;
      compare(filter, plain, scaled(40000), true, [&](std::mt19937_64& random) {
        Element element = element_of(p, random() % keys);
        if (p.key_shift != 0 && random() % 97 == 0)
          element.hash = random();  // out of range, negative
        return element;
      });
      for (std::uint64_t number = 0; number < keys; ++number) {
        const Element element = element_of(p, number);
        BOOST_TEST_REQUIRE(filter.test(element) == plain.test(element.hash));
      }
      for (std::uint32_t s = 0; s < p.slices; ++s) {
        BOOST_TEST(filter.slice(s).state->insertions == plain[s].insertions);
        BOOST_TEST(filter.slice(s).state->inserted_new == plain[s].inserted_new);
        BOOST_TEST(filter.slice(s).state->own[0] == plain[s].used);
      }
    }
}

// ---- the paper's figures ----------------------------------------------------------------------

namespace {

// Table 2's stream: D = f N integers once each and N - D uniform draws from them, shuffled.
std::vector<std::uint32_t> shuffled_list(std::uint64_t records, std::uint64_t distinct) {
  std::mt19937_64 random(1);
  std::vector<std::uint32_t> list(records);
  std::iota(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(distinct), 0u);
  for (std::uint64_t i = distinct; i < records; ++i)
    list[i] = static_cast<std::uint32_t>(scale(random(), distinct));
  for (std::uint64_t i = records; i > 1; --i) std::swap(list[i - 1], list[scale(random(), i)]);
  return list;
}

// Within 3 % of the printed figure or four standard errors, whichever is larger.
bool agrees(double rate, double percent, double n) {
  const double printed = percent / 100;
  return std::fabs(rate - printed) <=
         std::max(0.03 * printed, 4 * std::sqrt(printed * (1 - printed) / n));
}

}  // namespace

BOOST_AUTO_TEST_CASE(table_2) {
  constexpr std::uint64_t kScale = 256;  // a power of two: the thresholds stay where they are
  struct PrintedRow {
    unsigned r, r_prime, buckets, row_bits;
    double fpr, fnr;  // 0: exactly
  };
  struct Part {
    std::uint64_t records;
    double distinct_share;
    unsigned p;  // of the full scale
    std::vector<PrintedRow> rows;
  };
  const Part parts[] = {
      {1000000000, .15, 28, {{2, 1, 4, 4, 0, 0}, {4, 2, 4, 16, 11.96, 61.08}}},
      {695000000,
       .6,
       29,
       {{2, 1, 4, 4, 0, 0}, {4, 2, 4, 16, 12.00, 53.53}, {5, 2, 3, 15, 13.91, 72.70}}},
      {100000000,
       .9,
       27,
       {{2, 1, 4, 4, 0, 0}, {4, 2, 4, 16, 12.05, 49.76}, {5, 2, 3, 15, 13.92, 70.70}}},
  };
  for (const Part& part : parts) {
    const std::uint64_t records = part.records / kScale;
    const std::uint64_t distinct =
        static_cast<std::uint64_t>(static_cast<double>(records) * part.distinct_share);
    const unsigned p = part.p - 8;
    BOOST_TEST_REQUIRE(distinct <= std::uint64_t{1} << p);
    const std::vector<std::uint32_t> stream = shuffled_list(records, distinct);
    for (const PrintedRow& row : part.rows) {
      const std::string text =
          "sqf(" + shape_text(row.r, row.r_prime, row.buckets) + ", p=" + std::to_string(p) +
          ", fingerprint=integer, slices=1, memory=" +
          std::to_string(memory_for(std::uint64_t{1} << (p - row.r), row.row_bits)) + ")";
      BOOST_TEST_CONTEXT(text) {
        Filter filter(text);
        auto next = stream.begin();
        const Errors errors = errors_of(
            filter, records, [&] { return *next++; },
            [&](std::uint64_t number) { return element_of(filter.parameters(), number); });
        if (row.fpr == 0) {
          BOOST_TEST(errors.positives == 0);
          BOOST_TEST(errors.negatives == 0);
          BOOST_TEST(filter.estimate().distinct == static_cast<double>(distinct));
        } else {
          BOOST_TEST(agrees(errors.fpr(), row.fpr, errors.fresh));
          BOOST_TEST(agrees(errors.fnr(), row.fnr, errors.repeats));
        }
      }
    }
  }
}

// The same setting with an honest hash: 1 - (1 - e^-x) / x, x = D / 2^p.
BOOST_AUTO_TEST_CASE(an_honest_hash_does_not_give_the_printed_zeros) {
  const double x = 150e6 / (1 << 28);
  const std::uint64_t distinct = static_cast<std::uint64_t>(x * (1 << 20));
  Filter filter("sqf(r=2, r_prime=1, buckets=4, p=20, slices=1, memory=" +
                std::to_string(memory_for(1 << 18, 4)) + ")");
  BOOST_TEST(filter.parameters().integer(quotient::kSliceRows) == 1u << 18);
  const double false_positives = insert_keys(filter, 0, distinct);
  const double expected = 1 - (1 - std::exp(-x)) / x;
  BOOST_TEST(expected == 0.234, tolerance(0.002));
  check_rate(false_positives, distinct, expected);
  BOOST_TEST(count_known(filter, 0, distinct) == distinct);
}

// ---- models -----------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(what_the_number_of_ones_adds) {
  const struct {
    unsigned bits;
    double entropy;
  } kExpected[] = {{1, 1}, {2, 1.41}, {3, 1.68}, {4, 1.87}, {6, 2.15}, {8, 2.35}, {10, 2.51}};
  for (const auto& [bits, entropy] : kExpected) {
    BOOST_TEST(std::fabs(-std::log2(quotient_model::collision(0, bits)) - entropy) < 0.01);
    BOOST_TEST(quotient_model::collision(3, bits) == quotient_model::collision(0, bits) / 8);
    // Eq. 7, corrected.
    BOOST_TEST(quotient_model::collision(0, bits) == 1 / std::sqrt(M_PI * bits), tolerance(0.13));
  }
}

BOOST_AUTO_TEST_CASE(mean_fill_by_summation) {
  // 3 keys in 2 rows of 2: row loads 0, 1, 2, 3 with probabilities 1, 3, 3, 1 of 8.
  BOOST_TEST(quotient_model::mean_fill(3, 2, 2) == (3 * 1 + 3 * 2 + 1 * 2) / 8.0, tolerance(1e-12));
  BOOST_TEST(quotient_model::mean_fill(3, 1, 2) == 2.0);
  BOOST_TEST(quotient_model::mean_fill(1e6, 1e6, 60) == 1.0, tolerance(1e-9));
  BOOST_TEST(quotient_model::mean_fill(1e9, 1e3, 4) == 4.0);
}

namespace {

// The false-positive rate of a row that has held k signatures for a long time, on a stream of new
// keys (quotient_model::fnr says why): 1 - (k+1) e_{k+1} / e_k, where e_j are the elementary
// symmetric polynomials of the probabilities of all signatures.
double full_row_fpr(unsigned r_prime, unsigned u, unsigned k) {
  std::vector<double> e(k + 2);
  e[0] = 1;
  for (unsigned ones = 0; ones <= u; ++ones) {
    const double probability =
        std::ldexp(quotient_model::binomial(u, ones), -static_cast<int>(r_prime + u));
    for (unsigned signature = 0; signature < 1u << r_prime; ++signature)
      for (unsigned i = k + 1; i > 0; --i) e[i] += probability * e[i - 1];
  }
  return 1 - (k + 1) * e[k + 1] / e[k];
}

}  // namespace

// e_k by listing all sets of k signatures.
BOOST_AUTO_TEST_CASE(full_row_fpr_by_enumeration) {
  for (unsigned k = 1; k <= 5; ++k) {
    std::vector<double> probability;  // r' = 1, u = 2
    for (int selected = 0; selected < 2; ++selected)
      for (const double ones : {1, 2, 1}) probability.push_back(ones / 8);
    double all = 0, hits = 0;
    for (unsigned set = 0; set < 1u << 6; ++set) {
      if (static_cast<unsigned>(__builtin_popcount(set)) != k) continue;
      double product = 1, sum = 0;
      for (unsigned i = 0; i < 6; ++i)
        if (set >> i & 1) {
          product *= probability[i];
          sum += probability[i];
        }
      all += product;
      hits += product * sum;
    }
    BOOST_TEST(full_row_fpr(1, 2, k) == hits / all, tolerance(1e-12));
  }
  BOOST_TEST(full_row_fpr(1, 2, 6) == 1.0);
}

namespace {

constexpr struct {
  unsigned r, r_prime, buckets;
} kShapes[] = {{2, 1, 3}, {3, 1, 2}, {4, 2, 4}, {5, 2, 3}, {11, 5, 8}, {10, 8, 4}, {6, 0, 2}};

}  // namespace

// An endless stream of new keys: full_row_fpr is exact, fpr_bound holds from the first key on, and
// the filter's own report is right at any time.
BOOST_AUTO_TEST_CASE(endless_new_keys_reach_the_full_row_rate_below_the_bound) {
  for (const auto& [r, r_prime, buckets] : kShapes)
    BOOST_TEST_CONTEXT(shape_text(r, r_prime, buckets)) {
      Filter filter("sqf(memory=4kB, " + shape_text(r, r_prime, buckets) + ")");
      const double bound = filter.fpr_bound();
      const double rows = static_cast<double>(filter.parameters().integer(quotient::kSliceRows));
      const std::uint64_t warm_up = static_cast<std::uint64_t>(rows * buckets * 40);
      double false_positives = 0, predicted = 0;
      std::uint64_t number = 0;
      while (number < warm_up) {
        if (number % 64 == 0) predicted += 64 * filter.estimate().fpr;
        false_positives += filter.insert(key(number++));
      }
      const double n = static_cast<double>(warm_up);
      BOOST_TEST(false_positives <= most(n, bound));
      check_rate(false_positives, n, predicted / n);
      BOOST_TEST(filter.estimate().fill == 1.0, tolerance(1e-6));
      const std::uint64_t more = scaled(300000);
      false_positives = insert_keys(filter, warm_up, warm_up + more);
      const double rate = full_row_fpr(r_prime, r - r_prime, buckets);
      BOOST_TEST(rate <= bound);
      check_rate(false_positives, more, rate);
    }
}

// Repeats of few keys, recent and old ones: the bound holds for new keys.
BOOST_AUTO_TEST_CASE(the_bound_holds_on_streams_with_repeats) {
  for (const auto& [r, r_prime, buckets] : kShapes)
    for (const std::uint64_t hot : {50u, 1000u, 20000u})
      BOOST_TEST_CONTEXT(shape_text(r, r_prime, buckets) << ", hot " << hot) {
        Filter filter("sqf(memory=4kB, " + shape_text(r, r_prime, buckets) + ")");
        std::mt19937_64 random(hot);
        const double bound = filter.fpr_bound();
        double false_positives = 0, inserted_new = 0;
        for (std::uint64_t i = 0; i < scaled(200000); ++i) {
          if (random() % 8 != 0) {
            filter.insert(key(random() % hot));
          } else {
            false_positives += filter.test(key(1000000 + i));
            inserted_new += 1;
          }
        }
        BOOST_TEST(false_positives <= most(inserted_new, bound));
      }
}

// With `keys`, the bound is nearly reached when that many keys have arrived.
BOOST_AUTO_TEST_CASE(the_bound_for_a_number_of_keys) {
  for (const char* text :
       {"sqf(memory=16kB, keys=10000)", "sqf(memory=16kB, keys=30000)",
        "sqf(memory=16kB, keys=16000, fpr=0.1)", "sqf(memory=16kB, keys=20000, r=2, r_prime=1)",
        "sqf(memory=16kB, keys=20000, r=11, r_prime=5, buckets=8)"})
    BOOST_TEST_CONTEXT(text) {
      double false_positives = 0, asked = 0, bound = 1;
      for (const char* seed : {"1", "2", "3", "4"}) {
        Filter filter(std::string(text, std::strlen(text) - 1) + ", seed=" + seed + ")");
        const Parameters& p = filter.parameters();
        bound = sqf_ops.fpr_bound(p);
        if (!strstr(text, "r=")) BOOST_TEST(bound <= wanted_fpr(p));
        const std::uint64_t first = std::strtoull(seed, nullptr, 10) << 32, end = first + p.keys;
        insert_keys(filter, first, end);
        false_positives += count_known(filter, end, end + 100000);
        asked += 100000;
      }
      BOOST_TEST(false_positives <= most(asked, bound));
      BOOST_TEST(false_positives >= 0.8 * asked * bound);
    }
}

// False negatives at a gap, in full rows.
BOOST_AUTO_TEST_CASE(fnr_at_a_gap) {
  for (const auto& [r, r_prime, buckets] : kShapes) {
    Filter filter("sqf(memory=4kB, " + shape_text(r, r_prime, buckets) + ")");
    const Parameters& p = filter.parameters();
    const std::uint64_t capacity = p.integer(quotient::kSliceRows) * buckets;
    std::uint64_t number = 0;
    while (number < capacity * 20) filter.insert(key(number++));
    for (const double share : {0.1, 0.5, 1.0, 3.0})
      BOOST_TEST_CONTEXT(shape_text(r, r_prime, buckets) << ", gap of " << share << " capacities") {
        const std::uint64_t gap = static_cast<std::uint64_t>(share * static_cast<double>(capacity));
        double forgotten = 0, asked = 0;
        const std::uint64_t first = number;
        const std::uint64_t count = scaled(60000);
        for (std::uint64_t i = 0; i < gap + count; ++i) {
          filter.insert(key(number++));
          if (number - first > gap) {
            forgotten += !filter.test(key(number - 1 - gap));
            asked += 1;
          }
        }
        const double model = sqf_ops.fnr_at(p, static_cast<double>(gap));
        // Keys of one row are forgotten together: allow for some correlation.
        BOOST_TEST(std::fabs(forgotten / asked - model) <=
                   0.02 * model + 6 * std::sqrt(model * (1 - model) / asked));
      }
  }
}

BOOST_AUTO_TEST_CASE(fnr_has_its_limits) {
  const Parameters p = parameters_of("sqf(memory=64kB)");
  BOOST_TEST(sqf_ops.fnr_at(p, 0) == 0.0);
  double last = 0;
  for (double gap = 1; gap < 1e9; gap *= 3) {
    const double now = sqf_ops.fnr_at(p, gap);
    BOOST_TEST(now >= last);
    last = now;
  }
  BOOST_TEST(last == 1 - full_row_fpr(8, 2, 4), tolerance(1e-9));
  BOOST_TEST(window_keys(p, 0.1) > 0);
  BOOST_TEST(std::isinf(window_keys(parameters_of("sqf(r=2, r_prime=1)"), 0.01)));
}

// ---- definitions ------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(derived_parameters_keep_fpr) {
  for (const double fpr : {0.5, 0.1, 0.01, 0.001, 1e-5, 1e-6})
    for (const std::uint64_t keys : {0u, 100u, 10000u, 40000u, 200000u, 4000000u})
      for (const char* memory : {"1kB", "64kB", "1MB"}) {
        const std::string text = "sqf(memory=" + std::string(memory) +
                                 ", fpr=" + std::to_string(fpr) +
                                 (keys > 0 ? ", keys=" + std::to_string(keys) : "") + ")";
        const Parameters p = parameters_of(text);
        BOOST_TEST_CONTEXT(text_of(p)) {
          BOOST_TEST(sqf_ops.fpr_bound(p) <= fpr);
          BOOST_TEST(sqf_ops.fpr_bound(p) > 0);
          if (keys == 0) BOOST_TEST(option_value(p, "buckets") == 4u);
          BOOST_TEST(text_of(parameters_of(text_of(p))) == text_of(p));
        }
      }
  const Problem problem = refusal("sqf(fpr=1e-9)");
  BOOST_TEST((problem.error == Error::conflict));
}

BOOST_AUTO_TEST_CASE(integer_keys_get_a_place_each) {
  const Parameters small = parameters_of("sqf(memory=1MB, keys=1000000, fingerprint=integer)");
  BOOST_TEST(option_value(small, "r") == 2u);
  BOOST_TEST(option_value(small, "p") == 20u);
  BOOST_TEST(sqf_ops.fpr_bound(small) == 0.0);
  BOOST_TEST(sqf_ops.fnr_at(small, 1e9) == 0.0);
  // With more keys than bits: longer remainders that still differ, evictions, no false positives.
  const char* const kTexts[] = {"sqf(memory=64kB, keys=1000000, fingerprint=integer)",
                                "sqf(memory=64kB, keys=1000000, fingerprint=integer, slices=7)",
                                "sqf(memory=64kB, keys=100, fingerprint=integer)",
                                "sqf(memory=64kB, p=16, fingerprint=integer, slices=3)",
                                "sqf(memory=4kB, keys=100000, r=9, fingerprint=integer)"};
  for (const char* text : kTexts) BOOST_TEST_CONTEXT(text) {
      Filter filter(text);
      const Parameters& p = filter.parameters();
      BOOST_TEST(sqf_ops.fpr_bound(p) == 0.0);
      const std::uint64_t keys = p.keys > 0 ? p.keys : 65536;
      const auto shuffled = [&](std::uint64_t number) { return Element{number * 7919 % keys}; };
      BOOST_TEST(insert_keys(filter, 0, keys, shuffled) == 0);
      BOOST_TEST(filter.estimate().fpr == 0.0);
    }
}

BOOST_AUTO_TEST_CASE(impossible_definitions_are_explained) {
  check_refused(Error::conflict,
                {"sqf(r=3, r_prime=3)", "sqf(p=3, r=4)", "sqf(omega=16777215)", "sqf(omega=5, r=2)",
                 "sqf(omega=5, r_prime=1)", "sqf(omega=7, r=3)", "sqf(fingerprint=integer)"});
  check_refused(Error::out_of_range,
                {"sqf(r=25)", "sqf(r=0)", "sqf(r_prime=24)", "sqf(buckets=0)", "sqf(buckets=65)",
                 "sqf(p=65)", "sqf(omega=0)", "sqf(omega=16777216)"});
  check_refused(Error::syntax, {"sqf(fingerprint=integers)"});
  check_refused(Error::too_small, {"sqf(fingerprint=integer, keys=1e15)",
                                   "sqf(fingerprint=integer, keys=1e6, r=2, memory=64kB)",
                                   "sqf(r=4, r_prime=2, p=30, memory=64kB)",
                                   "sqf(r=24, r_prime=23, buckets=64, memory=252)"});
  check_refused(Error::unknown_name, {"sqf(rows=5)"});
  check_refused(Error::unsupported, {"sqf(layout=blocked)"});
}

// ---- the rest ---------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(erase_forgets_one_key) {
  for (const char* definition : kDefinitions) BOOST_TEST_CONTEXT(definition) {
      Filter filter(definition);
      for (std::uint64_t number = 0; number < 3000; ++number) {
        const Element element = element_of(filter.parameters(), number);
        filter.insert(element);
        BOOST_TEST_REQUIRE(erase(filter.header(), element));
        BOOST_TEST_REQUIRE(!filter.test(element));
        BOOST_TEST_REQUIRE(!erase(filter.header(), element));
      }
      BOOST_TEST(filter.estimate().fill == 0.0);
      BOOST_TEST(filter.is_valid());
    }
}

BOOST_AUTO_TEST_CASE(merge_is_the_union_where_it_fits) {
  const std::string text = "sqf(memory=64kB, keys=6000, slices=2)";
  Filter a = filled(text, 4000), b(text);
  insert_keys(b, 3000, 6000);
  BOOST_TEST_REQUIRE(a.merge(b));
  BOOST_TEST(a.is_valid());
  BOOST_TEST(count_known(a, 0, 6000) >= 5990);
  const Totals sum = totals(a.header());
  BOOST_TEST(sum.insertions == 7000u);
  BOOST_TEST(static_cast<double>(sum.inserted_new) == 6000, tolerance(0.01));
  BOOST_TEST(sum.estimate.distinct == 6000, tolerance(0.01));
}

// Full rows: a random choice without preference.
BOOST_AUTO_TEST_CASE(merge_prefers_neither_side) {
  for (const char* text : {"sqf(memory=64kB)", "sqf(memory=64kB, r=5, r_prime=4, buckets=8)",
                           "sqf(memory=64kB, r=4, r_prime=3, buckets=5)"})
    BOOST_TEST_CONTEXT(text) {
      const std::uint64_t keys = 400000;
      Filter a = filled(text, keys), b(text);
      insert_keys(b, keys, 2 * keys);
      const Filter before_a = a, before_b = b;
      BOOST_TEST_REQUIRE(a.merge(b));
      BOOST_TEST(a.is_valid());
      BOOST_TEST(a.estimate().fill == 1.0, tolerance(1e-9));
      double of_a = 0, in_a = 0, of_b = 0, in_b = 0;
      for (std::uint64_t number = keys - 60000; number < keys; ++number) {
        if (before_a.test(key(number)) && !before_b.test(key(number))) {
          in_a += 1;
          of_a += a.test(key(number));
        }
        if (before_b.test(key(keys + number)) && !before_a.test(key(keys + number))) {
          in_b += 1;
          of_b += a.test(key(keys + number));
        }
      }
      BOOST_TEST(same_rate(of_a, in_a, of_b, in_b));
    }
}

BOOST_AUTO_TEST_CASE(distinct_keys_are_estimated_where_that_is_sound) {
  // The estimate: from signatures before the first eviction, then from empty rows, then unknown.
  Filter filter("sqf(memory=64kB, r=4, r_prime=2, slices=1)");
  const double rows = static_cast<double>(filter.parameters().integer(quotient::kSliceRows));
  std::uint64_t number = 0;
  for (const double load : {0.01, 0.1, 1.0, 2.0, 4.0}) {
    while (static_cast<double>(number) < load * rows) {
      filter.insert(key(number));
      filter.insert(key(number++ / 2));
    }
    BOOST_TEST(filter.estimate().distinct == static_cast<double>(number), tolerance(0.05));
  }
  while (static_cast<double>(number) < 15 * rows) filter.insert(key(number++));
  BOOST_TEST(std::isnan(filter.estimate().distinct));
}

// On any bytes, check refuses, or every operation works.
BOOST_AUTO_TEST_CASE(damaged_bytes_are_found_or_harmless) {
  std::mt19937_64 random(3);
  std::uint64_t refused = 0, rounds = 0;
  for (const char* definition : kDefinitions) {
    Filter original(definition);
    const auto any = [&] { return element_of(original.parameters(), random() % 5000); };
    for (std::uint64_t i = 0; i < 3000; ++i) original.insert(any());
    const auto use = [&](Filter& filter) {
      for (std::uint64_t i = 0; i < 500; ++i) {
        filter.insert(any());
        erase(filter.header(), any());
      }
      totals(filter.header());
    };
    refused += damage(original, 300, use, 0);
    rounds += 300;
  }
  BOOST_TEST_MESSAGE(rounds - refused << " damaged filters accepted");
  BOOST_TEST(rounds - refused < 450u);
}

BOOST_AUTO_TEST_SUITE_END()
