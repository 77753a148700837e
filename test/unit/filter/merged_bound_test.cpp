// A filter keeps its promise whether it saw one stream, or was merged from several filters, one
// after the other or as a tree. So parallel workers change no promise.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "every_kind.hpp"
#include "unit/support/filters.hpp"
#include "unit/support/kind_checks.hpp"
#include "unit/support/statistics.hpp"
#include "unit/support/streams.hpp"

using namespace streamfilter;
using namespace unit;

BOOST_AUTO_TEST_SUITE(merged_bound, *boost::unit_test::label("long"))

namespace {

constexpr std::uint64_t kWorkers = 4;
constexpr std::uint64_t kProbes = 40000;

struct Case {
  std::string definition;
  std::uint64_t keys;  // distinct ones, all workers together: no more than were promised
};

// Kinds that keep their rate for ever get far more keys than they can hold; kinds with a limit get
// that number of keys.
const Case kCases[] = {
    {"bloom(memory=64kB, keys=40000)", 40000},
    {"bloom(memory=64kB, keys=40000, layout=blocked)", 40000},
    {"bloom(memory=64kB, keys=20000, slices=4, slicing=vertical)", 20000},
    {"bloom(memory=512kB, keys=200000, grow=density)", 200000},
    {"bloom(memory=512kB, keys=200000, grow=cardinality)", 200000},
    {"bloom(memory=512kB, keys=20000, grow=density, slices=8, slicing=vertical)", 20000},
    {"sbf(memory=64kB)", 200000},
    {"sbf(memory=64kB, max=7, fpr=0.02)", 200000},
    {"sbf(memory=64kB, layout=blocked)", 200000},
    {"sbf(memory=64kB, max=3, layout=blocked)", 200000},
    {"rsbf(memory=64kB)", 400000},
    {"rsbf(memory=64kB, variant=measured)", 400000},
    {"bsbf(memory=64kB, k=4)", 400000},
    {"bsbfsd(memory=64kB, k=2, keys=60000)", 60000},
    {"rlbsbf(memory=64kB, k=4)", 400000},
    {"sqf(memory=64kB)", 200000},
    {"dsqf(memory=64kB)", 200000},
    {"ibf2c(memory=64kB)", 200000},
    {"ibf2c(memory=64kB, layout=blocked)", 200000},
    {"ibfmc(memory=64kB)", 200000},
    {"ibfh(memory=64kB)", 20000},
    {"timer(memory=256kB, window=\"1 hour\", keys=20000)", 20000},
    {"timer(memory=128kB, window=\"10000 rows\", slices=1)", 100000},
    {"timer(memory=128kB, window=\"10000 rows\", tick=\"1000 rows\", slices=2)", 100000},
    {"timer(memory=1MB, window=\"1 hour\", keys=20000, grow=density)", 20000},
    {"timer(memory=1MB, window=\"20000 rows\", grow=cardinality, slices=1)", 100000},
    {"lru(memory=64kB)", 50000},
    {"lru(memory=64kB, policy=clock)", 50000},
    {"lru(memory=64kB, entry_bits=24)", 50000},
    {"fplru(memory=64kB)", 50000},
    {"clq(memory=64kB)", 200000},
    {"clq(memory=64kB, lines=2)", 200000},
    {"clq(memory=64kB, window=\"1 hour\")", 200000},
    {"clq(memory=64kB, policy=fifo)", 200000},
    {"vqf(memory=64kB)", 200000},
    {"vqf(memory=64kB, fpr=0.1)", 200000},
    {"vqf(memory=64kB, window=\"1 hour\")", 200000},
};

// These, and one of every kind that is not among them.
std::vector<Case> cases() {
  std::vector<Case> all(std::begin(kCases), std::end(kCases));
  for (const FilterOps* ops : all_ops()) {
    const auto is_its = [&](const Case& it) {
      return parameters_of(it.definition).kind == ops->kind;
    };
    if (ops->merge == nullptr || ops->counts_only || std::any_of(all.begin(), all.end(), is_its))
      continue;
    all.push_back({every_kind::definition_of(*ops, "64kB", 20000),
                   ops->keeps_fpr_forever ? 200000u : 20000u});
  }
  return all;
}

// All most important: that fills the kinds with importance most.
Element element(std::uint64_t number) { return with_importance(number, 7); }

Filter serial(const Case& it) { return filled(it.definition, it.keys, element); }

// The filter that every worker of an aggregate has in the end.
std::vector<Filter> workers(const Case& it) {
  std::vector<Filter> filters;
  Filter prototype(it.definition);
  share_stream(prototype.header());
  for (std::uint64_t w = 0; w < kWorkers; ++w) {
    filters.push_back(prototype);
    for (std::uint64_t i = w; i < it.keys; i += kWorkers) filters.back().insert(element(i));
  }
  return filters;
}

void merge_into(Filter& into, const Filter& from) {
  Problem problem;
  BOOST_REQUIRE_MESSAGE(can_merge(into.header(), from.header(), problem), problem.message);
  BOOST_REQUIRE(into.merge(from));
  BOOST_TEST_REQUIRE(into.is_valid(), text_of(into.parameters()));
}

Filter in_a_row(const Case& it) {
  std::vector<Filter> filters = workers(it);
  for (std::uint64_t w = 1; w < kWorkers; ++w) merge_into(filters[0], filters[w]);
  return filters[0];
}

Filter as_a_tree(const Case& it) {
  std::vector<Filter> filters = workers(it);
  for (std::uint64_t step = 1; step < kWorkers; step *= 2)
    for (std::uint64_t w = 0; w + step < kWorkers; w += 2 * step)
      merge_into(filters[w], filters[w + step]);
  return filters[0];
}

void check_rate(const Filter& filter, const Case& it, const char* how) {
  const double found = count_known(filter, 1000000000, 1000000000 + kProbes, element),
               bound = filter.fpr_bound();
  BOOST_TEST_REQUIRE(bound < 0.5, it.definition);
  BOOST_TEST(found <= most(kProbes, bound), it.definition << ", " << how);
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_way_of_filling_keeps_the_bound) {
  for (const Case& it : cases()) {
    check_rate(serial(it), it, "serial");
    check_rate(in_a_row(it), it, "merged in a row");
    check_rate(as_a_tree(it), it, "merged as a tree");
  }
}

// Kinds without a number of keys keep it after further keys and merges, too.
BOOST_AUTO_TEST_CASE(the_bound_holds_when_a_merged_filter_goes_on) {
  for (const Case& it : cases()) {
    if (parameters_of(it.definition).keys > 0) continue;
    Filter filter = as_a_tree(it);
    for (int round = 0; round < 4; ++round) {
      const std::uint64_t first = (round + 1) * 10 * it.keys;
      insert_keys(filter, first, first + it.keys / 16, element);
      check_rate(filter, it, "going on");
      merge_into(filter, as_a_tree(it));
    }
    check_rate(filter, it, "merged again and again");
  }
}

// Kinds that forget nothing up to their number of keys forget nothing in a merge.
BOOST_AUTO_TEST_CASE(kinds_without_false_negatives_stay_so) {
  for (const Case& it : cases()) {
    const Parameters p = parameters_of(it.definition);
    const Forgets forgets = find_ops(p.kind)->forgets;
    if (forgets != Forgets::never && !(forgets == Forgets::after_window && p.keys > 0)) continue;
    const Filter filter = as_a_tree(it);
    BOOST_TEST(count_known(filter, 0, it.keys, element) == it.keys, it.definition);
  }
}

// If both are full, merging forgets as much of one as of the other.
BOOST_AUTO_TEST_CASE(neither_side_is_preferred) {
  for (const Case& it : cases()) {
    Filter a(it.definition), b(it.definition);
    share_stream(a.header());
    b = a;
    const std::uint64_t each = it.keys / 2;
    insert_keys(a, 0, each, element);
    insert_keys(b, each, 2 * each, element);
    double known[2] = {}, kept[2] = {};
    std::vector<std::uint64_t> numbers[2];
    for (std::uint64_t i = 0; i < each; ++i) {
      if (a.test(element(i))) numbers[0].push_back(i);
      if (b.test(element(each + i))) numbers[1].push_back(each + i);
    }
    merge_into(a, b);
    for (int side = 0; side < 2; ++side) {
      known[side] = static_cast<double>(numbers[side].size());
      for (const std::uint64_t i : numbers[side]) kept[side] += a.test(element(i));
    }
    BOOST_TEST_REQUIRE(known[0] > 0);
    // Keys of one row or line stay or go together, so fewer keys are independent.
    BOOST_TEST(same_rate(kept[0] / 8, known[0] / 8, kept[1] / 8, known[1] / 8),
               it.definition << ": " << kept[0] / known[0] << ", " << kept[1] / known[1]);
  }
}

// Filters grown in turn leave no room for each other: `fits` says so.
BOOST_AUTO_TEST_CASE(growing_filters_that_were_not_made_to_be_merged_refuse) {
  for (const char* text : {"bloom(memory=64kB, keys=10000, grow=density)",
                           "bloom(memory=64kB, keys=10000, grow=cardinality)",
                           "timer(memory=64kB, window='1 hour', keys=5000, grow=density)"}) {
    Filter a(text), b(text), few(text);
    const Filter empty(text);
    a.insert(element(1));
    few.insert(element(2));
    Problem problem;
    merge_into(a, empty);
    merge_into(b, a);
    merge_into(b, few);
    BOOST_TEST((b.test(element(1)) && b.test(element(2))));
    insert_keys(a, 0, 4000, element);
    insert_keys(b, 10000, 14000, element);
    merge_into(a, empty);
    BOOST_TEST(!can_merge(a.header(), b.header(), problem));
    BOOST_TEST((problem.error == Error::unsupported));
    BOOST_TEST(std::string(problem.hint).find("streamfilter_agg") != std::string::npos);
    Problem same;
    BOOST_TEST(!merge(a.header(), b.header(), same));
  }
}

BOOST_AUTO_TEST_SUITE_END()
