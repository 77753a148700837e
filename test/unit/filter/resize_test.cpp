// A filter in another size knows what it knew, keeps its promise, and goes on as one of that size.
#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "core/filter/resize.hpp"
#include "unit/support/filters.hpp"
#include "unit/support/streams.hpp"

using namespace streamfilter;
using namespace unit;

BOOST_AUTO_TEST_SUITE(resize)

namespace {

constexpr std::uint64_t kProbes = 40000;

struct Case {
  std::string definition;  // without memory
  std::uint64_t keys;      // that it gets, in 128 kB
};

// Kinds that forget get more than they can hold.
const Case kForgetting[] = {
    {"sbf", 200000},
    {"sbf(max=3)", 200000},
    {"sbf(max=7, layout=blocked)", 200000},
    {"rsbf(variant=measured)", 200000},
    {"bsbf(k=4)", 300000},
    {"rlbsbf(k=4)", 300000},
    {"ibf2c", 200000},
    {"ibfmc(layout=blocked)", 200000},
    {"clq", 200000},
    {"clq(slices=1)", 100000},
    {"clq(policy=second)", 200000},
    {"clq(lines=2)", 200000},
    {"clq(window=\"1 hour\")", 200000},
    {"capped", 300000},
};
const Case kFaithful[] = {
    {"bloom(k=5)", 60000},
    {"bloom(k=5, slices=1)", 60000},
    {"bloom(k=4, layout=blocked)", 60000},
    {"bloom(k=4, slices=4, slicing=vertical)", 40000},
    {"bloom(k=4, slices=\"2,2\", slicing=diced, dice=hv)", 40000},
};

std::string with_memory(const std::string& definition, const std::string& memory) {
  const std::size_t open = definition.find('(');
  if (open == std::string::npos) return definition + "(memory=" + memory + ")";
  return definition.substr(0, open + 1) + "memory=" + memory + ", " + definition.substr(open + 1);
}

Definition definition_for(const std::string& text) {
  Definition definition;
  std::size_t used = 0;
  Problem problem;
  BOOST_REQUIRE_MESSAGE(parse_definition(text.data(), text.size(), definition, used, problem),
                        text << ": " << problem.message);
  return definition;
}

Element timed(std::uint64_t number) {
  Element element = key(number);
  element.importance = 1;
  element.time = 1000000;
  return element;
}

Filter filled(const std::string& text, std::uint64_t keys) {
  Filter filter(text);
  for (std::uint64_t i = 0; i < keys; ++i) filter.insert(timed(i));
  return filter;
}

Filter resized(const Filter& from, const std::string& text) {
  Parameters parameters{};
  Problem problem;
  BOOST_REQUIRE_MESSAGE(
      resized_parameters(from.parameters(), definition_for(text), &parameters, problem),
      text << ": " << problem.message << " " << problem.detail);
  Filter to(parameters);
  std::vector<unsigned char> scratch(parameters.slice_bytes *
                                     scratch_slices(from.parameters(), parameters));
  for (std::uint32_t i = 0; i < parameters.slices; ++i)
    resize_slice(to.header(), i, from.header(), scratch.data());
  return to;
}

double found(const Filter& filter, std::uint64_t first, std::uint64_t count) {
  std::uint64_t sum = 0;
  for (std::uint64_t i = first; i < first + count; ++i) sum += filter.test(timed(i));
  return static_cast<double>(sum) / static_cast<double>(count);
}

std::uint64_t lost(const Filter& before, const Filter& after, std::uint64_t keys) {
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < keys; ++i) sum += before.test(timed(i)) && !after.test(timed(i));
  return sum;
}

const char* const kMultiples[] = {"128kB", "256kB", "512kB"};
const char* const kSizes[] = {"256kB", "512kB", "200kB", "333kB", "100kB", "64kB", "40kB"};

}  // namespace

BOOST_AUTO_TEST_CASE(all_that_was_found_is_found_in_a_multiple_of_the_memory) {
  for (const Case& it : kForgetting) {
    const Filter before = filled(with_memory(it.definition, "128kB"), scaled(it.keys));
    for (const char* memory : kMultiples) {
      BOOST_TEST_CONTEXT(it.definition << " in " << memory) {
        const Filter after = resized(before, with_memory(it.definition, memory));
        BOOST_TEST(after.is_valid());
        BOOST_TEST(lost(before, after, scaled(it.keys)) == 0u);
      }
    }
  }
}

// In between, two places come into one, and what is too much is forgotten: first of all what is
// old, where the kind knows that.
BOOST_AUTO_TEST_CASE(a_queue_keeps_the_newest_keys_in_any_size) {
  const Filter before = filled("clq(memory=128kB)", scaled(200000));
  for (const char* memory : {"256kB", "512kB", "200kB", "333kB", "100kB", "64kB", "40kB", "16kB"})
    BOOST_TEST(
        found(resized(before, with_memory("clq", memory)), scaled(200000) - 1000, 1000) > 0.98,
        memory);
}

