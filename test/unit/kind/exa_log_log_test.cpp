// Kind ell: registers and tokens against literal references, the accuracy of the count, and
// merging. Keys are fixed. A statistical bound states the odds that a correct program would break
// it with other keys.
#include <algorithm>
#include <bit>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "core/kind/exa_log_log.hpp"
#include "core/kind/exa_log_log_words.hpp"
#include "core/model/exa_log_log_model.hpp"
#include "unit/support/filters.hpp"
#include "unit/support/kind_checks.hpp"
#include "unit/support/rates.hpp"
#include "unit/support/streams.hpp"

using namespace streamfilter;
using namespace unit;
using namespace exa_log_log_model;

BOOST_AUTO_TEST_SUITE(exa_log_log)

namespace {

// A register as a set of update values.
std::uint32_t register_of(const std::set<unsigned>& values) {
  if (values.empty()) return 0;
  const unsigned largest = *values.rbegin();
  std::uint32_t bits = largest << kHistory;
  for (const unsigned value : values)
    if (value < largest && largest - value <= kHistory)
      bits |= 1u << (kHistory - (largest - value));
  return bits;
}

double count(const Filter& filter) {
  bool full;
  return distinct_keys(filter.header(), full);
}

double counted(const char* text, std::uint64_t from, std::uint64_t to) {
  Filter filter(text);
  insert_keys(filter, from, to);
  return count(filter);
}

}  // namespace

BOOST_AUTO_TEST_CASE(update_values_have_their_probabilities) {
  std::mt19937_64 random(1);
  std::map<unsigned, double> share;
  constexpr unsigned kDraws = 1 << 20;
  for (unsigned i = 0; i < kDraws; ++i) share[update_value(random())] += 1.0 / kDraws;
  for (unsigned value = 1; value <= 24; ++value) {
    const double expected = std::ldexp(1, -static_cast<int>(3 + (value - 1) / 4));
    BOOST_TEST(std::fabs(share[value] - expected) < 5 * std::sqrt(expected / kDraws), value);
  }
  BOOST_TEST(update_value(~std::uint64_t{0}) == 4u);
  BOOST_TEST(update_value(0) == kMaxValue - 3);
  BOOST_TEST(update_value(3) == kMaxValue);
}

BOOST_AUTO_TEST_CASE(registers_are_sets_of_the_latest_values) {
  std::mt19937_64 random(2);
  for (unsigned round = 0; round < 2000; ++round) {
    const unsigned low = round % 3 == 0 ? 1 : 1 + static_cast<unsigned>(random() % 200);
    std::set<unsigned> one, other, both;
    std::uint32_t a = 0, b = 0;
    for (unsigned i = 0; i < round % 40; ++i) {
      const unsigned value = low + static_cast<unsigned>(random() % 50);
      auto& values = random() % 2 ? one : other;
      std::uint32_t& bits = &values == &one ? a : b;
      values.insert(value);
      both.insert(value);
      bits = updated(bits, value);
      BOOST_REQUIRE_EQUAL(updated(bits, value), bits);
      BOOST_REQUIRE(is_possible(bits));
    }
    BOOST_REQUIRE_EQUAL(a, register_of(one));
    BOOST_REQUIRE_EQUAL(b, register_of(other));
    BOOST_REQUIRE_EQUAL(merged(a, b), register_of(both));
    BOOST_REQUIRE_EQUAL(merged(b, a), register_of(both));
  }
  BOOST_TEST(!is_possible(1));
  BOOST_TEST(!is_possible((1u << kHistory) + 1));
  BOOST_TEST(!is_possible((kMaxValue + 1) << kHistory));
}

