// What the row of a kind says of it is so: of every kind in the table, whichever they are.
#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "core/filter/sparse_form.hpp"
#include "every_kind.hpp"
#include "unit/support/filters.hpp"
#include "unit/support/rates.hpp"
#include "unit/support/resizing.hpp"
#include "unit/support/statistics.hpp"
#include "unit/support/streams.hpp"

using namespace streamfilter;
using namespace unit;

BOOST_AUTO_TEST_SUITE(every_kind_of_filter)

namespace {

constexpr std::uint64_t kKeys = 4000;

// Calls check(row, definition) for each definition.
template <typename Check>
void for_every_kind(Check check) {
  for (const std::string& text : every_kind::definitions("64kB", kKeys))
    BOOST_TEST_CONTEXT(text) check(*find_ops(parameters_of(text).kind), text);
}

// Importances are spread evenly, as what the rows say of a gap supposes.
Element element(std::uint64_t number) {
  return with_importance(number, static_cast<double>(1 + mix64(number) % 7));
}

// Of keys first … end - 1.
double found(const Filter& filter, std::uint64_t first, std::uint64_t end) {
  return count_known(filter, first, end, element);
}

Filter filled(const std::string& text, std::uint64_t first, std::uint64_t end) {
  Filter filter(text);
  insert_keys(filter, first, end, element);
  BOOST_TEST(filter.is_valid());
  return filter;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_key_is_new_once) {
  for_every_kind([](const FilterOps& ops, const std::string& text) {
    Filter filter(text);
    double repeats = 0, again = 0;
    for (std::uint64_t i = 0; i < kKeys; ++i) {
      repeats += filter.insert(element(i));
      again += filter.insert(element(i));
    }
    BOOST_TEST(filter.is_valid());
    if (!ops.counts_only) {
      BOOST_TEST(repeats <= most(kKeys, filter.fpr_bound()));
      BOOST_TEST(again >= .98 * kKeys);  // chance may reset what was just set
    }
    const Totals sums = totals(filter.header());
    BOOST_TEST(sums.insertions == 2 * kKeys);
    BOOST_TEST(static_cast<double>(sums.inserted_new) == 2 * kKeys - repeats - again);
    BOOST_TEST(sums.estimate.fill > 0);
    BOOST_TEST(sums.estimate.fill <= 1);
  });
}

BOOST_AUTO_TEST_CASE(the_rate_is_kept_up_to_the_keys_or_for_ever) {
  for_every_kind([](const FilterOps& ops, const std::string& text) {
    if (ops.counts_only) return;
    const Filter filter = filled(text, 0, ops.keeps_fpr_forever ? 10 * kKeys : kKeys);
    const double bound = filter.fpr_bound();
    BOOST_TEST(bound <= Definition::kDefaultFpr);
    BOOST_TEST(found(filter, 1000000, 1000000 + 10 * kKeys) <= most(10 * kKeys, bound));
  });
}

BOOST_AUTO_TEST_CASE(keys_are_forgotten_when_the_row_says) {
  unsigned never = 0, windows = 0, others = 0;
  for_every_kind([&](const FilterOps& ops, const std::string& text) {
    const bool of_window = ops.forgets == Forgets::after_window;
    const Filter filter = filled(text, 0, of_window ? 2 * kKeys : kKeys);
    switch (ops.forgets) {
      case Forgets::never: {
        ++never;
        BOOST_TEST(found(filter, 0, kKeys) == kKeys);
        break;
      }
      case Forgets::after_window: {
        ++windows;
        const std::uint64_t few = kKeys / 8;  // the slices get different numbers of rows
        BOOST_TEST(found(filter, kKeys + few, 2 * kKeys) == kKeys - few);
        BOOST_TEST(found(filter, 0, kKeys / 2) <= .02 * kKeys);
        break;
      }
      case Forgets::in_its_own_time: {
        ++others;
        if (ops.counts_only) break;
        double expected = 0;
        for (double gap = 0; gap < 100; ++gap) expected += 1 - ops.fnr_at(filter.parameters(), gap);
        BOOST_TEST(found(filter, kKeys - 100, kKeys) >= least(100, expected / 100));
      }
    }
    if (ops.forgets == Forgets::never) BOOST_TEST(ops.fnr_at(filter.parameters(), kKeys) == 0);
  });
  BOOST_TEST(never > 0u);
  BOOST_TEST(windows > 0u);
  BOOST_TEST(others > 0u);
}

BOOST_AUTO_TEST_CASE(a_key_that_is_erased_is_new_again) {
  for_every_kind([](const FilterOps& ops, const std::string& text) {
    if (ops.erase == nullptr) return;
    Filter filter = filled(text, 0, 1000);
    const double before = found(filter, 0, 500);
    for (std::uint64_t i = 500; i < 1000; ++i) erase(filter.header(), element(i));
    BOOST_TEST(filter.is_valid());
    BOOST_TEST(found(filter, 500, 1000) <= 500 * .02);
    BOOST_TEST(found(filter, 0, 500) >= .98 * before);
    BOOST_TEST(!erase(filter.header(), element(123456789)));
  });
}

BOOST_AUTO_TEST_CASE(a_merged_filter_has_keys_of_both) {
  for_every_kind([](const FilterOps& ops, const std::string& text) {
    if (ops.merge == nullptr || ops.counts_only) return;
    const std::uint64_t half = 500;
    Filter into = filled(text, 0, half);
    const Filter from = filled(text, half, 2 * half);
    const double before = found(into, 0, half) + found(from, half, 2 * half);
    BOOST_REQUIRE(into.merge(from));
    BOOST_TEST(into.is_valid());
    const double after = found(into, 0, 2 * half);
    BOOST_TEST(after >= (ops.forgets == Forgets::never ? before : .9 * before));
    BOOST_TEST(found(into, 1000000, 1000000 + 10 * kKeys) <= most(10 * kKeys, into.fpr_bound()));
  });
}

BOOST_AUTO_TEST_CASE(a_sparse_form_is_read_as_it_was_written) {
  for_every_kind([](const FilterOps& ops, const std::string& text) {
    const Filter filter = filled(text, 0, 5);
    SparsePlan plan;
    const bool has_form = plan_sparse(filter.header(), filter.parameters().memory / 4, plan);
    BOOST_TEST(has_form == ops.has_sparse_form);
    if (!has_form) return;
    std::vector<unsigned char> bytes(plan.room);
    bytes.resize(write_sparse(filter.header(), plan, bytes.data()));
    SparseReader reader;
    Problem problem;
    BOOST_REQUIRE(reader.open(bytes.data() + kHostWord, bytes.size() - kHostWord, problem));
    Filter again(reader.parameters());
    BOOST_REQUIRE(reader.read(again.header(), problem));
    BOOST_TEST((again.bytes() == filter.bytes()));
  });
}

// As far as the row says how exact they are.
BOOST_AUTO_TEST_CASE(counts_of_keys_are_as_exact_as_the_row_says) {
  unsigned some = 0;
  for_every_kind([&](const FilterOps& ops, const std::string& text) {
    if (ops.distinct_error == nullptr) return;
    ++some;
    const Filter filter = filled(text, 0, 20 * kKeys);
    const double error = ops.distinct_error(filter.parameters());
    bool full;
    BOOST_TEST(distinct_keys(filter.header(), full) == 20. * kKeys, tolerance(5 * error));
  });
  BOOST_TEST(some > 0u);
}

// As far as the row has a way of bringing a state into another size.
BOOST_AUTO_TEST_CASE(another_size_knows_what_was_known) {
  for_every_kind([](const FilterOps& ops, const std::string& text) {
    if (ops.counts_only || (ops.resize.spread == nullptr && ops.resize.move == nullptr)) return;
    Filter filter = filled(text, 0, 500);
    const double before = found(filter, 0, 500);
    std::string larger = text;
    larger.replace(larger.find("64kB"), 4, "256kB");
    BOOST_TEST_REQUIRE(resize(filter, larger));
    BOOST_TEST(found(filter, 0, 500) >= .98 * before);
  });
}

BOOST_AUTO_TEST_SUITE_END()