BOOST_AUTO_TEST_CASE(a_bloom_filter_misses_nothing_in_any_size) {
  for (const Case& it : kFaithful) {
    const Filter before = filled(with_memory(it.definition, "128kB"), it.keys);
    for (const char* memory : kSizes) {
      BOOST_TEST_CONTEXT(it.definition << " in " << memory) {
        const Filter after = resized(before, with_memory(it.definition, memory));
        BOOST_TEST(after.is_valid());
        BOOST_TEST(lost(before, after, it.keys) == 0u);
        const Estimate estimate = totals(after.header()).estimate;
        // In lines that two others have come into, ones are spread less evenly than by keys.
        BOOST_TEST(found(after, 1u << 30, kProbes) < estimate.fpr * 1.35 + 0.003);
        if (after.parameters().slicing != Slicing::horizontal) continue;
        BOOST_TEST(estimate.distinct > 0.97 * static_cast<double>(it.keys));
        BOOST_TEST(estimate.distinct < 1.03 * static_cast<double>(it.keys));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_kind_that_keeps_its_rate_keeps_it_in_any_size) {
  for (const Case& it : kForgetting) {
    const Filter before = filled(with_memory(it.definition, "128kB"), scaled(it.keys));
    for (const char* memory : {"512kB", "200kB", "100kB", "64kB", "40kB"}) {
      BOOST_TEST_CONTEXT(it.definition << " in " << memory) {
        Filter after = resized(before, with_memory(it.definition, memory));
        BOOST_TEST(after.is_valid());
        const double bound = find_ops(after.parameters().kind)->fpr_bound(after.parameters());
        const double at_once = found(after, 1u << 30, kProbes);
        BOOST_TEST(at_once < bound * 1.1 + 0.004);
        for (std::uint64_t i = 0; i < scaled(it.keys); ++i) after.insert(timed((1u << 29) + i));
        BOOST_TEST(found(after, 1u << 30, kProbes) < bound * 1.1 + 0.004);
        BOOST_TEST(after.is_valid());
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(it_goes_on_as_a_filter_of_its_size) {
  const Filter before = filled("clq(memory=64kB)", scaled(100000));
  Filter after = resized(before, "clq(memory=256kB)"), fresh("clq(memory=256kB)");
  for (std::uint64_t i = 0; i < scaled(400000); ++i) {
    after.insert(timed((1u << 29) + i));
    fresh.insert(timed((1u << 29) + i));
  }
  const std::uint64_t first = (1u << 29) + scaled(400000) * 9 / 10, count = scaled(40000);
  BOOST_TEST(found(after, first, count) >= found(fresh, first, count) - 0.01);
}

BOOST_AUTO_TEST_CASE(an_empty_filter_stays_empty) {
  for (const Case& it : kForgetting) {
    const Filter before(with_memory(it.definition, "64kB"));
    const Filter after = resized(before, with_memory(it.definition, "300kB"));
    BOOST_TEST(after.is_valid());
    BOOST_TEST(is_empty(after.header()));
  }
}

BOOST_AUTO_TEST_CASE(a_bloom_filter_says_what_it_comes_to) {
  // As many keys as were promised, then twice the memory for twice the keys.
  const Filter before = filled("bloom(memory=64kB, keys=50000, fpr=0.01)", 50000);
  Filter after = resized(before, "bloom(memory=128kB, keys=100000, fpr=0.01)");
  const double expected = fpr_to_come(after.header());
  BOOST_TEST(expected > 0.01);  // more than was promised, and it says so
  for (std::uint64_t i = 50000; i < 100000; ++i) after.insert(timed(i));
  BOOST_TEST(found(after, 1u << 30, kProbes) < expected * 1.1);
  BOOST_TEST(found(after, 1u << 30, kProbes) > expected * 0.75);
  // With room to spare.
  const Filter early = filled("bloom(memory=64kB, keys=50000, fpr=0.01)", 5000);
  BOOST_TEST(fpr_to_come(resized(early, "bloom(memory=256kB, keys=100000, fpr=0.01)").header()) <
             0.01);
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_says_why) {
  Parameters result{};
  Problem problem;
  const Filter sqf("sqf(memory=64kB)"), bloom("bloom(memory=64kB, k=4)");
  BOOST_TEST(
      !resized_parameters(sqf.parameters(), definition_for("sqf(memory=128kB)"), &result, problem));
  BOOST_TEST(std::string(problem.message).find("kind sqf cannot") == 0u);
  for (const char* other :
       {"clq(memory=128kB)", "bloom(memory=128kB, k=5)", "bloom(memory=128kB, k=4, layout=blocked)",
        "bloom(memory=128kB, k=4, slices=2, slicing=vertical)"})
    BOOST_TEST(!resized_parameters(bloom.parameters(), definition_for(other), &result, problem),
               other);
  // Fewer bits of a key are among those that it has.
  BOOST_TEST(resized_parameters(bloom.parameters(), definition_for("bloom(memory=128kB, k=3)"),
                                &result, problem));
  // Where more bits would be derived, it stays with those that it has.
  const Filter few("bloom(memory=64kB, keys=100000, fpr=0.2)");
  const std::uint64_t k = option_value(few.parameters(), "k");
  BOOST_TEST(resized_parameters(few.parameters(),
                                definition_for("bloom(memory=256kB, keys=100000, fpr=0.2)"),
                                &result, problem));
  BOOST_TEST(option_value(result, "k") == k);
}

BOOST_AUTO_TEST_SUITE_END()
