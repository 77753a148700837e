// The accuracy of distinct counts at equal memory: kind ell by the likelihood and, for one stream,
// by the changes that keys make (Ertl 2024, §3.3); a Bloom filter with one bit a key (linear
// counting); and HyperLogLog.
//
//   make bench
//   build/bench/distinct [TRIALS]     16 by default; eight times as many up to 100,000 keys, a
//                                     quarter at ten million, a sixteenth at a hundred million. A
//                                     minute or two
//
// The root mean square of the relative error, in per cent, over streams of new keys. HyperLogLog
// (Flajolet, Fusy, Gandouet, Meunier 2007) has as many registers of 6 bits as fit, 64-bit hashes,
// and the improved raw estimator (Ertl 2017, arXiv:1702.01284, algorithm 6), which needs no table
// of corrections and no switch to linear counting. The last line is the theory for many keys:
// sqrt(3.78 / bits), sqrt(3.00 / bits), 1.04 / sqrt(m). The bits of ell are those of its bytes
// behind 576 of header and counters.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "bench/lib/definitions.hpp"
#include "core/kind/exa_log_log_words.hpp"
#include "core/model/exa_log_log_model.hpp"

namespace {

using namespace streamfilter;

class HyperLogLog {
 public:
  explicit HyperLogLog(std::uint64_t bytes) : registers_(bytes * 8 / 6) {}

  void insert(std::uint64_t hash) {
    const unsigned rank =
        static_cast<unsigned>(std::countl_zero(mix64(hash + 2 * kGoldenRatio) | 3)) + 1;
    auto& one = registers_[position(hash, 0, registers_.size())];
    if (rank > one) one = static_cast<std::uint8_t>(rank);
  }

  double distinct() const {
    constexpr int kMost = 63;  // q + 1
    double count[kMost + 1] = {};
    for (const std::uint8_t one : registers_) ++count[std::min<int>(one, kMost)];
    const double m = static_cast<double>(registers_.size());
    double z = m * tau(1 - count[kMost] / m);
    for (int k = kMost - 1; k >= 1; --k) z = (z + count[k]) / 2;
    z += m * sigma(count[0] / m);
    return m * m / (2 * std::log(2)) / z;
  }

 private:
  static double sigma(double x) {
    if (x == 1) return INFINITY;
    double y = 1, z = x, before;
    do {
      x *= x;
      before = z;
      z += x * y;
      y += y;
    } while (z != before);
    return z;
  }
  static double tau(double x) {
    if (x == 0 || x == 1) return 0;
    double y = 1, z = 1 - x, before;
    do {
      x = std::sqrt(x);
      before = z;
      y /= 2;
      z -= (1 - x) * (1 - x) * y;
    } while (z != before);
    return z / 3;
  }

  std::vector<std::uint8_t> registers_;
};

class Filter {
 public:
  explicit Filter(const std::string& text) : bytes_(nullptr, std::free) {
    Parameters parameters;
    Problem problem;
    if (!bench::make_parameters(text, parameters, problem)) {
      std::fprintf(stderr, "%s: %s\n", text.c_str(), problem.message);
      std::exit(2);
    }
    bytes_.reset(static_cast<unsigned char*>(std::aligned_alloc(64, block_bytes(parameters))));
    format(header(), parameters);
  }

  void insert(std::uint64_t hash) {
    Element element{};
    element.hash = hash;
    streamfilter::insert(header(), element);
  }

  // For kind ell: the number from the changes that keys make.
  void insert_counting(std::uint64_t hash) {
    const double before = change_;
    const Parameters& p = header()->parameters;
    if (!exa_log_log::add_word(header(), exa_log_log::word_of(p, hash), change_))
      counted_ += 1 / before;
  }
  double counted() const { return counted_; }

  double bits() const {
    return 16 * static_cast<double>(exa_log_log::places_of(header()->parameters));
  }

  double distinct() const {
    bool full;
    const double keys = distinct_keys(header(), full);
    return full ? NAN : keys;
  }

 private:
  Header* header() const { return reinterpret_cast<Header*>(bytes_.get()); }
  std::unique_ptr<unsigned char, void (*)(void*)> bytes_;
  double change_ = 1, counted_ = 0;
};

constexpr std::uint64_t kCounts[] = {10,     100,     1000,     10000,    100000,
                                     400000, 1000000, 10000000, 100000000};
constexpr std::uint64_t kFew = 100000, kMany = 10000000;
constexpr unsigned kPoints = sizeof kCounts / sizeof *kCounts;
constexpr unsigned kWays = 4;

unsigned trials_of(std::uint64_t keys, unsigned trials) {
  if (keys <= kFew) return 8 * trials;
  const unsigned part = keys < kMany ? 1 : keys == kMany ? 4 : 16;
  return std::max(trials / part, 1u);
}

struct Squares {
  double of[kPoints][kWays] = {};
};

void run(const std::string& memory, std::uint64_t bytes, unsigned trial, unsigned trials,
         Squares& squares) {
  Filter ell("ell(" + memory + ")"), martingale("ell(" + memory + ")"),
      bloom("bloom(" + memory + ", k=1)");
  HyperLogLog hll(bytes);
  std::uint64_t keys = 0;
  for (unsigned point = 0; point < kPoints && trial < trials_of(kCounts[point], trials); ++point) {
    for (; keys < kCounts[point]; ++keys) {
      const std::uint64_t hash = hash_word(keys, trial);
      ell.insert(hash);
      martingale.insert_counting(hash);
      bloom.insert(hash);
      hll.insert(hash);
    }
    const double numbers[kWays] = {ell.distinct(), martingale.counted(), bloom.distinct(),
                                   hll.distinct()};
    for (unsigned way = 0; way < kWays; ++way)
      squares.of[point][way] += std::pow(numbers[way] / static_cast<double>(keys) - 1, 2);
  }
}

void print_row(const char* what, const double (&errors)[kWays]) {
  std::printf("%10s", what);
  for (const double error : errors)
    std::isnan(error) ? std::printf("          -") : std::printf(" %10.3f", 100 * error);
  std::printf(" %10.2f\n", errors[0] / errors[kWays - 1]);
}

void compare(std::uint64_t bytes, unsigned trials) {
  Squares squares;
  const std::string memory = "memory=" + std::to_string(bytes);
  for (unsigned trial = 0; trial < 8 * trials; ++trial) run(memory, bytes, trial, trials, squares);
  std::printf("%llu bytes, %u trials\n%10s %10s %10s %10s %10s %10s\n",
              static_cast<unsigned long long>(bytes), trials, "keys", "ell", "one stream", "bloom",
              "hll", "ell / hll");
  for (unsigned point = 0; point < kPoints; ++point) {
    double errors[kWays];
    for (unsigned way = 0; way < kWays; ++way)
      errors[way] = std::sqrt(squares.of[point][way] / trials_of(kCounts[point], trials));
    print_row(std::to_string(kCounts[point]).c_str(), errors);
  }
  const double bits = Filter("ell(" + memory + ")").bits();
  const double theory[kWays] = {exa_log_log_model::relative_error(bits), std::sqrt(3.00 / bits),
                                NAN, 1.04 / std::sqrt(8 * static_cast<double>(bytes) / 6)};
  print_row("many", theory);
}

}  // namespace

int main(int argc, char** argv) {
  const unsigned trials = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 16;
  for (const std::uint64_t bytes : {1024u, 4096u, 65536u, 1048576u}) compare(bytes, trials);
}