// The likelihood, value by value; then many registers at once or one by one, at any address.
BOOST_AUTO_TEST_CASE(many_registers_merge_as_one_does) {
  std::mt19937_64 random(39);
  for (unsigned round = 0; round < 300; ++round) {
    const std::size_t count = random() % 70;
    const unsigned values = 1 + static_cast<unsigned>(random() % kMaxValue);
    std::vector<std::uint32_t> a(count + 1), b(count + 1), both(count + 1);
    for (std::size_t i = 0; i < count; ++i) {
      for (auto* registers : {&a, &b})
        for (std::uint64_t keys = random() % 9; keys > 0; --keys)
          (*registers)[i] = updated((*registers)[i], 1 + static_cast<unsigned>(random() % values));
      both[i] = merged(a[i], b[i]);
    }
    const std::size_t shift = round % 4;
    std::vector<unsigned char> into(count * 4 + shift);
    std::memcpy(into.data() + shift, a.data(), count * 4);
    merge_registers(into.data() + shift, reinterpret_cast<const unsigned char*>(b.data()), count);
    BOOST_REQUIRE(std::memcmp(into.data() + shift, both.data(), count * 4) == 0);
  }
}

BOOST_AUTO_TEST_CASE(a_new_key_changes_as_many_registers_as_they_say) {
  Filter filter("ell(memory=8kB, slices=1)");
  for (unsigned keys : {0, 10, 1000, 30000}) {
    insert_keys(filter, 1000 * keys, 1001 * keys);
    constexpr unsigned kTests = 20000;
    const double repeats = count_known(filter, 1000000000, 1000000000 + kTests);
    const double fpr = filter.estimate().fpr;
    BOOST_TEST(std::fabs(repeats / kTests - fpr) < 5 * std::sqrt((fpr + 1e-4) / kTests));
  }
}

namespace {

// The two sides of the likelihood, value by value; halving finds where they meet.
struct LiteralLikelihood {
  long double alpha = 0;
  std::map<unsigned, double> came;  // by exponent

  void add(std::uint32_t bits) {
    const unsigned largest = bits >> kHistory;
    for (unsigned value = 1; value <= kMaxValue; ++value) {
      const bool is_known =
          value == largest || (value < largest && (bits & history_bit(largest, value)));
      if (is_known)
        came[exponent(value)] += 1;
      else if (value + kHistory >= largest)
        alpha += std::ldexp(1.L, -static_cast<int>(exponent(value)));
    }
  }
  long double distinct(double registers) const {
    long double low = -60, high = 64;
    for (unsigned i = 0; i < 90; ++i) {
      const long double middle = (low + high) / 2, x = std::exp2(middle);
      long double sum = 0;
      for (const auto& [j, count] : came)
        sum += count * std::ldexp(1.L, -static_cast<int>(j)) /
               std::expm1(std::ldexp(x, -static_cast<int>(j)));
      (sum > alpha ? low : high) = middle;
    }
    return came.empty() ? 0 : registers * std::exp2(low);
  }
};

}  // namespace

// Registers after 1 to 2^60 keys each, including values far from the others.
BOOST_AUTO_TEST_CASE(the_likelihood_is_that_of_its_registers_one_by_one) {
  std::mt19937_64 random(11);
  for (unsigned round = 0; round < 600; ++round) {
    std::vector<std::uint32_t> registers(1 + random() % 300);
    const unsigned low = round % 4 == 0 ? 0 : static_cast<unsigned>(random() % 240);
    for (std::uint32_t& bits : registers)
      for (unsigned i = 0; i < random() % 30; ++i) {
        const unsigned zeros = static_cast<unsigned>(std::countl_zero(random() | 1));
        const unsigned value = low + 1 + 4 * zeros + static_cast<unsigned>(random() % 4);
        bits = updated(bits, std::min(value, kMaxValue));
      }
    Likelihood likelihood;
    LiteralLikelihood literal;
    likelihood.add_registers(reinterpret_cast<const unsigned char*>(registers.data()),
                             registers.size());
    for (const std::uint32_t bits : registers) literal.add(bits);
    const double count = static_cast<double>(registers.size());
    BOOST_TEST(std::fabs(likelihood.change() * count / static_cast<double>(literal.alpha) - 1) <
               1e-12);
    const double expected = static_cast<double>(literal.distinct(count));
    BOOST_TEST(std::fabs(likelihood.distinct() - expected) <= 1e-9 * expected,
               round << ": " << likelihood.distinct() << " " << expected);
  }
}

