// Nanoseconds per key for every kind, and the limit that memory itself sets.
//
//   make build/bench/core_speed
//   build/bench/core_speed [--sizes=1MB,64MB,1GB] [--slow=2000] [options of Google Benchmark]
//
// Names are filter/how/size/pages. With `chained` every key depends on the last answer, so that no
// two keys overlap, as in a server that works on other things in between; with `free` they may
// overlap. Pages are `small`, or `huge` where the kernel was asked for huge pages. The limit reads,
// changes and writes one random line of 64 bytes per key of the same memory: chained, free, or with
// 16 prefetches in flight, as filters do whose kind can prefetch. Kinds slower than --slow ns per
// key are left out, with a message.
#include <benchmark/benchmark.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "bench/lib/definitions.hpp"
#include "core/filter/filter.hpp"

namespace {

using namespace streamfilter;

constexpr std::uint64_t kLine = 64;
constexpr unsigned kInFlight = 16;
// The keys in a filter before it is measured: this number, or half as many as it has bytes.
constexpr std::uint64_t kMostKeysBefore = 4000000;

double slow_ns = 2000;

// Pages are small unless asked for, even where the kernel gives huge ones by default.
class Memory {
 public:
  Memory(std::uint64_t bytes, bool huge) : bytes_((bytes + kHugePage - 1) / kHugePage * kHugePage) {
    void* mapped = mmap(nullptr, bytes_ + kHugePage, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) {
      std::perror("mmap");
      std::exit(1);
    }
    mapped_ = mapped;
    const auto address = reinterpret_cast<std::uintptr_t>(mapped);
    start_ = reinterpret_cast<unsigned char*>((address + kHugePage - 1) / kHugePage * kHugePage);
    madvise(start_, bytes_, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    std::memset(start_, 0, bytes_);
  }
  ~Memory() { munmap(mapped_, bytes_ + kHugePage); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  unsigned char* start() const { return start_; }

 private:
  static constexpr std::uint64_t kHugePage = 2 << 20;
  std::uint64_t bytes_;
  void* mapped_;
  unsigned char* start_;
};

// The output of splitmix64: stands for the hash of key `n`.
inline std::uint64_t hash_of(std::uint64_t n) {
  n *= 0x9e3779b97f4a7c15;
  n = (n ^ n >> 30) * 0xbf58476d1ce4e5b9;
  n = (n ^ n >> 27) * 0x94d049bb133111eb;
  return n ^ n >> 31;
}

// Zero, unknown to the compiler: a result masked with it still has to be waited for.
std::uint64_t hidden_zero() {
  std::uint64_t zero = 0;
  benchmark::DoNotOptimize(zero);
  return zero;
}

// ---- the limit ---------------------------------------------------------------------------------

inline std::uint64_t& word_at(unsigned char* start, std::uint64_t lines, std::uint64_t hash) {
  return *reinterpret_cast<std::uint64_t*>(start + scale(hash, lines) * kLine + (hash & 7) * 8);
}

inline std::uint64_t change(std::uint64_t& word, std::uint64_t hash) {
  const std::uint64_t before = word;
  word = before | std::uint64_t{1} << (hash >> 3 & 63);
  return before;
}

template <bool chained>
void limit(benchmark::State& state, std::uint64_t bytes, bool huge) {
  const Memory memory(bytes, huge);
  const std::uint64_t lines = bytes / kLine, zero = hidden_zero();
  std::uint64_t n = 1, answer = 0;
  for (auto _ : state) {
    const std::uint64_t hash = hash_of(n++ + (chained ? answer & zero : 0));
    answer = change(word_at(memory.start(), lines, hash), hash);
    benchmark::DoNotOptimize(answer);
  }
}

void limit_prefetched(benchmark::State& state, std::uint64_t bytes, bool huge) {
  const Memory memory(bytes, huge);
  const std::uint64_t lines = bytes / kLine;
  std::uint64_t n = 1;
  while (state.KeepRunningBatch(kInFlight)) {
    std::uint64_t hashes[kInFlight];
    for (std::uint64_t& hash : hashes) {
      hash = hash_of(n++);
      __builtin_prefetch(&word_at(memory.start(), lines, hash), 1);
    }
    for (const std::uint64_t hash : hashes)
      benchmark::DoNotOptimize(change(word_at(memory.start(), lines, hash), hash));
  }
}

// ---- filters -----------------------------------------------------------------------------------

struct Case {
  std::string name;     // in the output
  std::string options;  // beside memory
  bool can_prefetch;
  bool one_line;  // a key touches one line of memory; also measured with huge pages, like bloom
};

// The options that a kind needs besides memory. Importance and time are the same for all keys.
std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const FilterOps* ops : all_ops()) {
    const std::string name = ops->name;
    std::string options = "fpr=0.01";
    if (name == "bloom") options = "k=7";
    if (name == "bsbf" || name == "bsbfsd" || name == "rlbsbf") options = "k=2";
    if (name == "timer") options += ", window=\"100000 rows\"";
    const bool prefetches = ops->prefetch != nullptr;
    cases.push_back({name, options, prefetches, name == "clq"});
    if (ops->has_blocked_layout)
      cases.push_back({name + "-blocked", options + ", layout=blocked", prefetches, true});
  }
  return cases;
}

bool parameters_of(const Case& filter, const std::string& size, Parameters& parameters,
                   Problem& problem) {
  const std::string kind = filter.name.substr(0, filter.name.find('-'));
  const std::string text = kind + "(memory=" + size + ", " + filter.options + ")";
  return bench::make_parameters(text, parameters, problem);
}

// Inserts keys 1 to n; false if that is too slow.
bool fill(Header* header, std::uint64_t n) {
  constexpr std::uint64_t kStep = 1000;
  const std::clock_t start = std::clock();
  for (std::uint64_t i = 1; i <= n; ++i) {
    insert(header, {hash_of(i)});
    if (i % kStep != 0) continue;
    const double ns = 1e9 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    // Measures the speed for a tenth of a second; the first keys may take longer.
    if (ns > 1e8 && ns > slow_ns * static_cast<double>(i)) return false;
  }
  return true;
}

// A filter that was filled. Google Benchmark calls a function several times before it measures, so
// the filter is kept for the next call.
class Filled {
 public:
  static Filled& get(const Case& tried, const std::string& size, bool huge) {
    static std::unique_ptr<Filled> last;
    const std::string name = tried.name + size + (huge ? "huge" : "");
    if (!last || last->name_ != name) {
      last.reset();  // first, because both may not fit into memory
      last.reset(new Filled(name, tried, size, huge));
    }
    return *last;
  }

