// Sliced filters: where the bits of a key lie, and that such filters do what their formulas say.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstring>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "filters.hpp"
#include "statistics.hpp"
#include "streamfilter/core/slicing_model.hpp"
#include "streams.hpp"

using namespace streamfilter;
using namespace unit;

BOOST_AUTO_TEST_SUITE(slicing)

namespace {

// Every way of cutting a filter; with k bits a key where that is 6.
const std::string kSlicings[] = {
    "slices=40",
    "slices=40, slicing=vertical",
    "slices='8,5', slicing=diced",
    "slices='8,5', slicing=diced, dice=vh",
    "slices=40, k1=2, k2=3",
    "slices=40, k1=3, k2=2",
};

// 40 slices of so many bytes.
std::string memory(unsigned body) { return std::to_string(512 + 40 * (64 + body)); }

std::string bloom(const std::string& slicing, unsigned body, const std::string& more = "k=6") {
  return "bloom(memory=" + memory(body) + ", " + slicing + ", " + more + ")";
}

Element numbered(std::uint64_t number, std::uint64_t seed) { return {hash_word(number, seed)}; }

std::string problem_of(const std::string& text, Error error) {
  Parameters parameters{};
  Problem problem;
  BOOST_TEST(!make_parameters(text, parameters, problem), text);
  BOOST_TEST((problem.error == error), text << ": " << problem.message);
  return std::string(problem.message) + ". " + problem.detail + " " + problem.hint;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

// ---- placement

BOOST_AUTO_TEST_CASE(a_horizontal_key_lies_in_its_slice_with_its_hash) {
  const Parameters p = parameters_of(bloom("slices=40", 64));
  BOOST_TEST(places(p) == 1u);
  BOOST_TEST(parts_of(p) == 40u);
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const Place place = place_of(p, key(i).hash, 0);
    BOOST_TEST(place.slice == slice_of(p, key(i).hash));
    BOOST_TEST(place.hash == key(i).hash);
  }
}

BOOST_AUTO_TEST_CASE(places_are_spread_evenly) {
  for (const std::string& slicing : kSlicings) {
    const Parameters p = parameters_of(bloom(slicing, 64));
    std::vector<std::uint64_t> of_slice(40), of_hash(64);
    for (std::uint64_t i = 0; i < 100000; ++i)
      for (unsigned j = 0; j < places(p); ++j) {
        const Place place = place_of(p, key(i).hash, j);
        BOOST_REQUIRE(place.slice < 40u);
        ++of_slice[place.slice];
        ++of_hash[position(place.hash, 0, 64)];
      }
    // The places of a diced key share their part, so that only one of each is counted there.
    if (parts_of(p) == 1 || places(p) == 1) BOOST_TEST(is_uniform(of_slice), slicing);
    BOOST_TEST(is_uniform(of_hash), slicing);
  }
}

// In both orders, S parts of S2 slices; the v-h one of S2 groups, a slice of each.
BOOST_AUTO_TEST_CASE(the_places_of_a_diced_key_lie_in_one_part) {
  for (const char* dice : {"hv", "vh"}) {
    const Parameters p =
        parameters_of(bloom(std::string("slices='8,5', slicing=diced, dice=") + dice, 64));
    const std::uint32_t size = dice[0] == 'h' ? 5 : 8;
    BOOST_TEST(slices_of_part(p) == size);
    BOOST_TEST(parts_of(p) == 40 / size);
    std::vector<std::uint64_t> of_part(40 / size), of_place(40);
    for (std::uint64_t i = 0; i < 20000; ++i) {
      const std::uint32_t part = place_of(p, key(i).hash, 0).slice / size;
      ++of_part[part];
      for (unsigned j = 0; j < 6; ++j) {
        const Place place = place_of(p, key(i).hash, j);
        BOOST_REQUIRE(place.slice / size == part);
        if (j == 3) ++of_place[place.slice];
      }
    }
    BOOST_TEST(is_uniform(of_part));
    BOOST_TEST(is_uniform(of_place));
  }
}

BOOST_AUTO_TEST_CASE(no_two_keys_share_the_hash_of_a_place) {
  const Parameters p = parameters_of(bloom("slices=40, slicing=vertical", 64));
  std::set<std::uint64_t> hashes;
  for (std::uint64_t i = 0; i < 20000; ++i)
    for (unsigned j = 0; j < 6; ++j) hashes.insert(place_of(p, key(i).hash, j).hash);
  BOOST_TEST(hashes.size() == 120000u);
}

// ---- definitions

BOOST_AUTO_TEST_CASE(every_slicing_is_read_as_it_is_printed) {
  for (const std::string& slicing : kSlicings)
    for (const std::string& text :
         {bloom(slicing, 64), bloom(slicing, 1024, "keys=1000, grow=density"),
          bloom(slicing, 1024, "k=6, grow=cardinality"),
          "timer(memory=100kB, window='1 minute', k=6, " + slicing + ")"}) {
      if (contains(text, "k1") && contains(text, "keys=")) continue;
      const Parameters p = parameters_of(text), again = parameters_of(text_of(p));
      BOOST_TEST(std::memcmp(&p, &again, sizeof p) == 0, text << " and " << text_of(again));
      const Parameters completed = [&] {
        Definition definition = definition_of(p);
        Problem problem;
        BOOST_TEST(complete(definition, problem));
        return definition.parameters;
      }();
      BOOST_TEST(std::memcmp(&p, &completed, sizeof p) == 0, text);
    }
}

BOOST_AUTO_TEST_CASE(a_horizontal_filter_keeps_its_stored_form) {
  const Parameters p = parameters_of("bloom(memory=4kB, k=3, slices=2, slicing=horizontal)");
  BOOST_TEST(text_of(p) == "bloom(memory=4kB, slices=2, k=3)");
  const unsigned char* end = reinterpret_cast<const unsigned char*>(&p) + sizeof p;
  for (const unsigned char* at = end - 8; at < end; ++at) BOOST_TEST(*at == 0);
}

BOOST_AUTO_TEST_CASE(k1_and_k2_know_the_names_of_their_extremes) {
  BOOST_TEST(text_of(parameters_of("bloom(memory=4kB, slices=2, k1=1, k2=5)")) ==
             "bloom(memory=4kB, slices=2, k=5)");
  BOOST_TEST(text_of(parameters_of("bloom(memory=4kB, slices=2, k1=5, k2=1)")) ==
             "bloom(memory=4kB, slices=2, slicing=vertical, k=5)");
  BOOST_TEST(text_of(parameters_of("bloom(memory=4kB, slices=2, k1=2, k2=3)")) ==
             "bloom(memory=4kB, slices=2, k1=2, k2=3, k=6)");
}

BOOST_AUTO_TEST_CASE(what_cannot_be_sliced_so_is_refused) {
  BOOST_TEST(contains(problem_of("sbf(memory=4kB, slicing=vertical)", Error::unsupported),
                      "one of the kinds: bloom, timer"));
  problem_of("clq(memory=4kB, k1=2, k2=2)", Error::unsupported);
  problem_of("auto(memory=4kB, slicing=vertical)", Error::unsupported);
  problem_of("bloom(memory=64kB, k=4, layout=blocked, slicing=vertical)", Error::conflict);
  BOOST_TEST(contains(problem_of("bloom(memory=64kB, k=4, slicing=diced)", Error::conflict),
                      "slices '8,5'"));
  problem_of("bloom(memory=64kB, k=4, slices='8,5')", Error::conflict);
  problem_of("bloom(memory=64kB, k=4, slicing=vertical, dice=hv)", Error::conflict);
  BOOST_TEST(contains(problem_of("bloom(memory=64kB, k1=4)", Error::conflict), "give both"));
  BOOST_TEST(contains(problem_of("bloom(memory=64kB, k=5, k1=2, k2=2)", Error::conflict),
                      "2 times 2 is 4, but k is 5"));
  problem_of("bloom(memory=64kB, k1=2, k2=2, slicing=vertical)", Error::conflict);
  problem_of("bloom(memory=64kB, k1=9, k2=9)", Error::out_of_range);
  problem_of("bloom(memory=64kB, k1=0, k2=9)", Error::out_of_range);
  problem_of("bloom(memory=64kB, k=4, slicing=sideways)", Error::syntax);
  problem_of("bloom(memory=64kB, k=4, slicing=diced, dice=vv)", Error::syntax);
  problem_of("bloom(memory=64kB, k=4, slicing=diced, slices='8,')", Error::syntax);
  problem_of("bloom(memory=64kB, k=4, slicing=diced, slices='8,0')", Error::out_of_range);
  problem_of("bloom(memory=64kB, k=4, slicing=diced, slices='800,800')", Error::out_of_range);
  problem_of("bloom(memory=4kB, k=4, slicing=diced, slices='8,8')", Error::too_small);
  problem_of("timer(memory=64kB, window='100 rows', k=4, slicing=vertical)", Error::conflict);
  problem_of("timer(memory=64kB, window='1 h', k=4, equal_timers=2, slicing=vertical)",
             Error::conflict);
}

BOOST_AUTO_TEST_CASE(a_kind_that_is_chosen_can_be_sliced) {
  const Parameters p = parameters_of("auto(memory=64kB, keys=10000, slicing=vertical, slices=4)");
  BOOST_TEST((p.kind == Kind::bloom));
  BOOST_TEST((parameters_of("auto(memory=64kB, window='1 h', keys=1000, slicing=vertical)").kind ==
              Kind::timer));
}

BOOST_AUTO_TEST_CASE(stored_slicings_that_contradict_themselves_are_refused) {
  const auto refused = [](const std::string& text, auto change) {
    Filter filter(text);
    change(filter.header()->parameters);
    return !filter.is_valid();
  };
  const std::string vertical = bloom("slices=40, slicing=vertical", 64),
                    diced = bloom("slices='8,5', slicing=diced", 64);
  BOOST_TEST(refused(vertical, [](Parameters& p) { p.k1 = 5; }));
  BOOST_TEST(refused(vertical, [](Parameters& p) { p.k2 = 0; }));
  BOOST_TEST(refused(vertical, [](Parameters& p) { p.slices2 = 4; }));
  BOOST_TEST(refused(vertical, [](Parameters& p) { p.slices2 = 0x80000000; }));
  BOOST_TEST(refused(vertical, [](Parameters& p) { p.slicing = static_cast<Slicing>(3); }));
  BOOST_TEST(refused(vertical, [](Parameters& p) { p.dice = Dice::vh; }));
  BOOST_TEST(refused(diced, [](Parameters& p) { p.slices2 = 0; }));
  BOOST_TEST(refused(diced, [](Parameters& p) { p.slices2 = 7; }));
  BOOST_TEST(refused(diced, [](Parameters& p) { p.dice = static_cast<Dice>(2); }));
  BOOST_TEST(refused(diced, [](Parameters& p) { p.k1 = 255; }));
  BOOST_TEST(refused("sbf(memory=4kB)", [](Parameters& p) { p.k1 = p.k2 = 2; }));
  BOOST_TEST(refused("sbf(memory=4kB)", [](Parameters& p) { p.slicing = Slicing::vertical; }));
}

// ---- Bloom filters

namespace {

struct Measured {
  double fpr, deviation;  // of the mean over filters
};

// The rate at which new keys are found in filters that hold n keys, over filters with other hashes.
Measured measure(const std::string& text, std::uint64_t n, unsigned filters, unsigned probes) {
  double sum = 0, squares = 0;
  for (unsigned f = 0; f < filters; ++f) {
    Filter filter(text);
    for (std::uint64_t i = 0; i < n; ++i) filter.insert(numbered(i, f));
    double found = 0;
    for (std::uint64_t i = 0; i < probes; ++i) found += filter.test(numbered(n + i, f));
    const double share = found / probes;
    sum += share;
    squares += share * share;
  }
  const double mean = sum / filters, variance = (squares / filters - mean * mean) / (filters - 1);
  return {mean, std::sqrt(variance)};
}

slicing_model::Shape shape_of(const Parameters& p) {
  return slicing_model::shape_of(p, static_cast<double>(option_value(p, "k")),
                                 static_cast<double>(p.slice_bytes - sizeof(SliceState)) * 8);
}

}  // namespace

// 512 bits a slice and about 60 keys: loads are uneven enough for Eq. 4 to be far off. Filters are
// independent; their mean deviates by more than five standard deviations once in 10^5 (t law).
BOOST_AUTO_TEST_CASE(rates_are_those_of_the_formulas) {
  for (const std::string& slicing : kSlicings) {
    const std::string text = bloom(slicing, 64);
    const std::uint64_t n = 2400;
    const Measured measured = measure(text, n, 60, 4000);
    const double expected =
        slicing_model::rate(shape_of(parameters_of(text)), static_cast<double>(n));
    BOOST_TEST(std::fabs(measured.fpr - expected) <= 5 * measured.deviation,
               slicing << ": " << measured.fpr << " instead of " << expected);
    // The formula for even loads does not pass where there are many parts.
    if (slicing == kSlicings[0])
      BOOST_TEST(measured.fpr - 5 * measured.deviation >
                 slicing_model::rate({1, 6, 1, 40, 512}, static_cast<double>(n)));
  }
}

BOOST_AUTO_TEST_CASE(a_vertical_filter_errs_as_often_as_an_unsliced_one) {
  Filter sliced("bloom(memory=41472, slices=64, slicing=vertical, k=4)"),  // 64 x 4608 bits
      whole("bloom(memory=37440, slices=1, k=4)");                         // 294912 bits
  BOOST_REQUIRE((sliced.parameters().slice_bytes - 64) * 64 == whole.parameters().slice_bytes - 64);
  const std::uint64_t n = 40000;
  double new_of_sliced = 0, new_of_whole = 0;
  for (std::uint64_t i = 0; i < n; ++i) {
    new_of_sliced += !sliced.insert(key(i));
    new_of_whole += !whole.insert(numbered(i, 1));
  }
  BOOST_TEST(same_rate(n - new_of_sliced, n, n - new_of_whole, n));
  double a = 0, b = 0;
  for (std::uint64_t i = n; i < 5 * n; ++i) {
    a += sliced.test(key(i));
    b += whole.test(numbered(i, 1));
  }
  BOOST_TEST(same_rate(a, 4 * n, b, 4 * n));
}

BOOST_AUTO_TEST_CASE(nothing_is_forgotten_and_each_key_is_counted_once) {
  for (const std::string& slicing : kSlicings)
    for (const std::string more : {"k=6", "k=6, grow=density", "k=6, grow=cardinality"}) {
      Filter filter(bloom(slicing, 512, more));
      std::uint64_t novel = 0;
      for (std::uint64_t i = 0; i < 3000; ++i) {
        novel += !filter.insert(key(i));
        BOOST_REQUIRE(filter.insert(key(i)));
      }
      for (std::uint64_t i = 0; i < 3000; ++i) BOOST_REQUIRE(filter.test(key(i)));
      const Totals sums = totals(filter.header());
      BOOST_TEST(sums.arrivals == 6000u);
      BOOST_TEST(sums.novel == novel);
      // Linear counting deviates by less than sqrt(n).
      BOOST_TEST(
          std::fabs(sums.estimate.distinct - static_cast<double>(novel)) < 5 * std::sqrt(3000),
          slicing << ", " << more << ": " << sums.estimate.distinct << " of " << novel);
      BOOST_TEST(filter.is_valid(), slicing << ", " << more);
    }
}

// What a filter says of itself is what new keys find.
BOOST_AUTO_TEST_CASE(the_rate_of_the_present_state_is_estimated) {
  for (const std::string& slicing : kSlicings)
    for (const bool grows : {false, true}) {
      // Two to three filters of a slice; more would not keep fpr in every slicing.
      const std::string more = grows ? "k=6, grow=density" : "k=6";
      Filter filter(bloom(slicing, grows ? 2048 : 256, more));
      const std::uint64_t n = grows ? 10000 : 8000;
      for (std::uint64_t i = 0; i < n; ++i) filter.insert(key(i));
      const double estimate = totals(filter.header()).estimate.fpr;
      const double probes = 50000;
      double found = 0;
      for (std::uint64_t i = 0; i < probes; ++i) found += filter.test(key(n + i));
      BOOST_TEST(found > 20);
      BOOST_TEST(found >= least(probes, estimate), slicing << ", " << more);
      BOOST_TEST(found <= most(probes, estimate), slicing << ", " << more);
    }
}

BOOST_AUTO_TEST_CASE(derived_filters_keep_their_rate) {
  for (const std::string& slicing : kSlicings) {
    if (contains(slicing, "k1")) continue;
    for (const std::string grow : {"", ", grow=density", ", grow=cardinality"}) {
      const std::uint64_t keys = 5000;
      const std::string text = "bloom(memory=256kB, keys=5000, fpr=0.01, " + slicing + grow + ")";
      Filter filter(text);
      const double bound = find_ops(Kind::bloom)->fpr_bound(filter.parameters());
      BOOST_TEST(bound <= .01, text);
      for (std::uint64_t i = 0; i < keys; ++i) filter.insert(key(i));
      const double probes = 50000;
      double found = 0;
      for (std::uint64_t i = 0; i < probes; ++i) found += filter.test(key(keys + i));
      BOOST_TEST(found <= most(probes, bound), text << ": " << found / probes);
    }
  }
}

BOOST_AUTO_TEST_CASE(memory_is_derived_from_keys) {
  for (const std::string& slicing : kSlicings) {
    if (contains(slicing, "k1")) continue;
    const Parameters p = parameters_of("bloom(keys=100000, fpr=0.01, " + slicing + ")");
    BOOST_TEST(find_ops(Kind::bloom)->fpr_bound(p) <= .01);
    BOOST_TEST(p.memory < 140000u, slicing);  // 9.6 bits a key, and headers
  }
}

// Slices grow each for itself, when they are loaded.
BOOST_AUTO_TEST_CASE(a_slice_grows_when_its_own_load_asks_for_it) {
  Filter filter(bloom("slices=40, slicing=vertical", 512, "k=6, grow=density"));
  std::set<std::uint64_t> sizes;
  for (std::uint64_t i = 0; i < 700; ++i) {
    filter.insert(key(i));
    std::set<std::uint64_t> now;
    for (std::uint32_t s = 0; s < 40; ++s) now.insert(filter.slice(s).state->own[1]);
    sizes.insert(now.begin(), now.end());
    if (now.size() > 1) return;  // some have, some have not
  }
  BOOST_FAIL("all slices have grown at once");
}

// §5 in vertical slices: a bit is looked for in all filters of a slice, which are then together no
// better than one of the same size with the bits of all.
BOOST_AUTO_TEST_CASE(growth_of_single_bits_gains_nothing) {
  const std::string vertical = "slices=40, slicing=vertical";
  Filter grown(bloom(vertical, 512, "k=6, fpr=0.0001, grow=density")), small(bloom(vertical, 64));
  const std::uint64_t n = 2000;
  for (std::uint64_t i = 0; i < n; ++i) {
    grown.insert(key(i));
    small.insert(key(i));
  }
  BOOST_TEST(grown.slice().state->own[1] > 1u);
  double a = 0, b = 0;
  for (std::uint64_t i = n; i < 100000; ++i) {
    a += grown.test(key(i));
    b += small.test(key(i));
  }
  // Both err often enough to tell: a, at least, as often as b to 10 %.
  BOOST_TEST(b > 500);
  BOOST_TEST(a > .9 * b);
}

BOOST_AUTO_TEST_CASE(merging_is_union) {
  for (const std::string& slicing : kSlicings)
    for (const std::string more : {"k=6", "k=6, grow=density"}) {
      const std::string text = bloom(slicing, 512, more);
      Filter a(text), b(text), both(text);
      for (std::uint64_t i = 0; i < 2000; ++i) {
        (i % 3 == 0 ? a : b).insert(key(i));
        both.insert(key(i));
      }
      Problem problem;
      BOOST_TEST(merge(a.header(), b.header(), problem));
      for (std::uint64_t i = 0; i < 2000; ++i) BOOST_REQUIRE(a.test(key(i)));
      BOOST_TEST(totals(a.header()).arrivals == 2000u);
      BOOST_TEST(a.is_valid(), text);
      if (more == "k=6")
        for (std::uint32_t s = 0; s < 40; ++s)
          BOOST_TEST(std::memcmp(a.slice(s).body, both.slice(s).body, a.slice(s).bytes) == 0);
    }
  Filter a(bloom(kSlicings[1], 64)), b(bloom(kSlicings[2], 64));
  Problem problem;
  BOOST_TEST(!merge(a.header(), b.header(), problem));
  BOOST_TEST((problem.error == Error::mismatch));
}

BOOST_AUTO_TEST_CASE(bits_without_keys_are_refused) {
  Filter filter(bloom("slices=40, slicing=vertical", 64));
  filter.insert(key(1));
  BOOST_TEST(filter.is_valid());
  for (std::uint32_t s = 0; s < 40; ++s)
    filter.slice(s).state->arrivals = filter.slice(s).state->novel = 0;
  BOOST_TEST(!filter.is_valid());
}

// ---- failures

namespace {

// Of the places of a key, those whose slices are not lost: how many, and how many say `seen`.
struct Answers {
  unsigned reached = 0, set = 0;
};

Answers ask(const Filter& filter, const Element& element, const std::vector<bool>& lost) {
  Answers answers;
  for (unsigned i = 0; i < places(filter.parameters()); ++i) {
    const Place place = place_of(filter.parameters(), element.hash, i);
    if (lost[place.slice]) continue;
    ++answers.reached;
    answers.set += test_place(filter.header(), element, place);
  }
  return answers;
}

bool seen_by(slicing_model::Rule rule, const Answers& a, unsigned all, unsigned least) {
  switch (rule) {
    case slicing_model::Rule::duplicate: return a.set == a.reached;
    case slicing_model::Rule::distinct: return a.set == all;
    case slicing_model::Rule::votes: return a.set == a.reached && a.reached >= least;
    case slicing_model::Rule::hybrid: return a.set >= least;
  }
  return false;
}

}  // namespace

// Each probe loses another 8 of 40 slices of a filter with 8 bits a key.
BOOST_AUTO_TEST_CASE(lost_slices_cost_what_the_formulas_say) {
  using slicing_model::Rule;
  const std::string cut[] = {"slices=40, slicing=vertical", "slices='8,5', slicing=diced",
                             "slices='8,5', slicing=diced, dice=vh"};
  for (const std::string& slicing : cut) {
    Filter filter(bloom(slicing, 1024, "k=8"));
    const std::uint64_t n = scaled(22000);
    for (std::uint64_t i = 0; i < n; ++i) filter.insert(key(i));
    double set = 0;
    for (std::uint32_t s = 0; s < 40; ++s)
      set += static_cast<double>(filter.slice(s).state->own[0]) / (1024 * 8) / 40;
    const slicing_model::Failures failures = {
        8, set, 40, static_cast<double>(slices_of_part(filter.parameters())), 8};
    const double probes = static_cast<double>(scaled(100000));
    struct {
      Rule rule;
      unsigned least;
      double positives, negatives;
    } rules[] = {{Rule::duplicate, 0, 0, 0}, {Rule::distinct, 0, 0, 0}, {Rule::votes, 4, 0, 0},
                 {Rule::votes, 6, 0, 0},     {Rule::hybrid, 4, 0, 0},   {Rule::hybrid, 6, 0, 0}};
    std::mt19937_64 random(7);
    std::vector<bool> lost(40);
    for (std::uint64_t i = 0; i < probes; ++i) {
      std::fill(lost.begin(), lost.end(), false);
      for (unsigned down = 0; down < 8;) {
        const std::uint64_t s = scale(random(), 40);
        down += !lost[s];
        lost[s] = true;
      }
      const Answers fresh = ask(filter, key(n + i), lost), known = ask(filter, key(i % n), lost);
      for (auto& rule : rules) {
        rule.positives += seen_by(rule.rule, fresh, 8, rule.least);
        rule.negatives += !seen_by(rule.rule, known, 8, rule.least);
      }
    }
    for (const auto& rule : rules) {
      const slicing_model::Errors expected = errors(failures, rule.rule, rule.least);
      BOOST_TEST_CONTEXT(slicing << ", rule " << static_cast<int>(rule.rule) << ":" << rule.least
                                 << ", " << expected.fpr << ", " << expected.fnr) {
        BOOST_TEST(rule.positives >= least(probes, expected.fpr));
        BOOST_TEST(rule.positives <= most(probes, expected.fpr));
        BOOST_TEST(rule.negatives >= least(probes, expected.fnr));
        BOOST_TEST(rule.negatives <= most(probes, expected.fnr));
      }
    }
  }
}

// ---- windows

namespace {

constexpr std::int64_t kSecond = 1000000;

// A key is found for a window of 60 s and no more than one tick.
constexpr std::int64_t kFound = 61;

Element at(std::uint64_t number, std::int64_t seconds) {
  Element element = key(number);
  element.time = seconds * kSecond;
  return element;
}

std::string timer(const std::string& slicing, const std::string& more = "k=6") {
  return "timer(memory=400kB, window='60 s', tick='1 s', " + more + ", " + slicing + ")";
}

}  // namespace

// Definition 4, against a map of the last acceptance. The rate is far below one error here.
BOOST_AUTO_TEST_CASE(a_key_is_remembered_for_one_window_in_all_its_places) {
  for (const std::string& slicing : kSlicings)
    for (const std::string more : {"k=6", "k=6, grow=density", "k=6, grow=cardinality"}) {
      Filter filter(timer(slicing, more));
      std::vector<std::int64_t> accepted(500, -1000);
      std::mt19937_64 random(3);
      for (std::int64_t second = 0; second < 600; ++second)
        for (unsigned i = 0; i < 4; ++i) {
          const std::uint64_t number = scale(random(), accepted.size());
          const bool repeat = second - accepted[number] < kFound;
          BOOST_REQUIRE(filter.test(at(number, second)) == repeat);
          BOOST_REQUIRE(filter.insert(at(number, second)) == repeat);
          if (!repeat) accepted[number] = second;
        }
      BOOST_TEST(filter.is_valid(), timer(slicing, more));
    }
}

// A late event sets its timers to what is left of its window, and an early one to no more than it.
BOOST_AUTO_TEST_CASE(late_events_end_in_their_own_time) {
  for (const std::string& slicing : kSlicings) {
    Filter filter(timer(slicing));
    for (std::uint64_t i = 0; i < 500; ++i)
      filter.insert(at(1000 + i, 100));  // all slices are at 100
    BOOST_TEST(!filter.insert(at(1, 70)));
    BOOST_TEST(filter.test(at(1, 70 + kFound - 1)));
    BOOST_TEST(!filter.test(at(1, 70 + kFound)));
    BOOST_TEST(!filter.insert(at(2, 100 - kFound)));  // late by a window: nothing to remember
    BOOST_TEST(!filter.test(at(2, 100)));
  }
}

// The timer of a place that another key has set last is not lowered by a late key.
BOOST_AUTO_TEST_CASE(a_late_key_does_not_shorten_what_another_has_set) {
  for (const std::string& slicing : kSlicings) {
    Filter filter("timer(memory=8kB, window='60 s', tick='1 s', k=6, " + slicing + ")");
    std::vector<std::uint64_t> accepted;
    for (std::uint64_t i = 0; i < 100; ++i)
      if (!filter.insert(at(i, 100))) accepted.push_back(i);
    for (std::uint64_t i = 1000; i < 2000; ++i) filter.insert(at(i, 45));
    for (const std::uint64_t number : accepted) BOOST_REQUIRE(filter.test(at(number, 160)));
  }
}

// "The timers are set only if the event is distinct."
BOOST_AUTO_TEST_CASE(a_repeat_sets_no_timers) {
  for (const std::string& slicing : kSlicings) {
    Filter filter(timer(slicing));
    BOOST_TEST(!filter.insert(at(1, 0)));
    for (std::int64_t second = 1; second < kFound; ++second)
      BOOST_TEST(filter.insert(at(1, second)));
    BOOST_TEST(!filter.insert(at(1, kFound)));
  }
}

BOOST_AUTO_TEST_CASE(windows_of_slices_are_merged) {
  for (const std::string& slicing : kSlicings) {
    Filter a(timer(slicing)), b(timer(slicing));
    for (std::uint64_t i = 0; i < 200; ++i) (i % 2 == 0 ? a : b).insert(at(i, 10 + (i % 7)));
    Problem problem;
    BOOST_TEST(merge(a.header(), b.header(), problem));
    for (std::uint64_t i = 0; i < 200; ++i) {
      BOOST_REQUIRE(a.test(at(i, 10 + (i % 7) + kFound - 1)));
      BOOST_REQUIRE(!a.test(at(i, 10 + (i % 7) + kFound)));
    }
    BOOST_TEST(a.is_valid(), slicing);
  }
}

BOOST_AUTO_TEST_CASE(derived_windows_keep_their_rate) {
  for (const std::string& slicing : kSlicings) {
    if (contains(slicing, "k1")) continue;
    for (const std::string grow : {"", ", grow=density", ", grow=cardinality"}) {
      const std::string text =
          "timer(memory=1MB, window='60 s', tick='1 s', keys=2000, fpr=0.01, " + slicing + grow +
          ")";
      Filter filter(text);
      const double bound = find_ops(Kind::timer)->fpr_bound(filter.parameters());
      BOOST_TEST(bound <= .01, text);
      for (std::uint64_t i = 0; i < 4000; ++i)  // 2000 in each window
        filter.insert(at(i, static_cast<std::int64_t>(i / 2000 * 60 + i % 2000 * 60 / 2000)));
      const double probes = 50000;
      double found = 0;
      for (std::uint64_t i = 0; i < probes; ++i) found += filter.test(at(10000 + i, 119));
      BOOST_TEST(found <= most(probes, bound), text << ": " << found / probes);
      BOOST_TEST(filter.is_valid(), text);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
