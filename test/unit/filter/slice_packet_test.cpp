// A slice that is sent elsewhere: a sealed packet opens, nothing else does.
#include "core/filter/value_form.hpp"

#include <boost/test/unit_test.hpp>
#include <cstring>
#include <string>
#include <vector>

#include "unit/support/filters.hpp"
#include "unit/support/rates.hpp"

using namespace streamfilter;
using namespace unit;

BOOST_AUTO_TEST_SUITE(slice_packet_test)

namespace {

using Bytes = std::vector<unsigned char>;

Bytes packet_of(Filter& filter, std::uint32_t index) {
  const Parameters& parameters = filter.parameters();
  Bytes block(sizeof(Header) + parameters.slice_bytes), bytes(packet_size(parameters));
  auto* header = reinterpret_cast<Header*>(block.data());
  format_header(header, parameters);
  std::memcpy(static_cast<void*>(header + 1), filter.slice(index).state, parameters.slice_bytes);
  write_packet(header, index, bytes.data());
  return bytes;
}

// Makes the checksum match again after a change.
void seal_again(Bytes& bytes, std::uint32_t index) {
  std::memcpy(bytes.data(), &index, sizeof index);
  const std::size_t end = bytes.size() - kChecksumBytes;
  const std::uint64_t sum = hash_bytes(bytes.data(), end, kPacketSeed);
  std::memcpy(bytes.data() + end, &sum, sizeof sum);
}

bool opens(const Bytes& bytes, std::uint32_t& slice) {
  Problem problem;
  Bytes block(sizeof(Header) + bytes.size());
  const bool open = read_packet(bytes.data(), bytes.size(), slice,
                                reinterpret_cast<Header*>(block.data()), problem);
  BOOST_TEST(open == (problem.error == Error::none));
  return open;
}

}  // namespace

BOOST_AUTO_TEST_CASE(what_was_sealed_opens) {
  for (const char* text :
       {"sbf(memory=2003, max=7, slices=3)", "bloom(memory=2003, k=5, slices=4, slicing=vertical)",
        "lru(memory=2003, slices=2)"}) {
    Filter filter = filled(text, 200);
    for (std::uint32_t i = 0; i < filter.parameters().slices; ++i) {
      std::uint32_t slice = ~0u;
      BOOST_TEST_REQUIRE(opens(packet_of(filter, i), slice));
      BOOST_TEST(slice == i);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_changed_or_cut_packet_is_refused) {
  Filter filter = filled("sbf(memory=2003, max=7, slices=3)", 200);
  const Bytes whole = packet_of(filter, 1);
  std::uint32_t slice;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    Bytes changed = whole;
    changed[at] ^= 0x40;
    BOOST_TEST_REQUIRE(!opens(changed, slice), at);
    BOOST_TEST_REQUIRE(!opens(Bytes(whole.begin(), whole.begin() + static_cast<long>(at)), slice),
                       at);
  }
}

BOOST_AUTO_TEST_CASE(a_sealed_lie_is_refused) {
  Filter filter = filled("bloom(memory=2003, k=5, slices=4, slicing=vertical)", 200);
  const Bytes whole = packet_of(filter, 1);
  std::uint32_t slice;
  Bytes other = whole;
  seal_again(other, 4);
  BOOST_TEST(!opens(other, slice));
  other = whole;
  other.push_back(0);
  seal_again(other, 1);
  BOOST_TEST(!opens(other, slice));
  // Bits that no key has set would make the whole filter look damaged later.
  other = whole;
  const std::size_t state = other.size() - kChecksumBytes - filter.parameters().slice_bytes;
  std::memset(&other[state + offsetof(SliceState, insertions)], 0, 16);
  seal_again(other, 1);
  BOOST_TEST(!opens(other, slice));
}

BOOST_AUTO_TEST_SUITE_END()
