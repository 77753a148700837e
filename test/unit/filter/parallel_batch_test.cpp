// Batches give the answers and final bytes of one worker that takes all elements in the order of
// their positions, whatever the number of workers and the order of arrival.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "core/filter/parallel_batch.hpp"
#include "unit/support/filters.hpp"
#include "unit/support/streams.hpp"

using namespace streamfilter;
using namespace unit;

BOOST_AUTO_TEST_SUITE(parallel_batch)

namespace {

// A few times more keys than the filters hold, so that they evict all the time.
const char* const kDefinitions[] = {
    "sqf(memory=16kB, slices=1)",
    "sqf(memory=16kB, slices=8)",
    "sqf(memory=16kB, slices=13, r=2, r_prime=1, buckets=2)",
    "dsqf(memory=16kB, slices=1)",
    "dsqf(memory=16kB, slices=8)",
    "dsqf(memory=16kB, slices=13, rows=100)",
    "bloom(memory=16kB, k=4, slices=8, slicing=vertical)",
    "bloom(memory=16kB, k=4, slicing=diced, dice=hv, slices=\"4,8\")",
    "bloom(memory=16kB, k=4, slicing=diced, dice=vh, slices=\"8,4\")",
    "sbf(memory=4kB, slices=5)",
    "clq(memory=4kB, slices=5)",
    "clq(memory=4kB, slices=5, lines=2)",
};
constexpr std::uint64_t kUniverse = 20000;

std::vector<StreamElement> stream(std::uint64_t elements) {
  std::mt19937_64 random(1);
  std::vector<StreamElement> arrivals;
  for (std::uint64_t i = 0; i < elements; ++i)
    arrivals.push_back({key(scale(random(), kUniverse)), static_cast<std::int64_t>(i)});
  return arrivals;
}

// Answers by position.
std::vector<bool> one_by_one(Filter& filter, const std::vector<StreamElement>& arrivals) {
  std::vector<bool> seen(arrivals.size());
  for (const StreamElement& arrival : arrivals)
    seen[static_cast<std::size_t>(arrival.position)] = filter.insert(arrival.element);
  return seen;
}

// Sends blocks, each in an order of its own.
std::vector<bool> in_blocks(Filter& filter, std::vector<StreamElement> arrivals, std::size_t block,
                            unsigned workers) {
  std::mt19937_64 random(workers);
  std::vector<bool> answers(arrivals.size());
  std::vector<std::uint32_t> order(block), starts(filter.parameters().slices + 1);
  const std::unique_ptr<bool[]> seen(new bool[block]);
  for (std::size_t first = 0; first < arrivals.size(); first += block) {
    StreamElement* const begin = &arrivals[first];
    const std::size_t count = std::min(block, arrivals.size() - first);
    std::shuffle(begin, begin + count, random);
    const ElementBatch batch{begin, static_cast<std::uint32_t>(count), order.data(), starts.data(),
                             seen.get()};
    sort_by_group(filter.parameters(), batch);
    std::vector<std::thread> threads;
    for (unsigned worker = 0; worker < workers; ++worker)
      threads.emplace_back([&, worker] {
        for (unsigned group = worker; group < groups_of(filter.parameters()); group += workers)
          insert_group(filter.header(), batch, group);
      });
    for (std::thread& thread : threads) thread.join();
    for (std::size_t i = 0; i < count; ++i)
      answers[static_cast<std::size_t>(begin[i].position)] = seen[i];
  }
  return answers;
}

}  // namespace

BOOST_AUTO_TEST_CASE(equal_for_any_number_of_workers) {
  const std::vector<StreamElement> arrivals = stream(scaled(60000));
  for (const char* definition : kDefinitions) {
    Filter sequential(definition);
    const std::vector<bool> truth = one_by_one(sequential, arrivals);
    const auto repeats = std::count(truth.begin(), truth.end(), true);
    BOOST_TEST(repeats > 0);
    BOOST_TEST(repeats < static_cast<std::ptrdiff_t>(arrivals.size()));
    for (const unsigned workers : {1u, 2u, 3u, 8u}) {
      for (const std::size_t block : {arrivals.size(), std::size_t{7001}}) {
        BOOST_TEST_CONTEXT(definition << ", " << workers << " workers, blocks of " << block) {
          Filter parallel(definition);
          BOOST_TEST((in_blocks(parallel, arrivals, block, workers) == truth));
          BOOST_TEST((parallel.bytes() == sequential.bytes()));
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(grouping_keeps_every_arrival_once_and_in_order) {
  const Parameters parameters = parameters_of("sqf(memory=16kB, slices=7)");
  const std::vector<StreamElement> arrivals = stream(1000);
  std::vector<std::uint32_t> order(arrivals.size()), starts(parameters.slices + 1);
  const ElementBatch batch{arrivals.data(), 1000, order.data(), starts.data(), nullptr};
  sort_by_group(parameters, batch);
  BOOST_TEST(starts[0] == 0u);
  BOOST_TEST(starts[parameters.slices] == arrivals.size());
  for (std::uint32_t slice = 0; slice < parameters.slices; ++slice) {
    BOOST_REQUIRE(starts[slice] <= starts[slice + 1]);
    for (std::uint32_t i = starts[slice]; i < starts[slice + 1]; ++i) {
      BOOST_TEST(slice_of(parameters, arrivals[order[i]].element.hash) == slice);
      BOOST_TEST((i == starts[slice] || order[i - 1] < order[i]));
    }
  }
  std::sort(order.begin(), order.end());
  for (std::uint32_t i = 0; i < arrivals.size(); ++i) BOOST_TEST(order[i] == i);
}

BOOST_AUTO_TEST_CASE(a_batch_of_nothing) {
  Filter filter("sqf(memory=16kB, slices=3)");
  const std::vector<unsigned char> before = filter.bytes();
  std::uint32_t starts[4];
  const ElementBatch batch{nullptr, 0, nullptr, starts, nullptr};
  sort_by_group(filter.parameters(), batch);
  for (unsigned group = 0; group < 3; ++group) insert_group(filter.header(), batch, group);
  BOOST_TEST((filter.bytes() == before));
}

BOOST_AUTO_TEST_SUITE_END()
