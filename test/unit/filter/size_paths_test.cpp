// Kinds × sequences of sizes: at each step, by measurement, fpr_now ≤ fpr_bound ≤ fpr, or the
// filter reports overfull; and a size that breaks the promise was announced.
#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "core/filter/promise.hpp"
#include "unit/support/rates.hpp"
#include "unit/support/resizing.hpp"
#include "unit/support/statistics.hpp"
#include "unit/support/streams.hpp"

using namespace streamfilter;
using namespace unit;

BOOST_AUTO_TEST_SUITE(size_paths, *boost::unit_test::label("long"))

namespace {

constexpr std::uint64_t kProbes = 10000;
constexpr unsigned kSteps = 3;  // the promised keys come in so many steps

struct Case {
  std::string definition;  // without memory
  std::uint64_t keys;      // promised; for kinds that keep their rate for ever: many
};

const Case kCases[] = {
    {"bloom(fpr=0.01, keys=15000)", 15000},
    {"bloom(fpr=0.01, keys=15000, layout=blocked)", 15000},
    {"bloom(fpr=0.01, keys=15000, grow=density)", 15000},
    {"bloom(fpr=0.01, keys=15000, grow=cardinality)", 15000},
    {"bloom(fpr=0.01, keys=15000, slices=4, slicing=vertical)", 15000},
    {"bsbf(fpr=0.02, keys=15000)", 15000},
    {"bsbf(fpr=0.02, keys=15000, slices=4)", 15000},
    {"bsbfsd(fpr=0.02, keys=15000)", 15000},
    {"rlbsbf(fpr=0.02, keys=15000)", 15000},
    {"rsbf(fpr=0.02, keys=15000)", 15000},
    {"rsbf(fpr=0.02, keys=15000, slices=4)", 15000},
    {"rsbf(fpr=0.02)", 30000},
    {"rsbf(fpr=0.02, variant=measured)", 30000},
    {"sbf(fpr=0.01)", 30000},
    {"sbf(fpr=0.01, layout=blocked)", 30000},
    {"ibf2c(fpr=0.01)", 30000},
    {"ibfmc(fpr=0.01)", 30000},
    {"ibfh(fpr=0.01)", 30000},
    {"clq(fpr=0.01)", 30000},
    {"clq(fpr=0.01, lines=2)", 30000},
    {"lru(entry_bits=40)", 30000},
    {"fplru(fpr=0.01)", 30000},
    {"timer(fpr=0.01, window=\"4000 rows\")", 4000},
    {"timer(fpr=0.01, window=\"4000 rows\", slices=1)", 4000},
    {"timer(fpr=0.01, window=\"1 hour\", keys=4000)", 4000},
    {"timer(fpr=0.01, window=\"1 hour\", keys=2000, grow=density)", 2000},
};

using Path = std::vector<const char*>;
const Path kPaths[] = {{"128kB"},         {"32kB"},         {"80kB"},         {"48kB"},
                       {"128kB", "64kB"}, {"32kB", "64kB"}, {"80kB", "64kB"}, {"48kB", "64kB"}};

Element timed(std::uint64_t number) { return {key(number).hash, 1, 1000000}; }

void insert(Filter& filter, std::uint64_t first, std::uint64_t end) {
  insert_keys(filter, first, end, timed);
}

// Measured with keys that never came.
double found(const Filter& filter) {
  return count_known(filter, 1u << 30, (1u << 30) + kProbes, timed);
}

// As far as the kind forgets single keys: every third of them. They are not known then, but as
// others.
bool erase_a_third(Filter& filter, std::uint64_t first, std::uint64_t end, double fpr) {
  if (find_ops(filter.parameters().kind)->erase == nullptr) return false;
  for (std::uint64_t i = first; i < end; i += 3) erase(filter.header(), timed(i));
  std::uint64_t known = 0;
  for (std::uint64_t i = first; i < end; i += 3) known += filter.test(timed(i));
  const std::uint64_t erased = (end - first + 2) / 3;
  BOOST_TEST(static_cast<double>(known) <= most(erased, fpr), known << " of " << erased);
  return true;
}

// Allows for estimates and for the uneven spread of keys over slices.
double allowed(double rate) { return most(kProbes, std::min(1.0, rate * kOverfullRate + 0.0002)); }

// Compares the figures of streamfilter_stats with the measured ones.
void check_now(const Filter& filter, double fpr, double told) {
  const OverfullLimit limit = overfull_limit(filter.parameters(), fpr);
  const double measured = found(filter), now = filter.estimate().fpr,
               bound = fpr_bound(filter.header(), limit);
  BOOST_TEST(measured <= allowed(told), measured / kProbes << " measured, " << told << " told");
  BOOST_TEST(measured <= allowed(now), measured / kProbes << " measured, now " << now);
  if (is_overfull(filter.header(), limit)) {
    BOOST_TEST(told > fpr * 0.9, told << " told");
    return;
  }
  BOOST_TEST(now <= bound);
  BOOST_TEST(bound <= kOverfullRate * fpr);
  BOOST_TEST(measured <= allowed(bound), measured / kProbes << " measured, bound " << bound);
}

// Some of the keys come before the path, the others after it.
void walk(const Case& it, const Path& path, std::uint64_t before, bool erases = false) {
  Filter filter(with_memory(it.definition, "64kB"));
  const double fpr = definition_for(it.definition).wanted_fpr();
  insert(filter, 0, before);
  double told = fpr_bound(filter.header(), OverfullLimit{});
  check_now(filter, fpr, told);
  for (const char* memory : path) {
    if (!resize(filter, with_memory(it.definition, memory))) return;
    told = fpr_bound(filter.header(), OverfullLimit{});
    check_now(filter, fpr, told);
    if (erases && erase_a_third(filter, 0, before, fpr)) check_now(filter, fpr, told);
  }
  for (unsigned step = 0; step < kSteps; ++step) {
    const std::uint64_t left = it.keys - before;
    const std::uint64_t first = before + left * step / kSteps,
                        end = before + left * (step + 1) / kSteps;
    insert(filter, first, end);
    check_now(filter, fpr, told);
    if (erases && erase_a_third(filter, first, end, fpr)) check_now(filter, fpr, told);
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(at_each_step_the_rate_is_what_is_said_of_it) {
  for (const Case& it : kCases)
    for (const Path& path : kPaths)
      for (const std::uint64_t part : {1, 3}) {
        std::string sizes = "64kB";
        for (const char* memory : path) sizes += std::string(", ") + memory;
        BOOST_TEST_CONTEXT(it.definition << ", " << sizes << ", " << part << "/3 before")
        walk(it, path, it.keys * part / 3);
      }
}

BOOST_AUTO_TEST_CASE(keys_that_are_removed_leave_the_rate_as_it_is_said) {
  unsigned walked = 0;
  for (const Case& it : kCases) {
    if (find_ops(Filter(with_memory(it.definition, "64kB")).parameters().kind)->erase == nullptr)
      continue;
    ++walked;
    for (const Path& path : kPaths)
      BOOST_TEST_CONTEXT(it.definition << ", removals, last " << path.back())
    walk(it, path, it.keys / 3, true);
  }
  BOOST_TEST(walked >= 4u);
}

// Merges two resized filters, each with half of the keys.
BOOST_AUTO_TEST_CASE(merged_filters_of_another_size_have_the_rate_that_is_said) {
  for (const Case& it : kCases)
    for (const Path& path : kPaths) {
      Filter a(with_memory(it.definition, "64kB")), b(a.parameters());
      insert(a, 0, it.keys / 2);
      insert(b, it.keys / 2, it.keys);
      bool kept = true;
      for (const char* memory : path)
        kept = kept && resize(a, with_memory(it.definition, memory)) &&
               resize(b, with_memory(it.definition, memory));
      Problem problem;
      if (!kept || !merge(a.header(), b.header(), problem)) continue;
      BOOST_TEST_CONTEXT(it.definition << " merged, last " << path.back())
      check_now(a, definition_for(it.definition).wanted_fpr(),
                fpr_bound(a.header(), OverfullLimit{}));
    }
}

// Sizes that are about whole multiples are whole ones, where slices are not given. A window of rows
// keeps its slices, whose timers are multiples by chance only.
BOOST_AUTO_TEST_CASE(there_and_back_in_whole_multiples_changes_nothing) {
  for (const Case& it : kCases) {
    if (it.definition.find("slices") != std::string::npos ||
        it.definition.find("rows") != std::string::npos)
      continue;
    for (const auto& [small, large] :
         {std::pair{"64kB", "128kB"}, {"64kB", "192kB"}, {"4MB", "8MB"}}) {
      Filter filter(with_memory(it.definition, small));
      insert(filter, 0, it.keys);
      const double before = found(filter);
      if (!resize(filter, with_memory(it.definition, large)) ||
          !resize(filter, with_memory(it.definition, small)))
        continue;
      BOOST_TEST(found(filter) <= most(kProbes, before / kProbes + 0.0002),
                 it.definition << " from " << small << " to " << large << " and back: "
                               << found(filter) / kProbes << ", was " << before / kProbes);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
