// A resized filter knows the same keys, keeps its promise, and then works like one of that size.
#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "unit/support/rates.hpp"
#include "unit/support/resizing.hpp"
#include "unit/support/streams.hpp"

using namespace streamfilter;
using namespace unit;

BOOST_AUTO_TEST_SUITE(resize)

namespace {

constexpr std::uint64_t kProbes = 40000;

struct Case {
  std::string definition;  // without memory
  std::uint64_t keys;      // inserted into 128 kB
};

// Kinds that forget get more keys than they can hold.
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
    {"lru", 100000},
    {"lru(policy=clock)", 100000},
    {"lru(entry_bits=40)", 100000},
    {"lru(slices=1)", 50000},
    {"fplru(q=0)", 100000},
};
const Case kFaithful[] = {
    {"bloom(k=5)", 60000},
    {"bloom(k=5, slices=1)", 60000},
    {"bloom(k=4, layout=blocked)", 60000},
    {"bloom(k=4, slices=4, slicing=vertical)", 40000},
    {"bloom(k=5, grow=density)", 60000},
    {"bloom(k=5, grow=cardinality)", 60000},
    {"bloom(k=5, grow=density, limit=20000, slices=4)", 60000},
    {"bloom(k=4, slices=\"2,2\", slicing=diced, dice=hv)", 40000},
};
// With that many keys in a window.
const Case kTimers[] = {
    {"timer(window=\"4000 rows\")", 4000},
    {"timer(window=\"4000 rows\", slices=1)", 4000},
    {"timer(window=\"1500 rows\", grow=density)", 1500},
    {"timer(window=\"1500 rows\", grow=cardinality, slices=1)", 1500},
    {"timer(window=\"1 hour\", k=5)", 8000},
    {"timer(window=\"1 hour\", k=5, slices=4, slicing=vertical)", 8000},
    {"timer(window=\"1 hour\", k=5, grow=density)", 8000},
};

Element timed(std::uint64_t number) { return {key(number).hash, 1, 1000000}; }

Filter filled(const std::string& text, std::uint64_t keys) {
  return unit::filled(text, keys, timed);
}

Filter resized(const Filter& from, const std::string& text) {
  Parameters parameters{};
  Problem problem;
  BOOST_REQUIRE_MESSAGE(
      resized_parameters(from.parameters(), definition_for(text), &parameters, problem),
      text << ": " << problem.message << " " << problem.detail);
  return copy_in(parameters, from);
}

double found(const Filter& filter, std::uint64_t first, std::uint64_t count) {
  return count_known(filter, first, first + count, timed) / static_cast<double>(count);
}

void insert(Filter& filter, std::uint64_t first, std::uint64_t count) {
  insert_keys(filter, first, first + count, timed);
}

std::uint64_t lost(const Filter& before, const Filter& after, std::uint64_t keys) {
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < keys; ++i) sum += before.test(timed(i)) && !after.test(timed(i));
  return sum;
}

const char* const kMultiples[] = {"128kB", "256kB", "512kB"};
const char* const kSizes[] = {"256kB", "512kB", "200kB", "333kB", "100kB", "64kB", "40kB"};

// For kinds that miss nothing: calls visit(case, before, after) for every size.
template <std::size_t kCases, typename Visit>
void for_each_size(const Case (&cases)[kCases], Visit visit) {
  for (const Case& it : cases) {
    const Filter before = filled(with_memory(it.definition, "128kB"), it.keys);
    for (const char* memory : kSizes) {
      BOOST_TEST_CONTEXT(it.definition << " in " << memory) {
        Filter after = resized(before, with_memory(it.definition, memory));
        BOOST_TEST(after.is_valid());
        BOOST_TEST(lost(before, after, it.keys) == 0u);
        visit(it, before, after);
      }
    }
  }
}

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

// In smaller sizes places are joined and some keys must be forgotten: oldest first, where the kind
// knows the age.
BOOST_AUTO_TEST_CASE(a_queue_keeps_the_newest_keys_in_any_size) {
  const Filter before = filled("clq(memory=128kB)", scaled(200000));
  for (const char* memory : {"256kB", "512kB", "200kB", "333kB", "100kB", "64kB", "40kB", "16kB"})
    BOOST_TEST(
        found(resized(before, with_memory("clq", memory)), scaled(200000) - 1000, 1000) > 0.98,
        memory);
}

