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
  Bytes bytes(packet_size(parameters));
  auto* header = reinterpret_cast<Header*>(bytes.data() + sizeof(PacketHead));
  std::memcpy(static_cast<void*>(header), filter.header(), sizeof(Header));
  std::memcpy(static_cast<void*>(slice_at(header, 0).state), filter.slice(index).state,
              parameters.slice_bytes);
  const PacketHead head = seal_packet(header, index);
  std::memcpy(bytes.data(), &head, sizeof head);
  return bytes;
}

// Makes the head match again after a change behind it.
void seal_again(Bytes& bytes, std::uint32_t index) {
  const auto* header = reinterpret_cast<const Header*>(bytes.data() + sizeof(PacketHead));
  PacketHead head;
  std::memcpy(&head, bytes.data(), sizeof head);
  head.slice = index;
  head.sum =
      hash_bytes(header, bytes.size() - sizeof head, head.magic + (std::uint64_t{index} << 32));
  std::memcpy(bytes.data(), &head, sizeof head);
}

bool opens(const Bytes& bytes, std::uint32_t& slice) {
  Problem problem;
  const bool open = open_packet(bytes.data(), bytes.size(), slice, problem) != nullptr;
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
    // The host's word is not interpreted, but is part of the checksum.
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
  auto* header = reinterpret_cast<Header*>(other.data() + sizeof(PacketHead));
  slice_at(header, 0).state->insertions = slice_at(header, 0).state->inserted_new = 0;
  seal_again(other, 1);
  BOOST_TEST(!opens(other, slice));
}

BOOST_AUTO_TEST_SUITE_END()
