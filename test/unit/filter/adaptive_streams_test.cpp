// A sender that goes through a fixed number of keys, and sends only those which the filter has
// forgotten: which promises "for ever" hold then, and by how much the others are exceeded
// (docs/kinds.md). bench/quality/adaptive.cpp has the figures.
#include <boost/test/unit_test.hpp>
#include <string>

#include "unit/support/filters.hpp"
#include "unit/support/rates.hpp"
#include "unit/support/statistics.hpp"
#include "unit/support/streams.hpp"

using namespace streamfilter;
using namespace unit;

BOOST_AUTO_TEST_SUITE(adaptive_streams, *boost::unit_test::label("long"))

namespace {

constexpr std::uint64_t kKeys = 100000, kRounds = 12, kSent = 5000, kAsked = 5000;

Element important(std::uint64_t number) { return with_importance(number, 1e9); }

// Sends forgotten keys, unless a whole turn finds none.
void send(Filter& filter, std::uint64_t& next) {
  for (std::uint64_t sent = 0, known = 0; sent < kSent && known < kKeys;) {
    const Element element = important(next++ % kKeys);
    if (filter.test(element)) {
      ++known;
      continue;
    }
    filter.insert(element);
    ++sent;
    known = 0;
  }
}

// Of keys that are never sent, in the later half of the rounds.
double rate_of(const std::string& kind, double fpr) {
  Filter filter(kind + "(memory=4kB, slices=1, fpr=" + std::to_string(fpr) + ")");
  std::uint64_t next = 0, fresh = kKeys;
  double wrong = 0;
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    send(filter, next);
    if (round >= kRounds / 2) wrong += count_known(filter, fresh, fresh + kAsked, important);
    fresh += kAsked;
  }
  return wrong / (kAsked * kRounds / 2);
}

}  // namespace

BOOST_AUTO_TEST_CASE(these_kinds_keep_their_rate) {
  for (const char* kind : {"rsbf", "sqf", "dsqf", "clq"})
    for (const double fpr : {0.01, 0.1, 0.2}) {
      const double rate = rate_of(kind, fpr);
      BOOST_TEST(rate <= 1.1 * most(kAsked, fpr) / kAsked, kind << " " << fpr << ": " << rate);
    }
}

BOOST_AUTO_TEST_CASE(others_exceed_high_rates_as_far_as_is_said) {
  for (const char* kind : {"sbf", "ibf2c", "ibfmc"}) {
    BOOST_TEST(rate_of(kind, 0.01) <= 1.3 * 0.01, kind);
    const double rate = rate_of(kind, 0.2);
    BOOST_TEST((rate > 0.2 && rate < 0.3), kind << ": " << rate);
  }
}

BOOST_AUTO_TEST_SUITE_END()
