// Shared by the figures of Dutta et al. 2013: scale, filters, streams.
#pragma once

#include <cmath>

#include "bench/lib/figures.hpp"
#include "bench/lib/streams.hpp"

namespace bench::sqf {

using namespace streamfilter;

using Wide = unsigned long long;

struct Scale {
  std::uint64_t divisor;            // of figures 3 and 4
  std::uint64_t divisor_memory;     // of figure 5
  std::uint64_t divisor_zipf;       // of table 3
  unsigned rounds;                  // of the search for the memory of figure 5
  std::uint64_t timed;              // elements of a timed run
  std::vector<unsigned> megabytes;  // of the timed runs
};

inline constexpr double kBillion = 1e9;

inline unsigned bits_of(std::uint64_t n) {
  unsigned bits = 0;
  while (std::uint64_t{1} << bits < n) ++bits;
  return bits;
}

inline std::uint64_t memory(double megabytes, std::uint64_t divisor) {
  return memory_for(static_cast<std::uint64_t>(megabytes * 0x1p20 / static_cast<double>(divisor)));
}

inline std::string stable_filter(std::uint64_t bytes) {
  return text("sbf(slices=1, max=1, k=2, p=4, memory=%llu)", Wide(bytes));
}
inline std::string reservoir_filter(std::uint64_t bytes) {
  return text("rsbf(slices=1, k=2, variant=measured, memory=%llu)", Wide(bytes));
}
inline std::string quotient_filter(unsigned r, unsigned r_prime, unsigned buckets, unsigned p,
                                   std::uint64_t bytes, const char* fingerprint = "integer") {
  return text("sqf(slices=1, r=%u, r_prime=%u, buckets=%u, p=%u, memory=%llu, fingerprint=%s)", r,
              r_prime, buckets, p, Wide(bytes), fingerprint);
}

// The errors of filters over one stream of keys 0..universe-1.
template <typename Stream>
inline std::vector<Errors> run(const std::vector<std::string>& definitions, Stream stream,
                               std::uint64_t rows, std::uint64_t universe) {
  std::vector<Filter> filters;
  for (const std::string& definition : definitions) filters.emplace_back(definition);
  std::vector<Errors> errors(filters.size());
  SeenKeys truth(universe);
  for (std::uint64_t row = 0; row < rows; ++row) {
    const std::uint64_t key = stream.next();
    const bool repeat = truth.is_repeat(key);
    for (std::size_t i = 0; i < filters.size(); ++i)
      errors[i].count(repeat, filters[i].insert(filters[i].element(key)));
  }
  return errors;
}

inline std::vector<Errors> run_list(const std::vector<std::string>& definitions, std::uint64_t rows,
                                    std::uint64_t distinct) {
  return run(definitions, ShuffledList(rows, distinct, 20130826), rows, distinct);
}

inline std::uint64_t rows_of(double records, std::uint64_t divisor) {
  return static_cast<std::uint64_t>(records) / divisor;
}
inline std::uint64_t distinct_of(std::uint64_t rows, double share) {
  return static_cast<std::uint64_t>(static_cast<double>(rows) * share);
}

// Four standard errors of a share of n elements.
inline double four_errors(double share, double n) { return 4 * std::sqrt(share * (1 - share) / n); }

}  // namespace bench::sqf