// Compares with a list of keys in the order of their last sight.
BOOST_AUTO_TEST_CASE(a_buffer_keeps_exactly_the_newest_keys_in_any_size) {
  for (const char* memory : {"32kB", "64kB", "128kB", "20kB", "10kB"}) {
    Filter before = filled("lru(memory=32kB, slices=1)", 10000);
    std::vector<std::uint64_t> order;
    for (std::uint64_t i = 0; i < 10000; ++i) order.push_back(i);
    for (const std::uint64_t again : {9000, 9100, 9500}) {
      BOOST_TEST(before.insert(timed(again)));
      std::erase(order, again);
      order.push_back(again);
    }
    const auto room = [](const Filter& filter) { return filter.parameters().integer(3); };
    const std::uint64_t held = static_cast<std::uint64_t>(
        std::round(before.estimate().fill * static_cast<double>(room(before))));
    Filter after = resized(before, with_memory("lru(slices=1)", memory));
    BOOST_TEST_REQUIRE(after.is_valid());
    const auto agree = [&](std::uint64_t most) {
      std::uint64_t differ = 0;
      for (std::size_t i = 0; i < order.size(); ++i)
        differ += after.test(timed(order[i])) != (i + most >= order.size());
      BOOST_TEST(differ == 0u, memory);
    };
    const std::uint64_t kept = std::min(held, room(after));
    agree(kept);
    for (std::uint64_t i = 0; i < 500; ++i) {
      after.insert(timed(20000 + i));
      order.push_back(20000 + i);
    }
    agree(std::min(kept + 500, room(after)));
  }
}

BOOST_AUTO_TEST_CASE(a_buffer_of_hashes_has_no_copies) {
  for (const char* definition : {"lru(slices=4)", "lru(policy=clock, slices=4)"}) {
    const Filter before = filled(with_memory(definition, "64kB"), 2000);
    std::string wider = with_memory(definition, "256kB");
    wider.replace(wider.find("slices=4"), 8, "slices=6");
    const Filter after = resized(before, wider);
    BOOST_TEST(after.is_valid());
    BOOST_TEST(lost(before, after, 2000) == 0u);
    std::uint64_t held = 0;
    for (unsigned i = 0; i < after.parameters().slices; ++i)
      held += slice_at(after.header(), i).state->own[0];
    BOOST_TEST(held == 2000u);
  }
}

// Compares with the rows themselves. With one slice a window of rows is exact: it has every key of
// the window, and none that left it more than a tick ago, false positives aside.
BOOST_AUTO_TEST_CASE(a_window_goes_on_where_it_was) {
  for (const Case& it : kTimers) {
    if (it.definition.find("slices=1") == std::string::npos) continue;
    const std::uint64_t kWindow = it.keys, kTick = kWindow / 32;
    for (const char* memory : {"256kB", "128kB", "200kB", "100kB", "64kB"})
      for (const std::uint64_t at : {1000, 4000, 10001}) {
        Filter before(with_memory(it.definition, "128kB"));
        std::uint64_t rows = 0;
        std::vector<std::uint64_t> accepted;
        const auto insert = [&](Filter& filter) {
          if (!filter.insert(timed(rows++))) accepted.push_back(rows - 1);
        };
        while (accepted.size() < at) insert(before);
        Filter after = resized(before, with_memory(it.definition, memory));
        BOOST_TEST_REQUIRE(after.is_valid());
        for (unsigned step = 0; step < 6; ++step) {
          std::uint64_t missed = 0, late = 0, left = 0;
          for (std::size_t i = 0; i < accepted.size(); ++i) {
            const std::uint64_t age = accepted.size() - i;  // of the next row
            const bool is_known = after.test(timed(accepted[i]));
            missed += age < kWindow && !is_known;
            if (age <= kWindow + kTick) continue;
            ++left;
            late += is_known;
          }
          BOOST_TEST(missed == 0u, it.definition << " in " << memory);
          const double rate = std::max(fpr_to_come(after.header()), 0.01);
          BOOST_TEST(static_cast<double>(late) <= 1.2 * rate * static_cast<double>(left) + 12,
                     it.definition << " in " << memory << " " << late << " of " << left);
          for (unsigned i = 0; i < 1000; ++i) insert(after);
        }
        BOOST_TEST(after.is_valid());
      }
  }
}

BOOST_AUTO_TEST_CASE(a_window_says_what_rate_it_has_until_it_has_passed) {
  for_each_size(kTimers, [](const Case& it, const Filter&, Filter& after) {
    const double promised = after.fpr_bound();
    if (promised >= 1) return;
    BOOST_TEST(found(after, 1u << 30, kProbes) < fpr_to_come(after.header()) * 1.1 + 0.002);
    insert(after, 1u << 29, 2 * it.keys);
    BOOST_TEST(found(after, 1u << 30, kProbes) < promised * 1.1 + 0.004);
    BOOST_TEST(after.is_valid());
  });
}

