// Sliced filters: the places of a key's bits, and the definitions of slicings.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <set>
#include <span>
#include <string>
#include <vector>
#include "core/filter/derivation.hpp"
#include "core/kind/kind_registry.hpp"
#include "unit/support/kind_checks.hpp"
#include "unit/support/slicings.hpp"
#include "unit/support/statistics.hpp"

using namespace streamfilter;
using namespace unit;

BOOST_AUTO_TEST_SUITE(slicing)

namespace {

std::string problem_of(const std::string& text, Error error) {
  const Problem problem = refusal(text);
  BOOST_TEST((problem.error == error), text << ": " << problem.message);
  return std::string(problem.message) + ". " + problem.detail + " " + problem.hint;
}

std::span<const OptionSpec> options_of(const Parameters& p) { return find_ops(p.kind)->options; }

}  // namespace

// ---- placement

BOOST_AUTO_TEST_CASE(a_horizontal_key_lies_in_its_slice_with_its_hash) {
  const Parameters p = parameters_of(bloom("slices=40", 64));
  BOOST_TEST(probes(p) == 1u);
  BOOST_TEST(groups_of(p) == 40u);
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const KeyProbe probe = probe_of(p, key(i).hash, 0);
    BOOST_TEST(probe.slice == slice_of(p, key(i).hash));
    BOOST_TEST(probe.hash == key(i).hash);
  }
}

BOOST_AUTO_TEST_CASE(places_are_spread_evenly) {
  for (const std::string& slicing : kSlicings) {
    const Parameters p = parameters_of(bloom(slicing, 64));
    std::vector<std::uint64_t> of_slice(40), of_hash(64);
    for (std::uint64_t i = 0; i < 100000; ++i)
      for (unsigned j = 0; j < probes(p); ++j) {
        const KeyProbe probe = probe_of(p, key(i).hash, j);
        BOOST_REQUIRE(probe.slice < 40u);
        ++of_slice[probe.slice];
        ++of_hash[position(probe.hash, 0, 64)];
      }
    // All places of a diced key are in one part, so each counts for its part once.
    if (groups_of(p) == 1 || probes(p) == 1) BOOST_TEST(is_uniform(of_slice), slicing);
    BOOST_TEST(is_uniform(of_hash), slicing);
  }
}

// In both orders, S parts of S2 slices; the v-h one of S2 groups, a slice of each.
BOOST_AUTO_TEST_CASE(the_places_of_a_diced_key_lie_in_one_part) {
  for (const char* dice : {"hv", "vh"}) {
    const Parameters p =
        parameters_of(bloom(std::string("slices='8,5', slicing=diced, dice=") + dice, 64));
    const std::uint32_t size = dice[0] == 'h' ? 5 : 8;
    BOOST_TEST(slices_of_group(p) == size);
    BOOST_TEST(groups_of(p) == 40 / size);
    std::vector<std::uint64_t> of_group(40 / size), of_place(40);
    for (std::uint64_t i = 0; i < 20000; ++i) {
      const std::uint32_t part = probe_of(p, key(i).hash, 0).slice / size;
      ++of_group[part];
      for (unsigned j = 0; j < 6; ++j) {
        const KeyProbe probe = probe_of(p, key(i).hash, j);
        BOOST_REQUIRE(probe.slice / size == part);
        if (j == 3) ++of_place[probe.slice];
      }
    }
    BOOST_TEST(is_uniform(of_group));
    BOOST_TEST(is_uniform(of_place));
  }
}

BOOST_AUTO_TEST_CASE(no_two_keys_share_the_hash_of_a_place) {
  const Parameters p = parameters_of(bloom("slices=40, slicing=vertical", 64));
  std::set<std::uint64_t> hashes;
  for (std::uint64_t i = 0; i < 20000; ++i)
    for (unsigned j = 0; j < 6; ++j) hashes.insert(probe_of(p, key(i).hash, j).hash);
  BOOST_TEST(hashes.size() == 120000u);
}

// ---- parts on several servers

