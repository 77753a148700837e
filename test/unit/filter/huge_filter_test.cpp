// More than 2^32 cells in one slice: positions, starts of decrements and counts need 64 bits. The
// memory is an anonymous mapping: its pages are zero like an empty slice, and take no memory until
// they are written to, so this needs some hundred MB at most.
#include <sys/mman.h>

#include <boost/test/unit_test.hpp>
#include <iostream>
#include <set>
#include <vector>

#include "core/base/hash.hpp"
#include "core/kind/quotient_table.hpp"
#include "unit/support/filters.hpp"
#include "unit/support/streams.hpp"

using namespace streamfilter;
using namespace unit;

BOOST_AUTO_TEST_SUITE(huge_filter)

namespace {

constexpr std::uint64_t k2to32 = std::uint64_t{1} << 32;

class Mapping {
 public:
  explicit Mapping(const Parameters& parameters) : size_(block_bytes(parameters)) {
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    memory_ = mmap(nullptr, size_, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (memory_ == MAP_FAILED) return;
    format_header(header(), parameters);
    slice_at(header(), 0).state->random = kStart;
  }
  Mapping(const Mapping&) = delete;
  ~Mapping() {
    if (memory_ != MAP_FAILED) munmap(memory_, size_);
  }

  explicit operator bool() const { return memory_ != MAP_FAILED; }
  Header* header() { return static_cast<Header*>(memory_); }

  static constexpr std::uint64_t kStart = 12345;  // of the generator

 private:
  std::size_t size_;
  void* memory_;
};

bool is_missing(const Mapping& mapping) {
  if (mapping) return false;
  std::cout << "skipped: no address space for a filter of more than 2^32 cells\n";
  return true;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_stable_bloom_filter_of_five_thousand_million_cells_is_algorithm_1) {
  const Parameters p = parameters_of("sbf(memory=600MB, slices=1, k=3, p=4000000)");
  Mapping mapping(p);
  if (is_missing(mapping)) return;
  const std::uint64_t m = (p.slice_bytes - sizeof(SliceState)) * 8,
                      decrements = option_value(p, "p");
  BOOST_TEST_REQUIRE(m > k2to32 + k2to32 / 8);

  std::set<std::uint64_t> ones;  // Algorithm 1 with Max = 1
  std::uint64_t random = Mapping::kStart, emptied = 0, high_starts = 0, high_cells = 0;
  for (std::uint64_t number = 0; number < 400; ++number) {
    const Element element = key(number % 300);
    if (number == 0) random = mix64(random ^ element.hash);
    bool duplicate = true;
    for (unsigned i = 0; i < 3; ++i)
      duplicate = duplicate && ones.count(position(element.hash, i, m)) != 0;
    const std::uint64_t start = random_below(random, m), end = start + decrements;
    const std::size_t before = ones.size();
    ones.erase(ones.lower_bound(start), ones.lower_bound(std::min(end, m)));
    if (end > m) ones.erase(ones.begin(), ones.lower_bound(end - m));
    emptied += before - ones.size();
    high_starts += start >= k2to32;
    for (unsigned i = 0; i < 3; ++i) {
      ones.insert(position(element.hash, i, m));
      high_cells += position(element.hash, i, m) >= k2to32;
    }
    BOOST_TEST_REQUIRE(insert(mapping.header(), element) == duplicate);
    BOOST_TEST_REQUIRE(slice_at(mapping.header(), 0).state->own[0] == ones.size());
  }
  const Slice slice = slice_at(mapping.header(), 0);
  for (const std::uint64_t cell : ones)
    BOOST_TEST_REQUIRE((slice.body()[cell / 8] >> cell % 8 & 1) == 1);
  // The stream must have reached these cells.
  BOOST_TEST(emptied > 20u);
  BOOST_TEST(high_starts > 20u);
  BOOST_TEST(high_cells > 50u);
}

BOOST_AUTO_TEST_CASE(cells_of_every_width_lie_beyond_2_to_32_as_well) {
  for (const char* text :
       {"sbf(memory=1200MB, slices=1, max=3, k=4, p=9)",
        "sbf(memory=1800MB, slices=1, max=7, k=4, p=9)",
        "sbf(memory=2400MB, slices=1, max=15, k=4, p=9)", "bloom(memory=600MB, slices=1, k=4)",
        "bsbf(memory=1200MB, slices=1, k=2)", "bsbfsd(memory=1200MB, slices=1, k=2)",
        "rlbsbf(memory=1200MB, slices=1, k=2)", "rsbf(memory=1200MB, slices=1, k=2)",
        "rsbf(memory=1200MB, slices=1, k=2, variant=measured)"}) {
    const Parameters p = parameters_of(text);
    Mapping mapping(p);
    if (is_missing(mapping)) return;
    for (std::uint64_t number = 0; number < 500; ++number) {
      BOOST_TEST_REQUIRE(!insert(mapping.header(), key(number)), text);
      BOOST_TEST_REQUIRE(test(mapping.header(), key(number)), text);
    }
    // At most nine of five thousand million cells per element: none is forgotten.
    for (std::uint64_t number = 0; number < 500; ++number)
      BOOST_TEST_REQUIRE(test(mapping.header(), key(number)), text);
    for (std::uint64_t number = 0; number < 500; ++number)
      BOOST_TEST_REQUIRE(!test(mapping.header(), key(1000 + number)), text);
  }
}

BOOST_AUTO_TEST_CASE(rows_of_a_quotient_filter_lie_beyond_2_to_32_as_well) {
  const Parameters p =
      parameters_of("sqf(memory=5GB, r=1, r_prime=0, slices=1, p=35, fingerprint=integer)");
  BOOST_TEST(p.integer(quotient::kSliceRows) == std::uint64_t{1} << 34);
  Mapping mapping(p);
  if (is_missing(mapping)) return;
  for (std::uint64_t number = 1; number < std::uint64_t{1} << 35; number = number * 3 + 1) {
    BOOST_TEST(!insert(mapping.header(), Element{number}));
    BOOST_TEST(test(mapping.header(), Element{number}));
    BOOST_TEST(!test(mapping.header(), Element{number ^ 1}));
  }
}

BOOST_AUTO_TEST_SUITE_END()
