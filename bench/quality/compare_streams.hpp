// The streams of bench/quality/compare.cpp: finite ones with a known number of distinct keys, and
// an endless one with a known mean gap of repeats.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "bench/lib/stored_stream.hpp"
#include "bench/lib/streams.hpp"
#include "bench/lib/traces.hpp"

namespace bench {

struct ComparedStream {
  std::string name;  // also in names of files
  StoredStream rows;
  double gap = 0;  // 0: finite

  // The unit of memory.
  double keys() const { return gap > 0 ? gap : rows.distinct(); }
  // Errors count from the one row on, rates at the end from the other.
  double counted_from() const { return gap > 0 ? rows.rows() / 2 : 0; }
  double end_from() const { return gap > 0 ? counted_from() : 0.8 * rows.rows(); }
};

template <typename Source>
StoredStream store(Source source, std::uint64_t rows) {
  StoredStream stream;
  std::unordered_map<std::uint64_t, std::uint32_t> numbers;
  for (std::uint64_t i = 0; i < rows; ++i) stream.add<std::uint64_t>(source.next(), numbers);
  return stream;
}

// The first rows of a trace; empty if the trace is missing.
inline StoredStream store_trace(const std::string& name, std::uint64_t rows) {
  StoredStream stream;
  std::unordered_map<std::string, std::uint32_t> numbers;
  Trace trace(name);
  std::string key;
  while (stream.rows() < static_cast<double>(rows) && trace.next(key)) stream.add(key, numbers);
  return stream;
}

inline std::vector<ComparedStream> compared_streams(bool quick) {
  const std::uint64_t rows = quick ? 10000 : 100000;
  std::vector<ComparedStream> all;
  for (const unsigned percent : {15, 60, 90})
    all.push_back({"uniform-" + std::to_string(percent),
                   store(ShuffledList(rows, rows * percent / 100, percent), rows)});
  all.push_back({"zipf", store(Zipf(rows, 1, 1), rows)});
  const double gap = static_cast<double>(rows) / 10;
  all.push_back({"endless", store(ExponentialGaps(0.5, gap, 1), 2 * rows), gap});
  for (const char* name : {"cloudphysics_io", "fifa98_clicks", "kdd99_conn", "scarab_recs"}) {
    StoredStream trace = store_trace(std::string(name) + ".csv.gz", 2 * rows);
    if (trace.rows() > 0)
      all.push_back({name, std::move(trace)});
    else
      std::printf("%s: no such trace in %s, skipped\n", name, trace_directory().c_str());
  }
  return all;
}

}  // namespace bench
