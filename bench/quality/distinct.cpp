// How right the number of distinct keys is, at equal memory: kind ell, a Bloom filter with one bit
// a key (linear counting), and HyperLogLog.
//
//   make bench
//   build/bench/distinct [TRIALS]     16 by default; eight times as many up to 100,000 keys, a
//                                     quarter from ten million on. Half a minute
//
// Root of the mean square of the relative error, in per cent, over streams of new keys. HyperLogLog
// (Flajolet, Fusy, Gandouet, Meunier 2007) has as many registers of 6 bits as fit, 64-bit hashes,
// and its estimate by the improved raw estimator (Ertl 2017, arXiv:1702.01284, algorithm 6), which
// needs no table of corrections and no switch to linear counting. 1.04/sqrt(m) is what it has for
// many keys.
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
    bytes_.reset(
        static_cast<unsigned char*>(std::aligned_alloc(64, (parameters.memory + 63) / 64 * 64)));
    format(header(), parameters);
  }

  void insert(std::uint64_t hash) {
    Element element{};
    element.hash = hash;
    streamfilter::insert(header(), element);
  }

  double distinct() const {
    bool full;
    const double keys = distinct_keys(header(), full);
    return full ? NAN : keys;
  }

 private:
  Header* header() const { return reinterpret_cast<Header*>(bytes_.get()); }
  std::unique_ptr<unsigned char, void (*)(void*)> bytes_;
};

constexpr std::uint64_t kCounts[] = {1000,    10000,   100000,   200000,  400000,
                                     1000000, 3000000, 10000000, 30000000};
constexpr std::uint64_t kFew = 100000, kMany = 10000000;
constexpr unsigned kPoints = sizeof kCounts / sizeof *kCounts;

void compare(std::uint64_t bytes, unsigned trials) {
  constexpr unsigned kWays = 3;
  double squares[kPoints][kWays] = {}, count[kPoints] = {};
  const std::string memory = "memory=" + std::to_string(bytes);
  for (unsigned trial = 0; trial < 8 * trials; ++trial) {
    Filter ell("ell(" + memory + ")"), bloom("bloom(" + memory + ", k=1)");
    HyperLogLog hll(bytes);
    std::uint64_t keys = 0;
    for (unsigned point = 0; point < kPoints; ++point) {
      if (trial >= trials && kCounts[point] > kFew) break;
      if (trial >= std::max(trials / 4, 1u) && kCounts[point] >= kMany) break;
      ++count[point];
      for (; keys < kCounts[point]; ++keys) {
        const std::uint64_t hash = hash_word(keys, trial);
        ell.insert(hash);
        bloom.insert(hash);
        hll.insert(hash);
      }
      const double numbers[kWays] = {ell.distinct(), bloom.distinct(), hll.distinct()};
      for (unsigned way = 0; way < kWays; ++way)
        squares[point][way] += std::pow(numbers[way] / static_cast<double>(keys) - 1, 2);
    }
  }
  const double bits = 8 * static_cast<double>(bytes);
  std::printf("%llu bytes, %u trials\n%10s %8s %8s %8s\n", static_cast<unsigned long long>(bytes),
              trials, "keys", "ell", "bloom", "hll");
  for (unsigned point = 0; point < kPoints; ++point) {
    std::printf("%10llu", static_cast<unsigned long long>(kCounts[point]));
    for (const double sum : squares[point]) {
      if (std::isnan(sum))
        std::printf("     full");
      else
        std::printf(" %8.3f", 100 * std::sqrt(sum / count[point]));
    }
    std::printf("\n");
  }
  std::printf("%10s %8.3f          %8.3f\n", "many", 100 * exa_log_log_model::relative_error(bits),
              100 * 1.04 / std::sqrt(bits / 6));
}

}  // namespace

int main(int argc, char** argv) {
  const unsigned trials = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 16;
  for (const std::uint64_t bytes : {65536u, 1048576u}) compare(bytes, trials);
}
