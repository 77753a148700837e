// Computes figures 1, 5, 7 and 8 of Koloniari et al. 2011. Keys are placed by the library: in its
// filters if slices have whole lines of 64 bytes, otherwise in cells of any number.
#pragma once

#include <unordered_map>

#include "bench/lib/paper_formulas.hpp"
#include "bench/lib/stored_stream.hpp"
#include "bench/lib/traces.hpp"
#include "bench/papers/distributed/distributed_setting.hpp"

namespace bench::distributed {

inline constexpr double kHashes = 4;
inline constexpr double kTargets[] = {.02, .05, .08};
inline const std::vector<std::uint32_t> kSliceCounts = {1, 10, 20, 40, 100, 200, 400, 1000};

enum class Cut { horizontal, vertical };
inline const char* name_of(Cut cut) { return cut == Cut::horizontal ? "horizontal" : "vertical"; }

// A Bloom filter with `body` bytes for the bits of each slice.
inline std::string sliced_bloom(const std::string& slicing, std::uint32_t slices, unsigned k,
                                std::uint64_t body) {
  return text("bloom(memory=%llu, k=%u, slices=%s)",
              static_cast<Wide>(kStoredHeader + slices * (sizeof(SliceState) + body)), k,
              slicing.c_str());
}
inline std::string slicing_text(Cut cut, std::uint32_t slices) {
  return text("%u%s", slices, cut == Cut::vertical ? ", slicing=vertical" : "");
}
inline Parameters sliced_parameters(Cut cut, std::uint32_t slices, unsigned k) {
  return Filter(sliced_bloom(slicing_text(cut, slices), slices, k, 64)).parameters();
}

// Kind bloom without `grow`, with slices of any size.
class Cells {
 public:
  Cells(const Parameters& parameters, unsigned k, std::uint64_t cells_of_slice)
      : p_(parameters),
        bits_(bits_per_probe(parameters, k)),
        m_(cells_of_slice),
        cells_(parameters.slices * cells_of_slice) {}

  // True if the key was seen. Marks it as seen.
  bool insert(std::uint64_t hash) {
    bool seen = true;
    for (unsigned i = 0; i < probes(p_); ++i) {
      const KeyProbe place = probe_of(p_, hash, i);
      for (unsigned j = 0; j < bits_; ++j) {
        auto cell = cells_[place.slice * m_ + position(place.hash, j, m_)];
        seen = seen && cell;
        cell = true;
      }
    }
    return seen;
  }

 private:
  Parameters p_;
  std::uint64_t bits_, m_;
  std::vector<bool> cells_;
};

// The first rows of a trace; empty if the trace is missing.
inline StoredStream rows_of_trace(const std::string& name, std::uint64_t rows) {
  StoredStream stream;
  Trace trace(name);
  std::unordered_map<std::string, std::uint32_t> numbers;
  std::string key;
  for (std::uint64_t row = 0; row < rows && trace.next(key); ++row) stream.add(key, numbers);
  return stream;
}

template <typename Source>
StoredStream rows_of(Source source, std::uint64_t rows) {
  StoredStream stream;
  std::unordered_map<std::uint64_t, std::uint32_t> numbers;
  for (std::uint64_t row = 0; row < rows; ++row) stream.add(source.next(), numbers);
  return stream;
}

// The mean of a rate over the new keys of a stream that fills an empty filter (Simpson).
inline double mean_rate(const slicing_model::SlicingShape& shape, double keys) {
  constexpr int kSteps = 64;
  double sum = rate(shape, 0, rate_of_few_cells) + rate(shape, keys, rate_of_few_cells);
  for (int i = 1; i < kSteps; ++i)
    sum += (i % 2 == 1 ? 4 : 2) * rate(shape, keys * i / kSteps, rate_of_few_cells);
  return sum / (3 * kSteps);
}

}  // namespace bench::distributed
