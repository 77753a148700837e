// Costs and gains of layout blocked: error rates of sbf and bloom, scattered and blocked, on a flat
// and on a skewed stream, and the time of an insertion if the filter fits the processor's cache and
// if it does not.
//
//   make bench
//   build/bench/layouts OUTDIR [--quick]     also writes OUTDIR/layouts.csv; quick: a tenth of 1 MB
//
// The rates are those of 1 MB for the number of distinct keys that gives each b bits. Either 60 %
// of the rows are distinct and the others uniform draws from these (uniform 60 %), or rows follow
// Zipf's law of exponent 1 over twice as many keys, until that number has come (zipf 1). On the
// flat stream rates depend on b alone. Times are the shortest of twenty rounds of new keys.
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

namespace {

using namespace streamfilter;

constexpr unsigned kBits[] = {4, 8, 16};
constexpr const char* kKinds[] = {"sbf", "bloom"};
constexpr const char* kLayouts[] = {"scattered", "blocked"};

// A filter at the start of a cache line, as in shared memory.
class Filter {
 public:
  explicit Filter(const std::string& text) : bytes_(nullptr, std::free) {
    Parameters parameters;
    Problem problem;
    if (!bench::make_parameters(text, parameters, problem)) {
      std::fprintf(stderr, "%s: %s\n%s\n%s\n", text.c_str(), problem.message, problem.detail,
                   problem.hint);
      std::exit(2);
    }
    const std::uint64_t memory = block_bytes(parameters);
    bytes_.reset(static_cast<unsigned char*>(std::aligned_alloc(64, memory)));
    if (!bytes_) std::exit(2);
    format(header(), parameters);
  }

  bool insert(std::uint64_t number) {
    return streamfilter::insert(header(), {hash_word(number, 0)});
  }

 private:
  Header* header() { return reinterpret_cast<Header*>(bytes_.get()); }
  std::unique_ptr<unsigned char, void (*)(void*)> bytes_;
};

// For sbf, fpr only derives K and P; bloom takes the best K for its keys.
std::string definition(const std::string& kind, const std::string& layout, std::uint64_t memory,
                       unsigned bits) {
  const std::string rest =
      kind == "sbf" ? "fpr=0.1" : "fpr=0.5, keys=" + std::to_string(memory * 8 / bits);
  return kind + "(memory=" + std::to_string(memory) + ", layout=" + layout + ", " + rest + ")";
}

struct MeasuredStream {
  const char* name;
  std::uint64_t universe;
  std::vector<std::uint32_t> keys;
};

MeasuredStream uniform(std::uint64_t distinct) {
  const std::uint64_t rows = distinct * 10 / 6;
  bench::ShuffledList list(rows, distinct, 1);
  MeasuredStream stream{"uniform 60 %", distinct, {}};
  for (std::uint64_t i = 0; i < rows; ++i)
    stream.keys.push_back(static_cast<std::uint32_t>(list.next()));
  return stream;
}

MeasuredStream zipf(std::uint64_t distinct) {
  const std::uint64_t universe = 2 * distinct;
  bench::Zipf draws(universe, 1, 1);
  bench::SeenKeys seen(universe);
  MeasuredStream stream{"zipf 1", universe, {}};
  for (std::uint64_t count = 0; count < distinct;) {
    const std::uint64_t key = draws.next();
    stream.keys.push_back(static_cast<std::uint32_t>(key));
    count += !seen.is_repeat(key);
  }
  return stream;
}

struct Rates {
  double fpr, fnr;
};

Rates rates(Filter filter, const MeasuredStream& stream) {
  bench::SeenKeys seen(stream.universe);
  double fresh = 0, repeats = 0, positives = 0, negatives = 0;
  for (const std::uint32_t key : stream.keys) {
    const bool reported = filter.insert(key);
    if (seen.is_repeat(key)) {
      ++repeats;
      negatives += !reported;
    } else {
      ++fresh;
      positives += reported;
    }
  }
  return {100 * positives / fresh, 100 * negatives / repeats};
}

// Nanoseconds per insertion, by kind and layout.
using Times = double[2][2];

// Takes the shortest of many short rounds, in turns, because other programs use the machine, too.
void measure(std::uint64_t memory, unsigned bits, std::uint64_t keys, Times& times) {
  std::vector<Filter> filters;
  for (const char* kind : kKinds)
    for (const char* layout : kLayouts)
      filters.emplace_back(definition(kind, layout, memory, bits));
  for (double(&of_kind)[2] : times) std::fill(of_kind, of_kind + 2, INFINITY);
  std::uint64_t first = 0;
  volatile std::uint64_t reported = 0;  // keeps the compiler from leaving insertions out
  for (unsigned round = 0; round < 20; ++round, first += keys)
    for (unsigned i = 0; i < 4; ++i) {
      const auto start = std::chrono::steady_clock::now();
      std::uint64_t count = 0;
      for (std::uint64_t number = first; number < first + keys; ++number)
        count += filters[i].insert(number);
      const std::chrono::duration<double, std::nano> time =
          std::chrono::steady_clock::now() - start;
      reported = reported + count;
      double& least = times[i / 2][i % 2];
      least = std::min(least, time.count() / static_cast<double>(keys));
    }
}

}  // namespace

int main(int argc, char** argv) {
  const bool quick = argc == 3 && std::strcmp(argv[2], "--quick") == 0;
  if (argc < 2 || argc > 3 || (argc == 3 && !quick)) {
    std::fprintf(stderr, "usage: %s OUTDIR [--quick]\n", argv[0]);
    return 2;
  }
  const std::string path = std::string(argv[1]) + "/layouts.csv";
  std::FILE* csv = std::fopen(path.c_str(), "w");
  if (csv == nullptr) {
    std::perror(path.c_str());
    return 2;
  }
  const std::uint64_t megabyte = std::uint64_t{1} << 20, memory = quick ? megabyte / 10 : megabyte,
                      keys = quick ? 20000 : 200000;

  const char* const head =
      "stream        bits/key  kind   layout       FPR %    FNR %   ns at 1 MB  ns at 64 MB\n";
  std::fputs(head, stdout);
  std::fputs("stream,bits_per_key,kind,layout,fpr_percent,fnr_percent,ns_1mb,ns_64mb\n", csv);
  for (const unsigned bits : kBits) {
    Times small, large;
    measure(megabyte, bits, keys, small);
    measure(64 * megabyte, bits, keys, large);
    for (MeasuredStream (*make)(std::uint64_t) : {uniform, zipf}) {
      const MeasuredStream stream = make(memory * 8 / bits);
      for (unsigned k = 0; k < 2; ++k)
        for (unsigned l = 0; l < 2; ++l) {
          const Rates found =
              rates(Filter(definition(kKinds[k], kLayouts[l], memory, bits)), stream);
          std::printf("%-12s  %8u  %-5s  %-9s  %8.4f %8.4f   %10.0f  %11.0f\n", stream.name, bits,
                      kKinds[k], kLayouts[l], found.fpr, found.fnr, small[k][l], large[k][l]);
          std::fprintf(csv, "%s,%u,%s,%s,%.6f,%.6f,%.1f,%.1f\n", stream.name, bits, kKinds[k],
                       kLayouts[l], found.fpr, found.fnr, small[k][l], large[k][l]);
          std::fflush(stdout);
        }
    }
  }
  return std::fclose(csv) == 0 ? 0 : 2;
}
