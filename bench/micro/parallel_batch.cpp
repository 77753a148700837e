// SQF and DSQF in parallel: keys per second by one and by two workers, whose answers and bytes must
// be equal; and the effect of the printed rule of positions (Dutta et al. 2013, section 5.2). Times
// are those of the clock and, because machines do other things as well, those of the processor:
// grouping, then the busiest worker.
//
//   make bench
//   build/bench/parallel_batch [ROUNDS]    the fastest round counts; default 3
#include <time.h>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "bench/lib/definitions.hpp"
#include "bench/lib/streams.hpp"
#include "bench/micro/parallel_sqf_rule.hpp"
#include "core/filter/packed_header.hpp"
#include "core/filter/parallel_batch.hpp"

using namespace streamfilter;

namespace {

constexpr std::uint32_t kBlock = 1 << 18;
constexpr std::uint32_t kBlocks = 8;

using Clock = std::chrono::steady_clock;

Parameters parameters_of(const std::string& text) {
  Parameters parameters;
  Problem problem;
  if (!bench::make_parameters(text, parameters, problem)) {
    std::fprintf(stderr, "%s: %s\n", text.c_str(), problem.message);
    std::exit(1);
  }
  return parameters;
}

std::vector<StreamElement> make_stream(std::uint64_t universe) {
  bench::Uniform stream(universe, 1);
  std::vector<StreamElement> arrivals(std::size_t{kBlock} * kBlocks);
  for (std::size_t i = 0; i < arrivals.size(); ++i)
    arrivals[i] = {{hash_word(stream.next(), 0)}, static_cast<std::int64_t>(i)};
  return arrivals;
}

// The CPU time of this thread.
double processor_seconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

struct Run {
  double clock = 1e9, processor = 1e9;  // seconds
  std::uint64_t checksum = 0;
  std::vector<char> seen;
};

// Each returns the CPU seconds of the longest path.
double in_batches(Header* filter, const std::vector<StreamElement>& arrivals, unsigned workers,
                  char* seen) {
  std::vector<std::uint32_t> order(kBlock), starts(filter->parameters.slices + 1);
  std::vector<double> used(workers);
  double sum = 0;
  for (std::uint32_t block = 0; block < kBlocks; ++block) {
    const std::size_t first = std::size_t{block} * kBlock;
    const ElementBatch batch{&arrivals[first], kBlock, order.data(), starts.data(),
                             reinterpret_cast<bool*>(seen + first)};
    const auto work = [&](unsigned worker) {
      const double start = processor_seconds();
      for (unsigned group = worker; group < groups_of(filter->parameters); group += workers)
        insert_group(filter, batch, group);
      used[worker] = processor_seconds() - start;
    };
    const double start = processor_seconds();
    sort_by_group(filter->parameters, batch);
    sum += processor_seconds() - start;
    std::vector<std::thread> others;
    for (unsigned worker = 1; worker < workers; ++worker) others.emplace_back(work, worker);
    work(0);
    for (std::thread& other : others) other.join();
    sum += *std::max_element(used.begin(), used.end());
  }
  return sum;
}

double one_by_one(Header* filter, const std::vector<StreamElement>& arrivals, char* seen) {
  const double start = processor_seconds();
  for (std::size_t i = 0; i < arrivals.size(); ++i) seen[i] = insert(filter, arrivals[i].element);
  return processor_seconds() - start;
}

// 0 workers: one by one, in the order of the stream.
Run measure(const Parameters& parameters, const std::vector<StreamElement>& arrivals,
            unsigned workers, unsigned rounds) {
  Run run;
  run.seen.resize(arrivals.size());
  Header* filter = static_cast<Header*>(std::aligned_alloc(64, block_bytes(parameters)));
  for (unsigned round = 0; round < rounds; ++round) {
    format(filter, parameters);
    const auto start = Clock::now();
    const double processor = workers == 0 ? one_by_one(filter, arrivals, run.seen.data())
                                          : in_batches(filter, arrivals, workers, run.seen.data());
    const std::chrono::duration<double> taken = Clock::now() - start;
    run.clock = std::min(run.clock, taken.count());
    run.processor = std::min(run.processor, processor);
  }
  run.checksum = checksum(filter);
  std::free(filter);
  return run;
}

bool print_speed(unsigned rounds) {
  bool all_equal = true;
  std::printf("Million keys per second; blocks of %u keys; this machine has %u cores\n", kBlock,
              std::thread::hardware_concurrency());
  std::printf("%-30s %10s %8s %9s %13s %17s  answers, bytes\n", "", "one by one", "1 worker",
              "2 workers", "2:1, by clock", "2:1, by processor");
  for (const char* text : {"sqf(memory=1MB, slices=64)", "sqf(memory=64MB, slices=64)",
                           "dsqf(memory=1MB, slices=64)", "dsqf(memory=64MB, slices=64)"}) {
    const Parameters parameters = parameters_of(text);
    const std::vector<StreamElement> arrivals = make_stream(parameters.memory);
    const double million = static_cast<double>(arrivals.size()) / 1e6;
    const Run plain = measure(parameters, arrivals, 0, rounds);
    const Run one = measure(parameters, arrivals, 1, rounds);
    const Run two = measure(parameters, arrivals, 2, rounds);
    const bool equal = one.seen == plain.seen && two.seen == plain.seen &&
                       one.checksum == plain.checksum && two.checksum == plain.checksum;
    all_equal &= equal;
    std::printf("%-30s %10.1f %8.1f %9.1f %13.2f %17.2f  %s\n", text, million / plain.processor,
                million / one.processor, million / two.processor, one.clock / two.clock,
                one.processor / two.processor, equal ? "equal" : "DIFFERENT");
    std::fflush(stdout);
  }
  return all_equal;
}

// ---- the printed rule ---------------------------------------------------------------------------

struct Answers {
  std::vector<bool> repeat;
  double fnr;
};

// `interleaved`: a block reaches the rows in any order, as if from many workers.
Answers run_rule(bench::PositionRule rule, bool interleaved) {
  constexpr std::uint64_t kUniverse = 100000, kRows = 40000;
  constexpr std::uint32_t kElements = 2000000, kInBlock = 10000;
  bench::PrintedParallelSqf filter(kRows, 4, rule);
  bench::Uniform stream(kUniverse, 7);
  std::vector<bool> known(kUniverse), truth, in_block(kInBlock);
  std::vector<std::uint64_t> hashes(kInBlock);
  std::vector<std::uint32_t> order(kInBlock);
  std::uint64_t random = 3, missed = 0, repeats = 0;
  Answers answers;
  for (std::uint32_t done = 0; done < kElements; done += kInBlock) {
    truth.clear();
    for (std::uint32_t i = 0; i < kInBlock; ++i) {
      const std::uint64_t number = stream.next();
      hashes[i] = hash_word(number, 0);
      truth.push_back(known[number]);
      known[number] = true;
    }
    std::iota(order.begin(), order.end(), 0u);
    for (std::uint32_t i = kInBlock; interleaved && i > 1; --i)
      std::swap(order[i - 1], order[random_below(random, i)]);
    filter.process(hashes, order, in_block);
    for (std::uint32_t i = 0; i < kInBlock; ++i) {
      repeats += truth[i];
      missed += truth[i] && !in_block[i];
      answers.repeat.push_back(in_block[i]);
    }
  }
  answers.fnr = static_cast<double>(missed) / static_cast<double>(repeats);
  return answers;
}

void print_rules() {
  const Answers truth = run_rule(bench::PositionRule::in_order, false);
  std::printf("\nOne table for all workers, a position in each bucket: %-9s answers that differ\n",
              "FNR");
  std::printf("%-52s %7.2f %%\n", "one worker, in order", 100 * truth.fnr);
  const auto print = [&](const char* name, const Answers& answers) {
    std::size_t differ = 0;
    for (std::size_t i = 0; i < truth.repeat.size(); ++i)
      differ += truth.repeat[i] != answers.repeat[i];
    std::printf("%-52s %7.2f %%   %6.2f %%\n", name, 100 * answers.fnr,
                100 * static_cast<double>(differ) / static_cast<double>(truth.repeat.size()));
  };
  print("in any order, positions as printed", run_rule(bench::PositionRule::printed, true));
  print("in any order, with the number of the block",
        run_rule(bench::PositionRule::block_numbers, true));
}

}  // namespace

int main(int argc, char** argv) {
  const unsigned rounds = argc > 1 ? static_cast<unsigned>(std::max(1, std::atoi(argv[1]))) : 3;
  const bool equal = print_speed(rounds);
  print_rules();
  return equal ? 0 : 1;
}
