// Bits and nanoseconds a key of kind vqf beside the kinds that it replaces, at the rates that
// people ask for. A filter gets as many keys as it says that it holds, a window three times as
// many, in batches of 256. Of the bursts in which it becomes full, the one at the fastest tenth
// counts, because other work on the machine makes bursts slower; then of bursts of repeats. Last,
// keys that never came are asked for.
//
//   make build/bench/key_costs
//   build/bench/key_costs [MEMORY [PART]]      default 64MB; only definitions with this part
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "bench/lib/definitions.hpp"
#include "core/filter/derivation.hpp"
#include "core/filter/filter.hpp"

using namespace streamfilter;

namespace {

constexpr std::uint64_t kBurst = 65536, kBatch = 256;
constexpr std::int64_t kStart = 1700000000000000, kWindow = 1000000000;

double seconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// Those that hold keys without a window, and those with one.
const char* const kKnown[] = {"vqf(", "bloom(", "bloom(layout=blocked, ", "clq(lines=2, "};
const char* const kWindows[] = {"vqf(window=1000 s, ", "timer(window=1000 s, "};
const char* const kRates[] = {"0.01", "0.001", "1e-6"};

double held(const Parameters& p) {
  const FilterOps& ops = *find_ops(p.kind);
  if (ops.held_keys != nullptr) return ops.held_keys(p);
  return p.keys > 0 ? static_cast<double>(p.keys) : window_keys(p, .01);
}

class Stream {
 public:
  Stream(Header* header, double keys, bool window)
      : header_(header), step_(window ? static_cast<double>(kWindow) / keys : 0) {
    std::fill_n(has_key_, kBatch, true);
  }

  // Nanoseconds a key for a burst from key `first` on; these are the events at `now`.
  double burst(std::uint64_t first, std::uint64_t now) {
    const double start = seconds();
    for (std::uint64_t i = 0; i < kBurst; i += kBatch) {
      for (std::uint64_t j = 0; j < kBatch; ++j) elements_[j] = at(first + i + j, now + i + j);
      insert_many(header_, elements_, has_key_, kBatch, seen_);
    }
    return (seconds() - start) * 1e9 / kBurst;
  }

  double false_positives(std::uint64_t now, std::uint64_t probes) const {
    std::uint64_t found = 0;
    for (std::uint64_t i = 0; i < probes; ++i)
      found += test(header_, at((std::uint64_t{1} << 40) + i, now));
    return static_cast<double>(found) / static_cast<double>(probes);
  }

 private:
  Element at(std::uint64_t key, std::uint64_t now) const {
    return {.hash = hash_word(key, 0),
            .time = kStart + static_cast<std::int64_t>(static_cast<double>(now) * step_)};
  }

  Header* header_;
  double step_;
  Element elements_[kBatch];
  bool seen_[kBatch], has_key_[kBatch];
};

double fastest_tenth(std::vector<double>& bursts) {
  std::sort(bursts.begin(), bursts.end());
  return bursts.empty() ? NAN : bursts[bursts.size() / 10];
}

void measure(const std::string& text, bool window) {
  Problem problem;
  Parameters p;
  if (!bench::make_parameters(text, p, problem)) {
    std::printf("%-50s %s\n", text.c_str(), problem.message);
    return;
  }
  const double keys = held(p);
  std::unique_ptr<Header, void (*)(void*)> filter(
      static_cast<Header*>(std::aligned_alloc(64, block_bytes(p))), std::free);
  format(filter.get(), p);
  Stream stream(filter.get(), keys, window);
  const auto all = static_cast<std::uint64_t>(window ? 3 * keys : keys) / kBurst * kBurst;
  std::vector<double> fresh, repeats;
  std::uint64_t i = 0;
  for (; i < all; i += kBurst)
    if (const double ns = stream.burst(i, i); i >= all - all / 4) fresh.push_back(ns);
  for (unsigned n = 0; n < 40; ++n)
    repeats.push_back(stream.burst(i - kBurst * (1 + mix64(n) % (all / 8 / kBurst + 1)), i));
  const double expected = totals(filter.get()).estimate.fpr,
               probes = std::clamp(1000 / expected, 1e6, 4e7);
  const double found = stream.false_positives(i, static_cast<std::uint64_t>(probes));
  std::printf("%-50s %9.0f %6.1f %6.1f %6.1f %10.3g %10.3g\n", text.c_str(), keys,
              static_cast<double>(p.memory) * 8 / keys, fastest_tenth(fresh),
              fastest_tenth(repeats), found, expected);
  std::fflush(stdout);
}

}  // namespace

int main(int count, char** arguments) {
  const std::string memory = count > 1 ? arguments[1] : "64MB",
                    part = count > 2 ? arguments[2] : "";
  std::printf("%-50s %9s %6s %6s %6s %10s %10s\n", "", "keys", "bits", "new", "repeat", "fpr",
              "fpr_now");
  for (const bool window : {false, true})
    for (const char* rate : kRates)
      for (const char* kind :
           window ? std::vector<const char*>(std::begin(kWindows), std::end(kWindows))
                  : std::vector<const char*>(std::begin(kKnown), std::end(kKnown))) {
        const std::string text = std::string(kind) + "fpr=" + rate + ", memory=" + memory + ")";
        if (text.find(part) != std::string::npos) measure(text, window);
      }
}
