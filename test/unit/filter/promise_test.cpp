// Options that contradict each other are refused, others are not, and the options that the hint
// names do work.
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <string>
#include <vector>

#include "core/filter/value_form.hpp"
#include "unit/support/filters.hpp"

using namespace streamfilter;
using namespace unit;

BOOST_AUTO_TEST_SUITE(promise)

namespace {

bool is_accepted(const std::string& text, Problem& problem, Reading reading = Reading::request) {
  TextStart start;
  problem = Problem{};
  return read_text_start(text.data(), text.size(), reading, start, problem);
}

Parameters read_as(const std::string& text, Reading reading) {
  TextStart start;
  Problem problem;
  BOOST_REQUIRE_MESSAGE(read_text_start(text.data(), text.size(), reading, start, problem),
                        text << ": " << problem.message);
  return start.definition.parameters;
}

// What a dump or another form of a filter has of them is read again as the same.
void check_written(const Parameters& parameters, std::initializer_list<Reading> readings) {
  Header header;
  format_header(&header, parameters);
  Problem problem;
  BOOST_TEST(check_header(header, problem), problem.message);
  char text[kMaxTextStart];
  write_text_start(&header, false, text, sizeof text);
  for (const Reading reading : readings) {
    const Parameters again = read_as(text, reading);
    BOOST_TEST(std::memcmp(&again, &parameters, sizeof again) == 0, text);
  }
}

struct Given {
  std::string name, value;
};

struct Request {
  std::string kind;
  std::vector<Given> options;

  std::string text() const {
    std::string result = kind + "(";
    for (const Given& option : options)
      result += (result.back() == '(' ? "" : ", ") + option.name + "='" + option.value + "'";
    return result + ")";
  }

  // Changes one option as the hint says.
  Request with(const Given& fitting) const {
    Request changed = *this;
    std::erase_if(changed.options,
                  [&](const Given& option) { return option.name == fitting.name; });
    changed.options.push_back(fitting);
    return changed;
  }
};

// "This would do: k 10, or keys 8344. Without …"
std::vector<Given> fitting_in(const std::string& hint) {
  constexpr char kStart[] = "This would do: ";
  std::vector<Given> result;
  BOOST_REQUIRE(hint.rfind(kStart, 0) == 0);
  std::string rest = hint.substr(std::strlen(kStart), hint.find(". Without") - std::strlen(kStart));
  for (std::size_t end; !rest.empty(); rest.erase(0, end)) {
    end = std::min(rest.find(", or "), rest.size());
    const std::string one = rest.substr(0, end);
    const std::size_t space = one.find(' ');
    result.push_back({one.substr(0, space), one.substr(space + 1)});
    end = std::min(end + std::strlen(", or "), rest.size());
  }
  return result;
}

const Request kContradictions[] = {
    {"bloom", {{"memory", "64kB"}, {"keys", "100000"}, {"fpr", "0.001"}, {"k", "2"}}},
    {"bloom", {{"memory", "64kB"}, {"fpr", "0.001"}, {"k", "2"}}},
    {"bloom",
     {{"memory", "64kB"}, {"keys", "40000"}, {"fpr", "0.01"}, {"k", "2"}, {"layout", "blocked"}}},
    {"bloom",
     {{"memory", "64kB"},
      {"keys", "10000"},
      {"fpr", "0.01"},
      {"grow", "density"},
      {"k", "2"},
      {"limit", "60000"}}},
    {"bloom",
     {{"memory", "64kB"},
      {"keys", "50000"},
      {"fpr", "0.001"},
      {"k1", "2"},
      {"k2", "2"},
      {"slices", "4"}}},
    {"sbf", {{"memory", "64kB"}, {"fpr", "0.001"}, {"p", "3"}}},
    {"sbf", {{"memory", "64kB"}, {"fpr", "0.001"}, {"k", "1"}, {"p", "3"}}},
    {"rsbf", {{"memory", "64kB"}, {"fpr", "0.001"}, {"k", "2"}}},
    {"bsbf", {{"memory", "64kB"}, {"fpr", "0.01"}, {"k", "2"}}},
    {"rlbsbf", {{"memory", "64kB"}, {"keys", "100000"}, {"fpr", "0.001"}, {"k", "1"}}},
    {"sqf", {{"memory", "64kB"}, {"fpr", "0.001"}, {"r", "4"}, {"r_prime", "2"}}},
    {"dsqf", {{"memory", "64kB"}, {"fpr", "0.001"}, {"r", "4"}}},
    {"ibfmc", {{"memory", "64kB"}, {"fpr", "0.01"}, {"p", "10"}}},
    {"timer", {{"memory", "64kB"}, {"window", "10000 rows"}, {"fpr", "0.001"}, {"k", "1"}}},
    {"timer", {{"memory", "64kB"}, {"window", "10 minutes"}, {"fpr", "0.01"}, {"k", "3"}}},
    {"lru", {{"memory", "64kB"}, {"fpr", "1e-06"}, {"entry_bits", "16"}}},
    {"fplru", {{"memory", "64kB"}, {"fpr", "0.01"}, {"q", "0.1"}}},
    {"clq", {{"memory", "64kB"}, {"fpr", "0.001"}, {"bits", "6"}, {"bucket", "20"}}},
};

}  // namespace

