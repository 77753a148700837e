// False-positive rates of kind vqf beside those that it states, in every state that a filter comes
// to: with its keys, with three times as many, in another size, merged, and in a window.
//
//   make build/bench/quotient_rates
//   build/bench/quotient_rates [PROBES]      default 4e8 for each line (a quarter of an hour)
//
// z is the deviation in standard errors of the count. Keys that never came are asked for, one by
// one. A formula that is wrong by a hundredth shows at rates from 1e-3 on, one that is wrong by a
// sixth at 1e-6. The last line is such a case: a rate that is stated for one bit less.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "bench/lib/figures.hpp"
#include "core/filter/resize.hpp"

using namespace streamfilter;

namespace {

constexpr std::int64_t kStart = 1700000000000000, kWindow = 1000000000;
constexpr std::uint64_t kOthers = std::uint64_t{1} << 40;

Definition definition_of_text(const std::string& text) {
  Definition definition;
  Problem problem;
  std::size_t used;
  if (!parse_definition(text.data(), text.size(), definition, used, problem)) std::exit(2);
  return definition;
}

std::unique_ptr<bench::Filter> made(const std::string& text) {
  return std::make_unique<bench::Filter>(text);
}

// A copy in the size that `text` says.
std::unique_ptr<bench::Filter> resized(bench::Filter& from, const std::string& text) {
  Parameters p{};
  Problem problem;
  if (!resized_parameters(from.parameters(), definition_of_text(text), &p, problem)) {
    std::fprintf(stderr, "%s: %s\n", text.c_str(), problem.message);
    std::exit(2);
  }
  char definition[kMaxDefinitionText];
  print_definition(p, definition, sizeof definition);
  auto to = made(definition);
  std::vector<std::uint64_t> scratch(scratch_slices(from.parameters(), p) * p.slice_bytes / 8);
  for (std::uint32_t i = 0; i < p.slices; ++i)
    resize_slice(to->header(), i, from.header(), scratch.data());
  return to;
}

std::uint64_t held(bench::Filter& filter) {
  return static_cast<std::uint64_t>(
      find_ops(filter.parameters().kind)->held_keys(filter.parameters()));
}

// Inserts keys; in a window, `all` of them evenly over three times its length.
void insert(bench::Filter& filter, std::uint64_t first, std::uint64_t end, double all = 0) {
  for (std::uint64_t i = first; i < end; ++i) {
    const double at = all > 0 ? static_cast<double>(i) / all * 3 * kWindow : 0;
    filter.insert(filter.element(i, 0, kStart + static_cast<std::int64_t>(at)));
  }
}

void report(const char* state, const char* rate, bench::Filter& filter, double probes,
            double stated_times = 1, std::int64_t time = kStart) {
  double found = 0;
  for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(probes); ++i)
    found += filter.test(filter.element(kOthers + i, 0, time));
  const double stated = filter.totals().estimate.fpr * stated_times;
  std::printf("%-22s %6s %11.4e %11.4e %8.4f %7.2f\n", state, rate, found / probes, stated,
              found / probes / stated,
              (found - probes * stated) / std::sqrt(probes * stated * (1 - stated)));
  std::fflush(stdout);
}

void measure(const char* rate, double probes) {
  const std::string fpr = std::string(", fpr=") + rate;
  const auto filter = made("vqf(memory=256kB" + fpr + ")");
  const std::uint64_t keys = held(*filter);
  insert(*filter, 0, keys);
  report("its keys", rate, *filter, probes);
  insert(*filter, keys, 3 * keys);
  report("three times as many", rate, *filter, probes);

  const auto planned = made("vqf(memory=256kB, growth=4" + fpr + ")");
  insert(*planned, 0, held(*planned));
  const auto grown = resized(*planned, "vqf(memory=1MB, growth=4" + fpr + ")");
  insert(*grown, held(*planned), 3 * held(*planned));
  report("four times the size", rate, *grown, probes);
  const auto shrunk = resized(*grown, "vqf(memory=180kB, growth=4" + fpr + ")");
  report("then a sixth", rate, *shrunk, probes);

  const auto a = made("vqf(memory=256kB" + fpr + ")"), b = made("vqf(memory=256kB" + fpr + ")");
  insert(*a, 0, keys / 2);
  insert(*b, keys / 3, keys);
  Problem problem;
  if (!merge(a->header(), b->header(), problem)) std::exit(2);
  report("merged", rate, *a, probes);

  const auto window = made("vqf(memory=256kB, window=1000 s" + fpr + ")");
  const std::uint64_t live = held(*window);
  insert(*window, 0, 3 * live, 3 * static_cast<double>(live));
  report("a window", rate, *window, probes, 1, kStart + 3 * kWindow);
}

}  // namespace

int main(int count, char** arguments) {
  const double probes = count > 1 ? std::atof(arguments[1]) : 4e8;
  std::printf("%-22s %6s %11s %11s %8s %7s\n", "state", "fpr", "measured", "stated", "ratio", "z");
  for (const char* rate : {"0.1", "0.01", "0.001", "1e-4", "1e-5", "1e-6"}) measure(rate, probes);
  const auto filter = made("vqf(memory=256kB, fpr=0.001)");
  insert(*filter, 0, held(*filter));
  report("one bit less", "0.001", *filter, probes, 2);
}
