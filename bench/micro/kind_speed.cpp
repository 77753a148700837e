// What a key costs: nanoseconds per insertion into each kind, on one core. Keys are drawn uniformly
// from as many as the filter has bytes; drawing and hashing them is included. As many as that, but
// at most 16 million, go before, as far as SECONDS allow. Then come as many bursts of 65,536 keys
// as in SECONDS, and the one at the fastest tenth counts: what else the machine does makes bursts
// slower.
//
//   make bench
//   build/bench/kind_speed [SECONDS [KIND...]]    for each kind and size, default 1; names begin so
//
// `times` is relative to the fastest kind so far; the fast ones come first.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "bench/lib/definitions.hpp"
#include "bench/lib/streams.hpp"
#include "core/filter/filter.hpp"

using namespace streamfilter;

namespace {

const char* const kDefinitions[] = {
    "bsbf(k=2",
    "bsbfsd(k=2",
    "rlbsbf(k=2",
    "clq(",
    "clq(fpr=0.1",
    "clq(lines=2",
    "clq(window=1 hour",
    "bloom(k=7",
    "bloom(k=7, layout=blocked",
    "capped(k=6, cap=0.65",
    "capped(",
    "sbf(",
    "sbf(layout=blocked",
    "rsbf(",
    "sqf(",
    "lru(",
    "ibfmc(",
    "timer(k=7, window=\"100000 rows\"",
    "dsqf(",
};

constexpr std::uint64_t kMostBefore = 16000000, kBurst = 65536;

using Clock = std::chrono::steady_clock;

bool make(const std::string& text, Parameters& parameters) {
  Problem problem;
  if (bench::make_parameters(text, parameters, problem)) return true;
  std::fprintf(stderr, "%s: %s\n", text.c_str(), problem.message);
  return false;
}

double ns_per_key(Header* filter, std::uint64_t universe, double seconds) {
  bench::Uniform stream(universe, 1);
  std::uint64_t repeats = 0;
  const auto burst = [&] {
    const auto start = Clock::now();
    for (std::uint64_t i = 0; i < kBurst; ++i)
      repeats += insert(filter, {hash_word(stream.next(), 0)});
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  double taken = 0;
  for (std::uint64_t i = 0; i < std::min(universe, kMostBefore) && taken < seconds; i += kBurst)
    taken += burst();
  std::vector<double> bursts;
  for (taken = 0; taken < seconds; taken += bursts.back()) bursts.push_back(burst());
  std::sort(bursts.begin(), bursts.end());
  // The answers must be computed.
  return repeats > 0 ? bursts[bursts.size() / 10] * 1e9 / static_cast<double>(kBurst) : 0;
}

bool is_wanted(const char* text, char** names, int count) {
  for (int i = 0; i < count; ++i)
    if (std::strncmp(text, names[i], std::strlen(names[i])) == 0) return true;
  return count == 0;
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 1;
  double fastest[2] = {1e9, 1e9};
  std::printf("%-36s %8s %7s %8s %7s\n%-36s %8s %7s %8s %7s\n", "", "1MB", "", "64MB", "", "", "ns",
              "times", "ns", "times");
  for (const char* text : kDefinitions) {
    if (argc > 2 && !is_wanted(text, argv + 2, argc - 2)) continue;
    std::printf("%-36s", (std::string(text) + ")").c_str());
    for (unsigned i = 0; i < 2; ++i) {
      Parameters parameters;
      const std::string comma = std::string(text).back() == '(' ? "" : ", ";
      if (!make(text + comma + (i == 0 ? "memory=1MB)" : "memory=64MB)"), parameters)) return 1;
      Header* filter = static_cast<Header*>(std::aligned_alloc(64, parameters.memory));
      format(filter, parameters);
      const double ns = ns_per_key(filter, parameters.memory, seconds);
      std::free(filter);
      fastest[i] = std::min(fastest[i], ns);
      std::printf(" %8.1f %7.2f", ns, ns / fastest[i]);
      std::fflush(stdout);
    }
    std::printf("\n");
  }
}