BOOST_AUTO_TEST_CASE(fpr_beside_options_that_cannot_keep_it) {
  for (const Request& request : kContradictions) BOOST_TEST_CONTEXT(request.text()) {
      Problem problem;
      BOOST_TEST(!is_accepted(request.text(), problem));
      BOOST_TEST((problem.error == Error::conflict));
      BOOST_TEST(std::string(problem.message).find("cannot keep fpr") != std::string::npos,
                 problem.message);
      const std::vector<Given> fitting = fitting_in(problem.hint);
      BOOST_TEST(!fitting.empty());
      for (const Given& option : fitting) BOOST_TEST_CONTEXT(option.name << " " << option.value) {
          BOOST_TEST(is_accepted(request.with(option).text(), problem), problem.message);
        }
      Request unpromised = request;
      std::erase_if(unpromised.options, [](const Given& option) { return option.name == "fpr"; });
      BOOST_TEST(is_accepted(unpromised.text(), problem), problem.message);
    }
}

// Another version may have accepted it: a dump restores with the same parameters.
BOOST_AUTO_TEST_CASE(what_is_restored_is_not_judged) {
  for (const Request& request : kContradictions) BOOST_TEST_CONTEXT(request.text()) {
      const Parameters parameters = read_as(request.text(), Reading::restored);
      BOOST_TEST(!keeps_promise(parameters));
      Problem problem;
      // bsbf would derive k = 2, too.
      BOOST_TEST((check_promise(parameters, problem) || parameters.kind == Kind::bsbf));
      check_written(parameters, {Reading::request, Reading::restored});
    }
}

BOOST_AUTO_TEST_CASE(gap_beside_another_max) {
  Problem problem;
  BOOST_TEST(!is_accepted("sbf(memory=64kB, gap=10000, max=1)", problem));
  BOOST_TEST(std::string(problem.message) == "options gap and max contradict each other");
  BOOST_TEST(std::string(problem.hint) == "Leave out one of them, or use max 7.");
  BOOST_TEST(!is_accepted("sbf(memory=64kB, gap=10000, cell_bits=1)", problem));
  BOOST_TEST(std::string(problem.hint) == "Leave out one of them, or use cell_bits 3.");
  BOOST_TEST(is_accepted("sbf(memory=64kB, gap=10000, max=7)", problem));
  BOOST_TEST(is_accepted(text_of(parameters_of("sbf(memory=64kB, gap=10000)")), problem));
}