namespace {

// The relative errors of 60 counts, at all numbers of keys: the stated one, less with few keys for
// each register, and no bias beyond chance. count_to(first, end) counts the keys of a new filter.
template <typename Count>
void check_errors(double stated, Count count_to) {
  constexpr unsigned kTrials = 60;
  for (const std::uint64_t keys : {100, 1000, 5000, 20000, 300000}) {
    Mean off;
    for (std::uint64_t i = 0; i < kTrials; ++i)
      off.add(count_to(i << 32, (i << 32) + keys) / static_cast<double>(keys) - 1);
    const double error = off.root_mean_square();
    BOOST_TEST(error < stated * 1.3, keys << " keys");
    BOOST_TEST(std::fabs(off.value()) < 4 * stated / std::sqrt(kTrials), keys << " keys");
    if (keys == 300000) BOOST_TEST(error > stated * .7);
  }
}

constexpr double kBits = (8192 - 64 - 64) * 8;

}  // namespace

BOOST_AUTO_TEST_CASE(as_right_as_the_paper_says, *boost::unit_test::label("long")) {
  check_errors(relative_error(kBits), [](std::uint64_t first, std::uint64_t end) {
    return counted("ell(memory=8kB)", first, end);
  });
}

// The same for one stream, from the changes that its keys make (§3.3): sqrt(3.00 / bits) for many.
BOOST_AUTO_TEST_CASE(as_right_for_one_stream, *boost::unit_test::label("long")) {
  check_errors(std::sqrt(3.00 / kBits), [](std::uint64_t first, std::uint64_t end) {
    Filter filter("ell(memory=8kB)");
    double change = 1, sum = 0;
    for (std::uint64_t i = first; i < end; ++i) {
      const double before = change;
      const auto word = streamfilter::exa_log_log::word_of(filter.parameters(), key(i).hash);
      if (!streamfilter::exa_log_log::add_word(filter.header(), word, change)) sum += 1 / before;
    }
    return sum;
  });
}

BOOST_AUTO_TEST_CASE(few_are_counted_nearly_exactly) {
  BOOST_TEST(counted("ell(memory=1MB)", 0, 0) == 0);
  BOOST_TEST(std::round(counted("ell(memory=1MB)", 0, 1)) == 1);
  BOOST_TEST(std::round(counted("ell(memory=1MB)", 0, 10)) == 10);
  BOOST_TEST(std::fabs(counted("ell(memory=1MB)", 0, 1000) - 1000) < 3);
}

BOOST_AUTO_TEST_CASE(merged_as_if_one_had_seen_all) {
  for (const char* text : {"ell(memory=4kB)", "ell(memory=200kB, slices=3)"}) {
    Filter a(text), b(text), all(text);
    for (unsigned i = 0; i < 20000; ++i) {
      if (i % 3 != 0) a.insert(key(i));
      if (i % 3 != 1) b.insert(key(i));
      all.insert(key(i));
    }
    BOOST_REQUIRE(a.merge(b));
    BOOST_TEST(count(a) == count(all));
    for (std::uint32_t i = 0; i < a.parameters().slices; ++i)
      BOOST_TEST(std::memcmp(slice_at(a.header(), i).body(), slice_at(all.header(), i).body(),
                             slice_at(all.header(), i).bytes) == 0);
    BOOST_TEST(a.is_valid());
    BOOST_TEST(count_known(a, 0, 20000) == 20000);
  }
}

