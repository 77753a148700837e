// What a key costs: nanoseconds per insertion into each kind, on one core. Keys are drawn uniformly
// from as many as the filter has bytes; drawing and hashing them is included. As many as that, but
// at most 16 million, go before.
//
//   make bench
//   build/bench/kind_speed [ROUNDS]    rounds of 4 million keys, the fastest counts; default 3
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "bench/streams.hpp"
#include "streamfilter/core/filter.hpp"

using namespace streamfilter;

namespace {

const char* const kDefinitions[] = {
    "bloom(k=7",
    "sbf(",
    "sbf(layout=blocked",
    "rsbf(",
    "bsbf(k=2",
    "bsbfsd(k=2",
    "rlbsbf(k=2",
    "sqf(",
    "dsqf(",
    "ibfmc(",
    "timer(k=7, window=\"100000 rows\"",
    "lru(",
    "clq(",
    "clq(fpr=0.1",
    "capped(k=6, cap=0.65",
    "capped(",
};

constexpr std::uint64_t kKeys = 4000000, kMostBefore = 16000000;

bool make(const std::string& text, Parameters& parameters) {
  Definition definition;
  Problem problem;
  std::size_t used;
  if (!parse_definition(text.data(), text.size(), definition, used, problem) ||
      !complete(definition, problem)) {
    std::fprintf(stderr, "%s: %s\n", text.c_str(), problem.message);
    return false;
  }
  parameters = definition.parameters;
  return true;
}

double ns_per_key(Header* filter, std::uint64_t universe, unsigned rounds) {
  bench::Uniform stream(universe, 1);
  double best = 1e9;
  std::uint64_t repeats = 0;
  for (std::uint64_t i = 0; i < std::min(universe, kMostBefore); ++i)
    repeats += insert(filter, {hash_word(stream.next(), 0)});
  for (unsigned round = 0; round < rounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (std::uint64_t i = 0; i < kKeys; ++i)
      repeats += insert(filter, {hash_word(stream.next(), 0)});
    const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - start;
    best = std::min(best, taken.count() / static_cast<double>(kKeys));
  }
  return repeats > 0 ? best : 0;  // the answers must be computed
}

}  // namespace

int main(int argc, char** argv) {
  const unsigned rounds = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 3;
  std::printf("%-36s %8s %8s  ns per key\n", "", "1MB", "64MB");
  for (const char* text : kDefinitions) {
    double ns[2] = {};
    for (unsigned i = 0; i < 2; ++i) {
      Parameters parameters;
      const std::string comma = std::string(text).back() == '(' ? "" : ", ";
      if (!make(text + comma + (i == 0 ? "memory=1MB)" : "memory=64MB)"), parameters)) return 1;
      Header* filter = static_cast<Header*>(std::aligned_alloc(64, parameters.memory));
      format(filter, parameters);
      ns[i] = ns_per_key(filter, parameters.memory, rounds);
      std::free(filter);
    }
    std::printf("%-36s %8.1f %8.1f\n", (std::string(text) + ")").c_str(), ns[0], ns[1]);
    std::fflush(stdout);
  }
}
