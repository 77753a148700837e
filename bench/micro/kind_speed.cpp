// The cost of a key: nanoseconds per insertion into each kind, on one core, including drawing and
// hashing keys. Keys are drawn uniformly from as many as the filter has bytes. First that number is
// inserted, but at most 16 million, as far as SECONDS allow. Then all kinds take turns of 8 bursts
// of 65,536 keys, for SECONDS each on average. The first burst of a turn brings the filter back
// into the caches. Of a kind's other bursts, the one at the fastest tenth counts, because other
// work on the machine makes bursts of all kinds slower.
//
//   make bench
//   build/bench/kind_speed [SECONDS [KIND...]]    for each kind and size, default 1; names begin so
//
// `times` is relative to the fastest kind of the table.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
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
    "vqf(",
    "vqf(fpr=1e-6",
    "vqf(window=1 hour",
    "bloom(k=7",
    "bloom(k=7, layout=blocked",
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
constexpr unsigned kBurstsOfTurn = 8;

using Clock = std::chrono::steady_clock;

bool make(const std::string& text, Parameters& parameters) {
  Problem problem;
  if (bench::make_parameters(text, parameters, problem)) return true;
  std::fprintf(stderr, "%s: %s\n", text.c_str(), problem.message);
  return false;
}

class Timed {
 public:
  Timed(const char* text, const char* memory) : text_(text) {
    const std::string comma = text_.back() == '(' ? "" : ", ";
    if (!make(text_ + comma + "memory=" + memory + ")", parameters_)) std::exit(1);
    filter_.reset(static_cast<Header*>(std::aligned_alloc(64, block_bytes(parameters_))));
    format(filter_.get(), parameters_);
    stream_ = bench::Uniform(parameters_.memory, 1);
  }

  void warm(double seconds) {
    const std::uint64_t keys = std::min<std::uint64_t>(parameters_.memory, kMostBefore);
    double taken = 0;
    for (std::uint64_t i = 0; i < keys && taken < seconds; i += kBurst) taken += burst();
  }

  // Returns the seconds that it took.
  double turn() {
    double taken = burst();
    for (unsigned i = 1; i < kBurstsOfTurn; ++i) {
      bursts_.push_back(burst());
      taken += bursts_.back();
    }
    return taken;
  }

  double ns_per_key() {
    std::sort(bursts_.begin(), bursts_.end());
    // Keeps the compiler from leaving the answers out.
    return repeats_ > 0 ? bursts_[bursts_.size() / 10] * 1e9 / static_cast<double>(kBurst) : 0;
  }

  std::string name() const { return text_ + ")"; }

 private:
  double burst() {
    const auto start = Clock::now();
    for (std::uint64_t i = 0; i < kBurst; ++i)
      repeats_ += insert(filter_.get(), {hash_word(stream_.next(), 0)});
    return std::chrono::duration<double>(Clock::now() - start).count();
  }

  std::string text_;
  Parameters parameters_;
  std::unique_ptr<Header, void (*)(void*)> filter_{nullptr, std::free};
  bench::Uniform stream_{1, 1};
  std::uint64_t repeats_ = 0;
  std::vector<double> bursts_;
};

void measure(std::vector<Timed>& kinds, double seconds) {
  for (Timed& one : kinds) one.warm(seconds);
  double taken = 0;
  while (taken < seconds * static_cast<double>(kinds.size()))
    for (Timed& one : kinds) taken += one.turn();
}

double fastest(std::vector<Timed>& kinds) {
  double least = INFINITY;
  for (Timed& one : kinds) least = std::min(least, one.ns_per_key());
  return least;
}

bool is_wanted(const char* text, char** names, int count) {
  for (int i = 0; i < count; ++i)
    if (std::strncmp(text, names[i], std::strlen(names[i])) == 0) return true;
  return count == 0;
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 1;
  constexpr const char* kMemory[] = {"1MB", "64MB"};
  std::vector<Timed> of_size[2];
  for (unsigned i = 0; i < 2; ++i) {
    for (const char* text : kDefinitions)
      if (argc <= 2 || is_wanted(text, argv + 2, argc - 2))
        of_size[i].emplace_back(text, kMemory[i]);
    measure(of_size[i], seconds);
  }
  std::printf("%-36s %8s %7s %8s %7s\n%-36s %8s %7s %8s %7s\n", "", kMemory[0], "", kMemory[1], "",
              "", "ns", "times", "ns", "times");
  for (std::size_t kind = 0; kind < of_size[0].size(); ++kind) {
    std::printf("%-36s", of_size[0][kind].name().c_str());
    for (std::vector<Timed>& kinds : of_size)
      std::printf(" %8.1f %7.2f", kinds[kind].ns_per_key(),
                  kinds[kind].ns_per_key() / fastest(kinds));
    std::printf("\n");
  }
}