namespace {

std::vector<std::uint64_t> keys_of(std::uint64_t seed, unsigned count) {
  std::mt19937_64 random(seed);
  std::vector<std::uint64_t> hashes(count);
  for (std::uint64_t& hash : hashes) hash = random();
  return hashes;
}

std::uint64_t registers_of(const Filter& filter) { return filter.parameters().integer(0); }

constexpr std::uint64_t kRegistersForm = 0, kTokensForm = 1;
std::uint64_t form_of(Filter& filter) { return filter.slice().state->own[0]; }

// Compares all but what depends on the order of keys: which of them were called new.
std::vector<unsigned char> body_of(Filter& filter) {
  const Slice slice = filter.slice();
  std::vector<unsigned char> bytes(slice.body(), slice.body() + slice.bytes);
  for (const std::uint64_t word : slice.state->own) {
    const auto* first = reinterpret_cast<const unsigned char*>(&word);
    bytes.insert(bytes.end(), first, first + sizeof word);
  }
  return bytes;
}

// Registers of these keys, with the update value in the paper's words: the leading zeros of 62
// random bits, and two more bits.
std::vector<std::uint32_t> literal_registers(const std::vector<std::uint64_t>& hashes,
                                             std::uint64_t registers) {
  std::vector<std::set<unsigned>> values(registers);
  for (const std::uint64_t hash : hashes) {
    const std::uint64_t bits = mix64(hash + 2 * kGoldenRatio);
    unsigned zeros = 0;
    while (zeros < 62 && !(bits >> (63 - zeros) & 1)) ++zeros;
    values[position(hash, 0, registers)].insert(zeros * 4 + static_cast<unsigned>(bits % 4) + 1);
  }
  std::vector<std::uint32_t> made;
  for (const auto& of_one : values) made.push_back(register_of(of_one));
  return made;
}

// A slice that has turned to registers and has no counters: bytes from elsewhere may say so.
void make_old(Filter& filter, const std::vector<std::uint64_t>& hashes) {
  const Slice slice = filter.slice();
  const auto registers = literal_registers(hashes, registers_of(filter));
  std::memset(slice.body(), 0, slice.bytes);
  std::memcpy(slice.body(), registers.data(), registers.size() * sizeof(std::uint32_t));
  std::fill(std::begin(slice.state->own), std::end(slice.state->own), 0);
  slice.state->insertions = slice.state->inserted_new = hashes.size();
}

void insert_all(Filter& filter, const std::vector<std::uint64_t>& hashes) {
  for (const std::uint64_t hash : hashes) filter.insert({hash});
}

}  // namespace

// Places tokens one by one from their homes on, lower homes first, then smaller payloads.
BOOST_AUTO_TEST_CASE(tokens_lie_in_the_order_of_their_homes) {
  for (unsigned round = 0; round < 200; ++round) {
    Filter filter("ell(memory=" + std::to_string(700 + 64 * (round % 40)) + ", slices=1)");
    const std::uint64_t registers = registers_of(filter), slots = 2 * registers;
    auto hashes = keys_of(round, static_cast<unsigned>(slots * (round % 8) / 10));
    insert_all(filter, hashes);
    if (form_of(filter) != kTokensForm) continue;
    std::set<std::pair<std::uint64_t, unsigned>> tokens;
    for (const std::uint64_t hash : hashes) {
      const auto token = streamfilter::exa_log_log::token_of(hash, registers);
      tokens.insert({token.home, token.payload});
    }
    BOOST_TEST(filter.slice().state->own[1] == tokens.size());
    // Tokens of the highest homes may go on at the front: a second round knows all of them.
    std::vector<std::uint16_t> expected(slots);
    std::uint64_t free = 0;
    for (unsigned turn = 0; turn < 2; ++turn) {
      if (turn == 1) std::fill(expected.begin(), expected.end(), 0);
      const std::uint64_t begin = turn == 1 && free > slots ? free - slots : 0;
      free = begin;
      for (const auto& [home, payload] : tokens) {
        const std::uint64_t at = std::max(free, home);
        expected[at % slots] = static_cast<std::uint16_t>((at - home) << 10 | payload);
        free = at + 1;
      }
    }
    for (std::uint64_t i = 0; i < slots; ++i) {
      std::uint16_t bits;
      std::memcpy(&bits, filter.slice().body() + 2 * i, 2);
      BOOST_REQUIRE_EQUAL(bits, expected[i]);
    }
    BOOST_TEST(filter.is_valid());
  }
}