namespace {

// The parameters that a server has for some of the filter's slices.
Parameters part_of(const Parameters& whole, std::uint32_t slices) {
  Parameters part = whole;
  take_share(part, slices);
  part.slices = slices;
  part.memory = kStoredHeader + slices * whole.slice_bytes;
  Definition definition = definition_of(part);
  Problem problem;
  BOOST_REQUIRE_MESSAGE(complete(definition, problem), problem.message);
  return definition.parameters;
}

}  // namespace

BOOST_AUTO_TEST_CASE(slices_of_a_part_are_those_of_the_whole) {
  for (const char* text : {"dsqf(memory=64kB, slices=6, rows=1002, buckets=3001, r=8)",
                           "dsqf(memory=64kB, slices=6, rows=1002, buckets=3001, r=8, p=18)",
                           "dsqf(memory=64kB, slices=6, rows=600)", "dsqf(memory=64kB, slices=6)",
                           "dsqf(memory=64kB, slices=6, r=8, p=17)",
                           "timer(memory=64kB, slices=6, window='1001 rows', tick='7 rows', k=4)",
                           "timer(memory=64kB, slices=6, window='1 minute', k=4, grow=density, "
                           "size=8000, limit=900)"}) {
    const Parameters whole = parameters_of(text);
    const double bound = find_ops(whole.kind)->fpr_bound(whole);
    for (std::uint32_t slices : {1u, 2u, 3u, 5u, 6u}) {
      const Parameters part = part_of(whole, slices);
      const FilterOps& ops = *find_ops(whole.kind);
      BOOST_TEST(part.slice_bytes == whole.slice_bytes);
      for (unsigned word = 0; word < kMaxWords; ++word) {
        const auto has = [&](const OptionSpec& option) {
          return option.word == word && option.share != Share::none;
        };
        if (std::ranges::none_of(options_of(whole), has))
          BOOST_TEST(part.word[word] == whole.word[word], text << ", " << slices << ", " << word);
      }
      if (whole.kind != Kind::timer) BOOST_TEST(ops.fpr_bound(part) <= 1.01 * bound, text);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_part_has_its_share_of_what_counts_for_all) {
  Parameters p = parameters_of("dsqf(memory=64kB, slices=6, rows=1002, buckets=3001)");
  const auto share = [&p](const char* name, std::uint32_t slices) {
    Parameters part = p;
    take_share(part, slices);
    for (const OptionSpec& option : options_of(p))
      if (std::strcmp(option.name, name) == 0) return part.integer(option.word);
    return std::uint64_t{0};
  };
  BOOST_TEST(share("rows", 2) == 334u);
  BOOST_TEST(share("rows", 6) == 1002u);
  BOOST_TEST(share("buckets", 2) == 1001u);  // each of two has 501, as each of six
  BOOST_TEST(share("buckets", 5) == 2501u);
  p = parameters_of("timer(memory=64kB, slices=6, window='1001 rows', tick='13 rows', k=4)");
  BOOST_TEST(share("window", 2) == 334u);
  BOOST_TEST(share("window", 1) == 167u);
  BOOST_TEST(share("tick", 2) == 4u);
  BOOST_TEST(share("k", 2) == 4u);
  p = parameters_of("timer(memory=64kB, slices=6, window='1 minute', k=4)");
  BOOST_TEST(share("window", 2) == p.integer(find_ops(p.kind)->options[0].word));  // a time
}

// ---- definitions

BOOST_AUTO_TEST_CASE(every_slicing_is_read_as_it_is_printed) {
  for (const std::string& slicing : kSlicings)
    for (const std::string& text :
         {bloom(slicing, 64), bloom(slicing, 1024, "keys=1000, grow=density"),
          bloom(slicing, 1024, "k=6, grow=cardinality"),
          "timer(memory=100kB, window='1 minute', k=6, " + slicing + ")"}) {
      if (contains(text, "k1") && contains(text, "keys=")) continue;
      read_back(text);
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

BOOST_AUTO_TEST_SUITE_END()
