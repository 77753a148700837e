// What streams that depend on a filter's answers make of the rates that kinds keep "for ever".
//
//   make bench
//   build/bench/adaptive     a few seconds
//
// The sender goes through so many keys again and again and sends only those that the filter has
// forgotten, so that each brings in all of its cells anew. All are most important. Beside it the
// false-positive rate among keys that are never sent, on average over the later half.
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "bench/lib/definitions.hpp"
#include "core/base/hash.hpp"
#include "core/filter/filter.hpp"

namespace {

using namespace streamfilter;

constexpr std::uint64_t kKeys = 400000, kRounds = 12, kSent = 20000, kAsked = 10000;

Element element(std::uint64_t number) { return {mix64(number * kGoldenRatio), 1e9, 0}; }

// Sends so many forgotten keys, unless a whole turn finds none.
void send(Header* header, std::uint64_t& next) {
  for (std::uint64_t sent = 0, known = 0; sent < kSent && known < kKeys;) {
    const Element key = element(next++ % kKeys);
    if (test(header, key)) {
      ++known;
      continue;
    }
    insert(header, key);
    ++sent;
    known = 0;
  }
}

double rate(const Header* header, std::uint64_t& fresh) {
  std::uint64_t wrong = 0;
  for (std::uint64_t i = 0; i < kAsked; ++i) wrong += test(header, element(fresh++));
  return static_cast<double>(wrong) / kAsked;
}

void run(const std::string& kind, double fpr) {
  char text[96];
  std::snprintf(text, sizeof text, "%s(fpr=%g, memory=16kB, slices=1, seed=1)", kind.c_str(), fpr);
  Parameters parameters;
  Problem problem;
  if (!bench::make_parameters(text, parameters, problem)) return;
  std::vector<std::uint64_t> words(parameters.memory / 8 + 1);
  auto* header = reinterpret_cast<Header*>(words.data());
  format(header, parameters);
  std::uint64_t next = 0, fresh = kKeys;
  double sum = 0;
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    send(header, next);
    if (round >= kRounds / 2) sum += rate(header, fresh) / (kRounds - kRounds / 2);
  }
  std::printf("%-8s %5g %9.4f\n", kind.c_str(), fpr, sum);
}

}  // namespace

int main() {
  std::printf("%-8s %5s %9s\n", "kind", "fpr", "measured");
  for (const char* kind : {"sbf", "ibf2c", "ibfmc", "rsbf", "sqf", "dsqf", "clq", "capped"})
    for (const double fpr : {0.01, 0.1, 0.2}) run(kind, fpr);
}