// Rows taken for repeats by mistake count as rows, else the window would never move on.
BOOST_AUTO_TEST_CASE(a_full_window_of_rows_recovers_within_two_windows) {
  for (const char* definition :
       {"timer(window=\"15000 rows\")", "timer(window=\"15000 rows\", slices=1)"}) {
    BOOST_TEST_CONTEXT(definition) {
      Filter filter = filled(with_memory(definition, "160kB"), 40000);
      for (const char* memory : {"120kB", "160kB", "120kB", "160kB"})
        filter = resized(filter, with_memory(definition, memory));
      const double promised = filter.fpr_bound();
      BOOST_TEST(found(filter, 1u << 30, kProbes) > 0.5);
      insert(filter, 1u << 29, 30000);
      BOOST_TEST(found(filter, 1u << 30, kProbes) < promised * 1.1 + 0.004);
      BOOST_TEST(filter.is_valid());
    }
  }
}

BOOST_AUTO_TEST_CASE(fewer_of_larger_filters_are_the_newest) {
  const std::string definition =
      "timer(window=\"1 hour\", k=5, grow=density, size=16384, slices=1)";
  const Filter before = filled(with_memory(definition, "128kB"), 9000);
  const Filter more = resized(before, with_memory(definition, "256kB"));
  BOOST_TEST(more.is_valid());
  BOOST_TEST(lost(before, more, 9000) == 0u);
  const Filter fewer = resized(before, with_memory(definition, "64kB"));
  BOOST_TEST(fewer.is_valid());
  BOOST_TEST(found(fewer, 8000, 1000) > 0.98);
}

// If the new size divides the old one, registers and tokens are as if it had always been that size.
BOOST_AUTO_TEST_CASE(fewer_registers_are_those_of_a_filter_that_was_made_so) {
  constexpr std::uint64_t kLine = 64;
  const auto in_lines = [](std::uint64_t lines) {
    return with_memory("ell(slices=4)",
                       std::to_string(kStoredHeader + 4 * (sizeof(SliceState) + lines * kLine)));
  };
  for (const std::uint64_t keys : {10, 3000, 200000})
    for (const auto& [from, to] : {std::pair{512, 256}, {300, 100}}) {
      const Filter before = filled(in_lines(from), keys);
      const Filter after = resized(before, in_lines(to));
      BOOST_TEST(after.is_valid());
      Filter fresh(after.parameters());
      insert(fresh, 0, keys);
      for (unsigned i = 0; i < 4; ++i) {
        const ConstSlice a = slice_at(after.header(), i), b = as_const(fresh.slice(i));
        BOOST_TEST(std::memcmp(a.body(), b.body(), a.bytes) == 0, keys << " keys in " << to);
        BOOST_TEST(std::memcmp(a.state->own, b.state->own, sizeof a.state->own) == 0);
      }
    }
}

BOOST_AUTO_TEST_CASE(more_registers_know_the_keys_and_count_on) {
  for (const char* definition : {"ell", "ell(slices=4)", "ell(slices=1)"})
    for (const std::uint64_t keys : {10, 3000, 200000})
      for (const char* memory : kSizes) {
        BOOST_TEST_CONTEXT(keys << " keys in " << memory) {
          const Filter before = filled(with_memory(definition, "128kB"), keys);
          Filter after = resized(before, with_memory(definition, memory));
          BOOST_TEST(after.is_valid());
          BOOST_TEST(lost(before, after, keys) == 0u);
          const auto distinct = [&] { return after.estimate().distinct; };
          const double real = static_cast<double>(keys);
          BOOST_TEST(distinct() > 0.97 * real - 1);
          BOOST_TEST(distinct() < 1.03 * real + 1);
          insert(after, 0, keys);
          insert(after, 1u << 29, keys);
          BOOST_TEST(distinct() > 0.96 * 2 * real - 1);
          BOOST_TEST(distinct() < 1.04 * 2 * real + 1);
          BOOST_TEST(after.is_valid());
        }
      }
}