// In any order and at every number of keys: tokens, or exactly the registers of the paper.
BOOST_AUTO_TEST_CASE(tokens_become_the_registers_of_their_keys) {
  for (const unsigned memory : {704, 2048, 8192}) {
    const std::string text = "ell(memory=" + std::to_string(memory) + ", slices=1)";
    const std::uint64_t slots = 2 * registers_of(Filter(text));
    unsigned seen_tokens = 0, seen_registers = 0;
    for (unsigned round = 0; round < 150; ++round) {
      auto hashes = keys_of(1000 + round, static_cast<unsigned>(slots * round / 100));
      Filter one(text), other(text);
      insert_all(one, hashes);
      std::mt19937_64 random(round);
      std::shuffle(hashes.begin(), hashes.end(), random);
      insert_all(other, hashes);
      insert_all(other, hashes);
      BOOST_REQUIRE(body_of(one) == body_of(other));
      BOOST_REQUIRE(one.is_valid());
      for (const std::uint64_t hash : hashes) BOOST_REQUIRE(one.test({hash}));
      (form_of(one) == kTokensForm ? seen_tokens : seen_registers) += 1;
      if (form_of(one) == kTokensForm) continue;
      Filter old(text);
      make_old(old, hashes);
      BOOST_REQUIRE(body_of(one) == body_of(old));
    }
    BOOST_TEST(seen_tokens > 50u);
    BOOST_TEST(seen_registers > 50u);
  }
}

// The key for which tokens have no room is new, whether or not registers change by it.
BOOST_AUTO_TEST_CASE(an_insertion_says_what_a_test_said_before) {
  unsigned became_registers = 0;
  for (unsigned round = 0; round < 300; ++round) {
    Filter filter("ell(memory=256, slices=1)");
    for (const std::uint64_t hash :
         keys_of(5000 + round, 4 * static_cast<unsigned>(registers_of(filter)))) {
      const bool seen = filter.test({hash});
      BOOST_REQUIRE_EQUAL(filter.insert({hash}), seen);
    }
    became_registers += form_of(filter) != kTokensForm;
  }
  BOOST_TEST(became_registers == 300u);
}

// Two filters that saw parts of a stream, as tokens or registers, merge to one that saw both.
BOOST_AUTO_TEST_CASE(any_mixture_merges_to_one_form) {
  const char text[] = "ell(memory=2kB, slices=1)";
  const auto hashes = keys_of(7, 2000);
  bool mixed[2][2] = {};
  for (unsigned all = 50; all <= hashes.size(); all += 50)
    for (const unsigned share : {0, 10, 50, 90}) {
      const unsigned first = all * share / 100;
      const auto from = hashes.begin(), to = from + all, cut = from + first;
      Filter a(text), b(text), reverse(text), both(text);
      // Some keys are in both parts.
      insert_all(a, {from, cut + (to - cut) / 5});
      insert_all(b, {cut, to});
      insert_all(reverse, {cut, to});
      insert_all(both, {from, to});
      mixed[form_of(a)][form_of(b)] = true;
      BOOST_REQUIRE(reverse.merge(a));
      BOOST_REQUIRE(a.merge(b));
      BOOST_REQUIRE(body_of(a) == body_of(both));
      BOOST_REQUIRE(body_of(reverse) == body_of(both));
      BOOST_REQUIRE(a.is_valid());
    }
  for (const auto& row : mixed)
    for (const bool met : row) BOOST_TEST(met);
}