// No derived parameters would do: refused, except in a dump or a text with a version.
BOOST_AUTO_TEST_CASE(promises_that_nothing_derived_keeps) {
  for (const char* text :
       {"bloom(memory=1kB, keys=1000000)", "bloom(memory=16kB, keys=100000, layout=blocked)",
        "bloom(memory=64kB, keys=100000, grow=density)", "bsbf(memory=64kB)",
        "bsbfsd(memory=64kB, fpr=0.1)", "rlbsbf(memory=16kB, keys=100000)",
        "rsbf(memory=64kB, fpr=1e-7)", "sqf(memory=64kB, fpr=1e-8)",
        "timer(memory=1kB, window='1000000 rows')", "timer(memory=1kB, window='1 hour', keys=9999)",
        "lru(memory=64kB, fpr=1e-30)", "fplru(memory=64kB, fpr=1e-30)"})
    BOOST_TEST_CONTEXT(text) {
      Problem refused, problem;
      Parameters ignored;
      BOOST_TEST(!make_parameters(text, ignored, refused));
      BOOST_TEST(!is_accepted(text, problem));
      const Parameters parameters = read_as(text, Reading::restored);
      BOOST_TEST(!keeps_promise(parameters));
      BOOST_TEST(!check_promise(parameters, problem));
      BOOST_TEST(std::string(problem.message) == refused.message);
      BOOST_TEST(std::string(problem.hint) == refused.hint);
      check_written(parameters, {Reading::request});
    }
}

// Any memory and keys will do: a kind that forgets keeps the rate, where bloom cannot.
BOOST_AUTO_TEST_CASE(automatic_kinds_keep_their_promise_whoever_reads) {
  for (const char* memory : {"1kB", "16kB", "64kB", "1MB", "8MB"})
    for (const char* keys : {"", ", keys=100", ", keys=5000", ", keys=50000", ", keys=5000000"})
      for (const char* fpr : {"0.1", "0.01", "0.001", "1e-6"})
        for (const Reading reading : {Reading::request, Reading::restored}) {
          const std::string text =
              std::string("auto(memory=") + memory + keys + ", fpr=" + fpr + ")";
          BOOST_TEST(keeps_promise(read_as(text, reading)), text);
        }
}

// Without a promise there is no contradiction.
BOOST_AUTO_TEST_CASE(what_goes_together) {
  Problem problem;
  for (const char* text :
       {"bloom(memory=64kB, k=4)", "bloom(memory=1kB, keys=1000000, k=4)",
        "bloom(memory=64kB, keys=1000, fpr=0.01, k=4)", "bsbf(memory=64kB, k=2)",
        "lru(memory=64kB, fpr=0.01, entry_bits=32)", "clq(memory=64kB, fpr=0.01, bits=12)",
        "auto(memory=64kB, fpr=0.01, keys=1e9)", "timer(memory=64kB, window='1 hour', fpr=0.01)"})
    BOOST_TEST(is_accepted(text, problem), text << ": " << problem.message);
}

// Every derived definition reads back as it is printed.
BOOST_AUTO_TEST_CASE(what_is_derived_does_not_contradict_itself) {
  for (const FilterOps* ops : all_ops())
    for (const char* memory : {"1kB", "64kB", "1MB", "64MB"})
      for (const char* fpr : {"", ", fpr=0.3", ", fpr=0.01", ", fpr=0.0001", ", fpr=1e-7"})
        for (const char* keys : {"", ", keys=100", ", keys=20000", ", keys=1000000"})
          for (const char* more :
               {"", ", window='1000 rows'", ", grow=density", ", layout=blocked"}) {
            const std::string text =
                std::string(ops->name) + "(memory=" + memory + fpr + keys + more + ")";
            Parameters parameters;
            Problem problem;
            if (!make_parameters(text, parameters, problem)) continue;
            const std::string printed = text_of(parameters);
            BOOST_TEST(is_accepted(printed, problem), printed << ": " << problem.message);
          }
}

BOOST_AUTO_TEST_SUITE_END()
