// Advice: its order, its prototypes, its limits.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <ctime>
#include <set>
#include <string>
#include <vector>

#include "core/advise/advise.hpp"
#include "unit/support/filters.hpp"
#include "unit/support/streams.hpp"

using namespace streamfilter;
using namespace unit;

BOOST_AUTO_TEST_SUITE(advice)

namespace {

std::vector<Advice> advise_for(const char* memory, const char* fpr, const Stream& stream,
                               Problem& problem) {
  Definition requested;
  BOOST_REQUIRE(set_option(requested, "memory", memory, problem));
  BOOST_REQUIRE(set_option(requested, "fpr", fpr, problem));
  std::vector<Advice> all(kMaxAdvice);
  all.resize(advise(requested, stream, all.data(), problem));
  return all;
}

std::vector<Advice> advise_for(const char* memory, const char* fpr, const Stream& stream) {
  Problem problem;
  const std::vector<Advice> all = advise_for(memory, fpr, stream, problem);
  BOOST_TEST(!all.empty(), problem.message);
  return all;
}

const char* name_of(const Advice& advice) { return find_ops(advice.parameters.kind)->name; }

struct Case {
  const char *memory, *fpr;
  double rows, distinct, gap;  // gap 0: there is none
  Stream stream() const {
    Stream result;
    Problem problem;
    const bool valid = describe_stream(rows, distinct, gap > 0 ? &gap : nullptr, result, problem);
    BOOST_REQUIRE_MESSAGE(valid, problem.message);
    return result;
  }
};

const Case kCases[] = {
    {"64kB", "0.01", 1e6, 1e5, 0},      {"1MB", "0.01", 1e6, 5e5, 10000},
    {"1GB", "0.01", 1e12, 1e10, 0},     {"1GB", "0.01", 1e12, 1e12, 0},
    {"1kB", "0.001", 1e15, 1e15, 0},    {"1kB", "0.9", 1e15, 1, 0},
    {"700", "0.5", 10, 5, 5},           {"64TB", "1e-9", 1e15, 1e13, 1e9},
    {"64TB", "0.00001", 10, 5, 0},      {"4kB", "0.1", 1e15, 1e9, 1e9},
    {"100MB", "0.01", 1e9, 1e9 - 1, 1}, {"16kB", "0.01", 1, 1, 0},
};

// The advice for such a stream, and the CPU seconds that it took.
struct Answer {
  Case asked;
  std::vector<Advice> advice;
  double seconds;
};

const std::vector<Answer>& answers() {
  static std::vector<Answer> all;
  if (all.empty())
    for (const Case& c : kCases) {
      const Stream stream = c.stream();
      const std::clock_t start = std::clock();
      const std::vector<Advice> advice = advise_for(c.memory, c.fpr, stream);
      all.push_back({c, advice, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC});
    }
  return all;
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_best_comes_first) {
  for (const auto& [c, advice, seconds] : answers()) {
    unsigned group = 0;
    double last = -1;
    for (const Advice& a : advice) {
      const bool modelled = !std::isnan(a.predicted.fpr), important = uses_importance(a.parameters);
      const unsigned now = !modelled ? 3 : important ? 2 : a.keeps_fpr ? 0 : 1;
      BOOST_TEST_CONTEXT(c.memory << " " << c.rows << " " << text_of(a.parameters)) {
        BOOST_TEST(now >= group);
        if (now > group) last = -1;
        group = now;
        // Of the kinds that keep fpr here without promising it, false negatives decide.
        double measure = a.predicted.fnr;
        if (now == 1) measure = std::max(a.predicted.fpr, std::stod(c.fpr));
        if (std::isnan(measure)) continue;
        BOOST_TEST(measure >= last - 1e-9);
        last = measure;
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(rates_are_rates_and_promises_are_kept) {
  for (const auto& [c, advice, seconds] : answers())
    for (const Advice& a : advice)
      BOOST_TEST_CONTEXT(c.memory << " " << c.rows << " " << text_of(a.parameters)) {
        const double fpr = std::stod(c.fpr);
        BOOST_TEST(a.fpr_bound == find_ops(a.parameters.kind)->fpr_bound(a.parameters));
        if (a.keeps_fpr) BOOST_TEST(a.fpr_bound <= fpr);
        if (std::isnan(a.predicted.fpr)) continue;
        BOOST_TEST(a.predicted.fpr >= 0);
        BOOST_TEST(a.predicted.fpr <= a.fpr_bound);
        BOOST_TEST(std::isnan(a.predicted.fnr) == (c.rows == c.distinct));
        if (std::isnan(a.predicted.fnr)) continue;
        BOOST_TEST(a.predicted.fnr >= 0);
        BOOST_TEST(a.predicted.fnr <= 1);
      }
}

// The printed definition makes the filter that was predicted.
BOOST_AUTO_TEST_CASE(a_prototype_reads_back_to_the_same_filter) {
  for (const Answer& answer : answers())
    for (const Advice& a : answer.advice) {
      const Parameters again = parameters_of(text_of(a.parameters));
      BOOST_TEST(std::memcmp(&again, &a.parameters, sizeof again) == 0, text_of(a.parameters));
    }
}

BOOST_AUTO_TEST_CASE(every_kind_is_there_once_or_twice) {
  const std::vector<Advice> all = advise_for("1MB", "0.01", Stream::uniform(1e6, 1e5));
  for (const FilterOps* ops : all_ops()) {
    const auto count = std::count_if(
        all.begin(), all.end(), [&](const Advice& a) { return a.parameters.kind == ops->kind; });
    BOOST_TEST((ops->counts_only ? count == 0 : count == 1 || count == 2), ops->name);
  }
}

// The choice that somebody who knows the kinds would make.
BOOST_AUTO_TEST_CASE(advice_is_sensible) {
  // Few keys and much memory: hardly any errors.
  BOOST_TEST(advise_for("1MB", "0.01", Stream::uniform(1e6, 1e5))[0].predicted.fnr == 0);
  // Repeats come soon: the exact buffer.
  BOOST_TEST(name_of(advise_for("1MB", "0.01", Stream::at_gap(1e9, 5e8, 1000))[0]) ==
             std::string("lru"));
  // More keys than a Bloom filter holds: bloom is not among the kinds that keep fpr.
  for (const Advice& a : advise_for("64kB", "0.01", Stream::uniform(1e7, 1e6)))
    if (a.parameters.kind == Kind::bloom) BOOST_TEST(!a.keeps_fpr);
}

BOOST_AUTO_TEST_CASE(advice_does_not_loop_over_rows) {
  for (const Answer& answer : answers())
    BOOST_TEST(answer.seconds < (kSanitized ? 20 : 2),
               answer.asked.memory << " " << answer.asked.rows);
}

BOOST_AUTO_TEST_CASE(impossible_requests_are_refused) {
  Stream stream;
  const auto refused = [&](double rows, double distinct, const double* gap) {
    Problem problem;
    const bool valid = describe_stream(rows, distinct, gap, stream, problem);
    BOOST_TEST(valid == !problem);
    if (!valid) BOOST_TEST(problem.detail[0] != '\0');
    return !valid;
  };
  const double nan = NAN, infinite = INFINITY, zero = 0, one = 1, ten = 10, eleven = 11;
  for (const double bad : {nan, infinite, -infinite, 0., -1., 0.5, 1.1e15})
    BOOST_TEST(refused(bad, 1, nullptr));
  for (const double bad : {nan, infinite, 0., -1., 0.5, 11.}) BOOST_TEST(refused(10, bad, nullptr));
  for (const double* bad : {&nan, &infinite, &zero, &eleven}) BOOST_TEST(refused(20, 10, bad));
  for (const double* good : {&one, &ten}) BOOST_TEST(!refused(20, 10, good));
  BOOST_TEST(!refused(1e15, 1e15, nullptr));

  Problem problem;
  BOOST_TEST(advise_for("100", "0.01", Stream::uniform(10, 5), problem).empty());
  BOOST_TEST((problem.error == Error::too_small));
  BOOST_TEST(std::string(problem.message) == "memory of 100 bytes is too small for a filter");
}

BOOST_AUTO_TEST_CASE(advice_explains_itself) {
  std::set<std::string> notes;
  for (const Advice& a : advise_for("64kB", "0.01", Stream::uniform(1e6, 1e5))) {
    char note[256];
    explain(a, note, sizeof note);
    notes.insert(std::string(name_of(a)) + ": " + note);
    char cut[10];
    explain(a, cut, sizeof cut);
    BOOST_TEST(std::string(cut) == std::string(note).substr(0, 9));
  }
  BOOST_TEST(notes.count("lru: keeps fpr for ever"));
  BOOST_TEST(
      notes.count("bloom: does not keep fpr: the rate may reach 0.0816 at 100000 distinct keys"));
  BOOST_TEST(notes.count("timer: keeps fpr for ever; the window counts accepted rows"));
}

BOOST_AUTO_TEST_SUITE_END()
