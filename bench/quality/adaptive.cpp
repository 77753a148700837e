// How streams that depend on a filter's answers change the rates that kinds keep "for ever".
//
//   make bench
//   build/bench/adaptive     a quarter of a minute
//
// The sender goes through a fixed number of keys again and again and sends only those that the
// filter has forgotten, so that each sets all of its cells anew. All are most important. Measured
// is the false-positive rate among keys that are never sent, averaged over the later half: the mean
// and the highest of several seeds.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "bench/lib/definitions.hpp"
#include "core/base/hash.hpp"
#include "core/filter/filter.hpp"

namespace {

using namespace streamfilter;

constexpr std::uint64_t kKeys = 400000, kRounds = 12, kSent = 20000, kAsked = 10000, kSeeds = 4;

// A key of the stream with this seed.
Element element(std::uint64_t seed, std::uint64_t number) {
  return {mix64(mix64(seed) + number * kGoldenRatio), 1e9, 0};
}

// Sends `count` forgotten keys, unless a whole turn finds none.
void send(Header* header, std::uint64_t seed, std::uint64_t& next) {
  for (std::uint64_t sent = 0, known = 0; sent < kSent && known < kKeys;) {
    const Element key = element(seed, next++ % kKeys);
    if (test(header, key)) {
      ++known;
      continue;
    }
    insert(header, key);
    ++sent;
    known = 0;
  }
}

double rate(const Header* header, std::uint64_t seed, std::uint64_t& fresh) {
  std::uint64_t wrong = 0;
  for (std::uint64_t i = 0; i < kAsked; ++i) wrong += test(header, element(seed, fresh++));
  return static_cast<double>(wrong) / kAsked;
}

// The rate over the later half of the rounds; below 0: there is no such filter.
double measure(const std::string& kind, double fpr, std::uint64_t seed) {
  char text[96];
  std::snprintf(text, sizeof text, "%s(fpr=%g, memory=16kB, slices=1, seed=%llu)", kind.c_str(),
                fpr, static_cast<unsigned long long>(seed));
  Parameters parameters;
  Problem problem;
  if (!bench::make_parameters(text, parameters, problem)) return -1;
  std::vector<std::uint64_t> words(block_bytes(parameters) / 8);
  auto* header = reinterpret_cast<Header*>(words.data());
  format(header, parameters);
  std::uint64_t next = 0, fresh = kKeys;
  double sum = 0;
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    send(header, seed, next);
    if (round >= kRounds / 2) sum += rate(header, seed, fresh) / (kRounds - kRounds / 2);
  }
  return sum;
}

void run(const std::string& kind, double fpr) {
  double sum = 0, highest = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const double measured = measure(kind, fpr, seed);
    if (measured < 0) return;
    sum += measured;
    highest = std::max(highest, measured);
  }
  std::printf("%-8s %5g %9.4f %9.4f\n", kind.c_str(), fpr, sum / kSeeds, highest);
}

}  // namespace

int main() {
  std::printf("%-8s %5s %9s %9s\n", "kind", "fpr", "mean", "highest");
  for (const char* kind : {"sbf", "ibf2c", "ibfmc", "rsbf", "sqf", "dsqf", "clq", "vqf"})
    for (const double fpr : {0.01, 0.1, 0.2, 0.5}) run(kind, fpr);
}