BOOST_AUTO_TEST_CASE(a_bloom_filter_misses_nothing_in_any_size) {
  for_each_size(kFaithful, [](const Case& it, const Filter& before, Filter& after) {
    const Estimate estimate = after.estimate();
    // In joined lines ones are spread less evenly than by keys alone.
    BOOST_TEST(found(after, 1u << 30, kProbes) < estimate.fpr * 1.35 + 0.003);
    if (after.parameters().slicing != Slicing::horizontal) return;
    insert(after, 1u << 29, 1000);
    BOOST_TEST(found(after, 1u << 29, 1000) == 1);
    BOOST_TEST(after.is_valid());
    const double known = before.estimate().distinct;
    BOOST_TEST(estimate.distinct > 0.99 * known);
    BOOST_TEST(estimate.distinct < 1.01 * known);
    BOOST_TEST(known > 0.9 * static_cast<double>(it.keys));
  });
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
        insert(after, 1u << 29, scaled(it.keys));
        BOOST_TEST(found(after, 1u << 30, kProbes) < bound * 1.1 + 0.004);
        BOOST_TEST(after.is_valid());
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(it_goes_on_as_a_filter_of_its_size) {
  const Filter before = filled("clq(memory=64kB)", scaled(100000));
  Filter after = resized(before, "clq(memory=256kB)"), fresh("clq(memory=256kB)");
  for (Filter* filter : {&after, &fresh}) insert(*filter, 1u << 29, scaled(400000));
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
  // First the promised keys, then twice the memory for twice the keys.
  const Filter before = filled("bloom(memory=64kB, keys=50000, fpr=0.01)", 50000);
  Filter after = resized(before, "bloom(memory=128kB, keys=100000, fpr=0.01)");
  const double expected = fpr_to_come(after.header());
  BOOST_TEST(expected > 0.01);  // more than promised, and the filter reports it
  insert(after, 50000, 50000);
  BOOST_TEST(found(after, 1u << 30, kProbes) < expected * 1.1);
  BOOST_TEST(found(after, 1u << 30, kProbes) > expected * 0.75);
  // With room to spare.
  const Filter early = filled("bloom(memory=64kB, keys=50000, fpr=0.01)", 5000);
  BOOST_TEST(fpr_to_come(resized(early, "bloom(memory=256kB, keys=100000, fpr=0.01)").header()) <
             0.01);
}

// Kinds with a promise up to `keys`: resized and back, they keep it, or report that they do not and
// by how much.
BOOST_AUTO_TEST_CASE(another_size_keeps_the_rate_or_says_what_it_comes_to) {
  constexpr std::uint64_t kKeys = 60000;
  struct Path {
    const char* definition;
    std::vector<const char*> sizes;
  };
  const Path paths[] = {
      {"bsbf(fpr=0.02, keys=60000)", {"128kB", "256kB", "128kB"}},
      {"rlbsbf(fpr=0.02, keys=60000)", {"128kB", "256kB", "128kB"}},
      {"bsbfsd(fpr=0.02, keys=60000)", {"128kB", "256kB", "128kB"}},
      {"bsbfsd(fpr=0.02, keys=60000, slices=4)", {"128kB", "160kB", "128kB"}},
  };
  for (const Path& path : paths) {
    Filter filter = filled(with_memory(path.definition, path.sizes[0]), kKeys * 2 / 3);
    const double fpr = filter.parameters().fpr;
    BOOST_TEST(fpr_to_come(filter.header()) <= fpr, path.definition);
    for (const char* size : path.sizes)
      filter = resized(filter, with_memory(path.definition, size));
    const double expected = fpr_to_come(filter.header()), now = found(filter, 1u << 30, kProbes);
    insert(filter, kKeys * 2 / 3, kKeys / 3);
    const double then = found(filter, 1u << 29, kProbes);
    BOOST_TEST(std::max(now, then) < 1.15 * std::max(expected, fpr) + 0.002,
               path.definition << " " << now << " " << then << ", told " << expected);
  }
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_says_why) {
  Parameters result{};
  Problem problem;
  const auto fits = [&](const Filter& from, const char* to) {
    return resized_parameters(from.parameters(), definition_for(to), &result, problem);
  };
  BOOST_TEST(!fits(Filter("sqf(memory=64kB, fingerprint=integer, keys=100000)"),
                   "sqf(memory=128kB, fingerprint=integer, keys=100000)"));
  BOOST_TEST(std::string(problem.message).find("kind sqf cannot") == 0u);
  const Filter bloom("bloom(memory=64kB, k=4)");
  for (const char* other :
       {"clq(memory=128kB)", "bloom(memory=128kB, k=5)", "bloom(memory=128kB, k=4, layout=blocked)",
        "bloom(memory=128kB, k=4, slices=2, slicing=vertical)"})
    BOOST_TEST(!fits(bloom, other), other);
  BOOST_TEST(!fits(Filter("bloom(memory=64kB, k=4, slices=\"2,4\", slicing=diced)"),
                   "bloom(memory=128kB, k=4, slices=\"2,4\", slicing=diced, dice=vh)"));
  BOOST_TEST(
      !fits(Filter("bloom(memory=64kB, k=4, fpr=0.2)"), "bloom(memory=128kB, k=4, fpr=0.3)"));
  // A smaller k uses the first of a key's bits.
  BOOST_TEST(fits(bloom, "bloom(memory=128kB, k=3)"));
  // Where a larger k would be derived, the old one stays.
  const Filter few("bloom(memory=64kB, keys=100000, fpr=0.2)");
  BOOST_TEST(fits(few, "bloom(memory=256kB, keys=100000, fpr=0.2)"));
  BOOST_TEST(option_value(result, "k") == option_value(few.parameters(), "k"));
}

BOOST_AUTO_TEST_SUITE_END()
