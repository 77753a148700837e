// A filter of the library, from a definition as users write it.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "streamfilter/core/filter.hpp"

namespace bench {

// The options that give a filter one slice with a body of so many bits, rounded up to whole lines.
inline std::string one_slice(double bits) {
  const std::uint64_t lines = (static_cast<std::uint64_t>(bits) + 511) / 512;
  return "slices=1, memory=" + std::to_string(sizeof(streamfilter::Header) +
                                              sizeof(streamfilter::SliceState) + 64 * lines);
}

class Filter {
 public:
  explicit Filter(const std::string& text) {
    streamfilter::Definition definition;
    streamfilter::Problem problem;
    std::size_t used;
    if (!parse_definition(text.data(), text.size(), definition, used, problem) ||
        !complete(definition, problem)) {
      std::fprintf(stderr, "%s: %s\n%s\n", text.c_str(), problem.message, problem.detail);
      std::exit(2);
    }
    bytes_.resize((definition.parameters.memory + 7) / 8);
    format(header(), definition.parameters);
  }

  bool insert(std::uint64_t hash) { return streamfilter::insert(header(), {hash}); }
  bool test(std::uint64_t hash) { return streamfilter::test(header(), {hash}); }
  double fill() { return totals(header()).estimate.fill; }
  double fpr_bound() { return ops_of(header()).fpr_bound(header()->parameters); }
  double fnr_at(double gap) { return ops_of(header()).fnr_at(header()->parameters, gap); }

 private:
  streamfilter::Header* header() { return reinterpret_cast<streamfilter::Header*>(bytes_.data()); }
  std::vector<std::uint64_t> bytes_;
};

// What a filter answered over a stream.
struct Counts {
  double fresh = 0, repeats = 0, positives = 0, negatives = 0;

  void add(bool repeat, bool seen) {
    (repeat ? repeats : fresh) += 1;
    positives += seen && !repeat;
    negatives += !seen && repeat;
  }
  double fpr() const { return fresh > 0 ? positives / fresh : 0; }
  double fnr() const { return repeats > 0 ? negatives / repeats : 0; }
};

}  // namespace bench
