// Real streams: four public traces (bench/lib/traces.hpp), whose exact counts truth.csv gives.
#include <boost/test/unit_test.hpp>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <unordered_set>
#include <vector>

#include "bench/lib/traces.hpp"
#include "unit/support/filters.hpp"
#include "unit/support/rates.hpp"
#include "unit/support/streams.hpp"

using namespace streamfilter;
using namespace unit;

BOOST_AUTO_TEST_SUITE(traces, *boost::unit_test::label("long"))

namespace {

struct Checkpoint {
  std::uint64_t rows, distinct;
};

// The deciles of one trace in truth.csv; none: there is no such file or trace.
std::vector<Checkpoint> truth_of(const std::string& name) {
  std::ifstream file(bench::trace_directory() + "/truth.csv");
  std::vector<Checkpoint> deciles;
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields(line);
    std::string trace, percent, rows, distinct;
    std::getline(fields, trace, ',');
    std::getline(fields, percent, ',');
    std::getline(fields, rows, ',');
    std::getline(fields, distinct, ',');
    if (trace == name) deciles.push_back({std::stoull(rows), std::stoull(distinct)});
  }
  return deciles;
}

struct Candidate {
  Filter filter;
  Errors errors = {};
};

void check_trace(const std::string& name) {
  const std::vector<Checkpoint> deciles = truth_of(name);
  if (deciles.empty()) {
    std::cout << "skipped: no " << name << " in " << bench::trace_directory()
              << " (STREAMFILTER_TRACES)\n";
    return;
  }
  std::vector<Candidate> candidates;
  for (const char* memory : {"4kB", "16kB", "64kB", "256kB", "1MB"})
    for (const char* rest : {"", ", fpr=0.1, max=3"})
      candidates.push_back({Filter(std::string("sbf(memory=") + memory + rest + ")")});

  bench::Trace trace(name);
  std::unordered_set<std::string> exact;
  std::string key;
  double row = 0;
  for (const Checkpoint& decile : deciles) {
    if (kSanitized && row > 200000) break;
    while (row < static_cast<double>(decile.rows)) {
      BOOST_REQUIRE(trace.next(key));
      ++row;
      const bool repeat = !exact.insert(key).second;
      const Element element = {hash_bytes(key.data(), key.size(), 0)};
      for (Candidate& c : candidates) c.errors.count(repeat, c.filter.insert(element));
    }
    const double distinct = static_cast<double>(exact.size());
    BOOST_TEST(exact.size() == decile.distinct);
    for (const Candidate& c : candidates)
      BOOST_TEST(c.errors.positives <= wanted_fpr(c.filter.parameters()) * distinct,
                 text_of(c.filter.parameters()) << " after " << row << " rows");
  }
}

}  // namespace

// fpr holds at every decile of every trace and in every memory. Repeats keep measured rates so far
// below Eq. 8 that no allowance for chance is needed.
BOOST_AUTO_TEST_CASE(recommendations) { check_trace("scarab_recs.csv.gz"); }
BOOST_AUTO_TEST_CASE(network_connections) { check_trace("kdd99_conn.csv.gz"); }
BOOST_AUTO_TEST_CASE(web_clicks) { check_trace("fifa98_clicks.csv.gz"); }
BOOST_AUTO_TEST_CASE(block_requests) { check_trace("cloudphysics_io.csv.gz"); }

BOOST_AUTO_TEST_SUITE_END()