BOOST_AUTO_TEST_CASE(slices_of_before_the_tokens_are_read) {
  const char text[] = "ell(memory=8kB, slices=1)";
  for (const unsigned keys : {0u, 1u, 500u, 20000u}) {
    const auto hashes = keys_of(keys, keys), more = keys_of(keys + 1, 300);
    auto all = hashes;
    all.insert(all.end(), more.begin(), more.end());
    Filter old(text), now(text), expected(text);
    make_old(old, hashes);
    BOOST_TEST(old.is_valid());
    for (const std::uint64_t hash : hashes) BOOST_REQUIRE(old.test({hash}));
    insert_all(now, more);
    make_old(expected, all);
    Filter went_on(text);
    make_old(went_on, hashes);
    insert_all(went_on, more);
    BOOST_REQUIRE(now.merge(old));
    BOOST_TEST((body_of(now) == body_of(expected)));
    BOOST_TEST((body_of(went_on) == body_of(expected)));
    // The error of 1904 registers is 0.79 % for any number of keys: five of it, odds 6e-7 each.
    BOOST_TEST(std::fabs(count(now) - static_cast<double>(all.size())) <=
               5 * .0079 * static_cast<double>(all.size()) + .5);
  }
}

BOOST_AUTO_TEST_CASE(damaged_tokens_are_refused) {
  Filter good("ell(memory=2kB, slices=1)");
  insert_all(good, keys_of(3, 200));
  BOOST_REQUIRE(good.is_valid());
  std::mt19937_64 random(3);
  unsigned refused = 0;
  constexpr unsigned kTrials = 2000;
  for (unsigned i = 0; i < kTrials; ++i) {
    Filter bad = good;
    const std::uint64_t at = random() % (bad.slice().bytes);
    bad.slice().body()[at] ^= static_cast<unsigned char>(1u << random() % 8);
    const bool valid = bad.is_valid();
    refused += !valid;
    // What check accepts could come from other keys, and is safe to use.
    insert_all(bad, keys_of(i, 600));
    if (valid) BOOST_REQUIRE(bad.is_valid());
  }
  BOOST_TEST(refused > kTrials / 2);
  for (const unsigned word : {0, 1, 3, 4}) {
    Filter bad = good;
    bad.slice().state->own[word] += 2;
    BOOST_TEST(!bad.is_valid());
  }
  // Far more copies than the filter counts.
  Filter bad = good;
  bad.slice().state->own[2] = 500 * 256;
  BOOST_TEST(!bad.is_valid());
}

// With tokens, two keys count as one only if their tokens are equal. Among n keys, the number of
// such pairs is Poisson with mean n^2 / 2 * the sum of squared probabilities. The count subtracts
// that mean, so it is off by the number's deviation. Bound: 6 of it, odds 1e-8 each.
BOOST_AUTO_TEST_CASE(tokens_are_counted_nearly_exactly) {
  for (const char* text : {"ell(memory=64kB, slices=1)", "ell(memory=1MB, slices=1)"}) {
    Filter filter(text);
    const double registers = static_cast<double>(registers_of(filter));
    const double squares = (127 / 16384. + std::pow(4, -8) * 4 / 3) / 8 / registers;
    const auto last = static_cast<std::uint64_t>(1.7 * registers);
    std::uint64_t i = 0;
    for (const std::uint64_t n : {last / 100, last / 10, last / 2, last}) {
      for (; i < n; ++i) filter.insert(key(i));
      const double pairs = static_cast<double>(n) * static_cast<double>(n) / 2 * squares;
      BOOST_TEST(form_of(filter) == kTokensForm);
      BOOST_TEST(std::fabs(count(filter) - static_cast<double>(n)) <= 6 * std::sqrt(pairs) + 1,
                 text << " " << n << ": " << count(filter));
    }
  }
}

BOOST_AUTO_TEST_CASE(it_promises_nothing_of_false_positives) {
  BOOST_TEST((refusal("ell(memory=4kB, fpr=0.01)").error == Error::conflict));
}

BOOST_AUTO_TEST_SUITE_END()