  Header* header() const { return reinterpret_cast<Header*>(memory_->start()); }

  std::uint64_t keys = 0;  // inserted so far
  std::string error;       // why it cannot be measured

 private:
  Filled(const std::string& name, const Case& tried, const std::string& size, bool huge)
      : name_(name) {
    Parameters parameters;
    Problem problem;
    if (!parameters_of(tried, size, parameters, problem)) {
      error = problem.message;
      return;
    }
    memory_ = std::make_unique<Memory>(block_bytes(parameters), huge);
    format(header(), parameters);
    keys = std::min(parameters.memory / 2, kMostKeysBefore);
    if (!fill(header(), keys))
      error = "slower than " + std::to_string(static_cast<long>(slow_ns)) + " ns per key";
  }

  std::string name_;
  std::unique_ptr<Memory> memory_;
};

// Every other key repeats any earlier one: memory of a recent one would still be cached.
inline std::uint64_t key_at(std::uint64_t n) { return n & 1 ? n : 1 + scale(hash_of(~n), n - 1); }

template <bool chained>
void filter(benchmark::State& state, Filled& filled) {
  Header* header = filled.header();
  const std::uint64_t zero = hidden_zero();
  std::uint64_t n = filled.keys, answer = 0;
  for (auto _ : state) {
    answer = insert(header, {hash_of(key_at(++n) + (chained ? answer & zero : 0))});
    benchmark::DoNotOptimize(answer);
  }
  filled.keys = n;
}

void filter_prefetched(benchmark::State& state, Filled& filled) {
  Header* header = filled.header();
  std::uint64_t n = filled.keys;
  while (state.KeepRunningBatch(kInFlight)) {
    std::uint64_t hashes[kInFlight];
    Prefetches prefetches;
    for (std::uint64_t& hash : hashes) {
      hash = hash_of(key_at(++n));
      prefetch(header, {hash}, prefetches);
    }
    prefetches.start();
    for (const std::uint64_t hash : hashes) benchmark::DoNotOptimize(insert(header, {hash}));
  }
  filled.keys = n;
}

using Measured = void (*)(benchmark::State&, Filled&);

void run(benchmark::State& state, Measured measured, const Case& tried, const std::string& size,
         bool huge) {
  Filled& filled = Filled::get(tried, size, huge);
  if (filled.error.empty())
    measured(state, filled);
  else
    state.SkipWithError(filled.error.c_str());
}

// ---- selection ----------------------------------------------------------------------------------

void register_size(const std::string& size, std::uint64_t bytes) {
  for (const bool huge : {false, true}) {
    const std::string where = "/" + size + (huge ? "/huge" : "/small");
    using benchmark::RegisterBenchmark;
    RegisterBenchmark(("limit/chained" + where).c_str(), limit<true>, bytes, huge);
    RegisterBenchmark(("limit/free" + where).c_str(), limit<false>, bytes, huge);
    RegisterBenchmark(("limit/prefetched" + where).c_str(), limit_prefetched, bytes, huge);
    for (const Case& tried : all_cases()) {
      if (huge && !tried.one_line && tried.name != "bloom") continue;
      const auto add = [&](const char* how, Measured measured) {
        RegisterBenchmark((tried.name + how + where).c_str(), run, measured, tried, size, huge);
      };
      add("/chained", filter<true>);
      add("/free", filter<false>);
      if (tried.can_prefetch) add("/prefetched", filter_prefetched);
    }
  }
}

// Takes this program's own options out of the arguments.
std::string take(const char* name, const char* preset, int& argc, char** argv) {
  const std::string prefix = std::string("--") + name + "=";
  std::string value = preset;
  int kept = 0;
  for (int i = 0; i < argc; ++i) {
    if (std::strncmp(argv[i], prefix.c_str(), prefix.size()) == 0)
      value = argv[i] + prefix.size();
    else
      argv[kept++] = argv[i];
  }
  argc = kept;
  return value;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string sizes = take("sizes", "1MB,64MB,1GB", argc, argv) + ",";
  slow_ns = std::atof(take("slow", "2000", argc, argv).c_str());
  for (std::size_t at = 0, end; (end = sizes.find(',', at)) != std::string::npos; at = end + 1) {
    const std::string size = sizes.substr(at, end - at);
    std::uint64_t bytes;
    if (!parse_size(size.c_str(), bytes) || bytes < 4096) {
      std::fprintf(stderr, "--sizes: \"%s\" is not a size\n", size.c_str());
      return 1;
    }
    register_size(size, bytes);
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
