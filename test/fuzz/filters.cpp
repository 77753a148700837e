#include "fuzz/filters.hpp"

#include <cmath>
#include <limits>

#include "core/filter/sparse_form.hpp"

namespace fuzz {
namespace {

using Doubles = std::numeric_limits<double>;
using Times = std::numeric_limits<std::int64_t>;

constexpr double kNumbers[] = {0,
                               -0.0,
                               1,
                               -1,
                               100,
                               1e300,
                               -1e300,
                               Doubles::denorm_min(),
                               Doubles::max(),
                               Doubles::infinity(),
                               -Doubles::infinity(),
                               Doubles::quiet_NaN()};
constexpr std::int64_t kTimes[] = {
    0, 1, -1, 1000000, 60000000, Times::min(), Times::min() + 1, Times::max(), Times::max() - 1};

// Few different keys, so that they meet again, and the ends of their range.
std::uint64_t hash_of(std::uint64_t seed) {
  switch (seed % 16) {
    case 0: return 0;
    case 1: return ~std::uint64_t{0};
    default: return mix64(seed % 61);
  }
}

void insert_some(Block& block, std::uint64_t seed) {
  Header* header = block.header();
  const Parameters& parameters = header->parameters;
  unsigned rank;
  for (std::uint64_t i = 0; i < 40; ++i) {
    const Element element = element_of(mix64(seed + i));
    const bool seen = test(header, element);
    switch (i % 4) {
      case 0: {
        const bool is_late =
            streamfilter::is_late(parameters, element, clock_of(header, element.hash));
        FUZZ_REQUIRE(insert(header, element) == (seen && !is_late));
        break;
      }
      case 1: promote(header, element, rank); break;
      case 2: insert_new(header, element); break;
      default: test(header, element, rank);
    }
    if (i % 8 == 7 && ops_of(header).erase != nullptr) erase(header, element);
    are_in_window(window_of(parameters), element, element_of(mix64(seed + i + 1)), i);
  }
}

void estimate(const Block& block) {
  const Totals sums = totals(block.header());
  FUZZ_REQUIRE(sums.estimate.fill >= -1e-9 && sums.estimate.fill <= 1 + 1e-9);
  FUZZ_REQUIRE(!(sums.estimate.fpr < -1e-9) && !(sums.estimate.fpr > 1 + 1e-9));
  FUZZ_REQUIRE(!(sums.estimate.distinct < 0));
  is_empty(block.header());
  checksum(block.header());
}

std::vector<unsigned char> words_form_of(const Block& block, std::uint32_t count) {
  const Parameters& p = block.header()->parameters;
  std::vector<Word> words(count);
  std::vector<std::uint64_t> insertions(p.slices);
  list_words(block.header(), words.data());
  list_insertions(block.header(), insertions.data());
  const std::size_t size = write_compact(p, words.data(), count, insertions.data(), nullptr, 0);
  FUZZ_REQUIRE(size <= most_compact(p, count));
  std::vector<unsigned char> bytes(size);
  write_compact(p, words.data(), count, insertions.data(), bytes.data(), size);
  return bytes;
}

}  // namespace

bool read_definition(const char* text, std::size_t length, Parameters& parameters) {
  Definition definition;
  Problem problem;
  std::size_t used;
  if (!parse_definition(text, length, definition, used, problem) || !complete(definition, problem))
    return false;
  parameters = definition.parameters;
  return true;
}

bool is_valid(const Block& block) {
  Problem problem;
  return check(block.bytes.data(), block.bytes.size(), problem);
}

Element element_of(std::uint64_t seed) {
  return {hash_of(seed), kNumbers[(seed >> 8) % std::size(kNumbers)],
          kTimes[(seed >> 16) % std::size(kTimes)]};
}

void use(Block& block) {
  estimate(block);
  Block before = block;
  insert_some(block, block.bytes.size());
  FUZZ_REQUIRE(is_valid(block));
  estimate(block);
  if (ops_of(block.header()).merge == nullptr) return;
  Problem problem;
  Block empty(block.bytes.size());
  format(empty.header(), block.header()->parameters);
  for (const Block* from : {&empty, &before, &block}) {
    Block into = before;
    if (!merge(into.header(), from->header(), problem)) {  // growing filters that do not fit
      FUZZ_REQUIRE(problem.message[0] != '\0' && into.bytes == before.bytes);
      continue;
    }
    FUZZ_REQUIRE(is_valid(into));
    estimate(into);
    insert_some(into, 7);
    FUZZ_REQUIRE(is_valid(into));
  }
}

void ask(const Parameters& parameters) {
  const FilterOps& ops = *find_ops(parameters.kind);
  const double bound = ops.fpr_bound(parameters);
  FUZZ_REQUIRE(bound >= 0 && bound <= 1 + 1e-9);
  for (const double rate : {0.0, 0.01, 1.0}) window_keys(parameters, rate);
  if (ops.fnr_at != nullptr)
    for (const double gap : {0.0, 1.0, 1e6, 1e18}) {
      const double rate = ops.fnr_at(parameters, gap);
      FUZZ_REQUIRE(!(rate < -1e-9) && !(rate > 1 + 1e-9));
    }
  char text[kMaxDefinitionText];
  const std::size_t length = print_definition(parameters, text, sizeof text);
  Parameters again;
  FUZZ_REQUIRE(length + 1 < sizeof text && read_definition(text, length, again));
  FUZZ_REQUIRE(std::memcmp(&again, &parameters, sizeof again) == 0);
}

std::vector<unsigned char> compact_of(const Block& block) {
  if (std::uint32_t count; count_words(block.header(), count)) return words_form_of(block, count);
  SparsePlan plan;
  if (!plan_sparse(block.header(), block.bytes.size(), plan)) return {};
  std::vector<unsigned char> bytes(plan.room);
  const std::size_t size = write_sparse(block.header(), plan, bytes.data());
  FUZZ_REQUIRE(size <= plan.room);
  bytes.resize(size);
  return bytes;
}

}  // namespace fuzz
