#include "core/filter/slice_packet.hpp"

#include "core/base/layer_wall.hpp"

namespace streamfilter {
namespace {

constexpr std::uint32_t kPacketMagic = 0x4c534653;  // "SFSL"

std::uint64_t sum_of(const Header* header, std::uint64_t length, std::uint32_t slice) noexcept {
  return hash_bytes(header, length - sizeof(PacketHead),
                    kPacketMagic + (std::uint64_t{slice} << 32));
}

bool is_empty_but_filled(const Parameters& parameters, ConstSlice slice) noexcept {
  return slice.state->insertions == 0 &&
         find_ops(parameters.kind)->estimate(parameters, slice).fill > 0;
}

const Header* damaged(const char* detail, Problem& problem) noexcept {
  problem.set(Error::corrupt, "these bytes are not the state of a slice");
  problem.add_detail("%s", detail);
  problem.add_hint("Give what streamfilter_export has returned.");
  return nullptr;
}

}  // namespace

std::uint64_t packet_size(const Parameters& parameters) noexcept {
  return sizeof(PacketHead) + sizeof(Header) + parameters.slice_bytes;
}

// Arrivals are counted in the first place of a key; a slice that has only others must not look
// like an empty one.
PacketHead seal_packet(Header* header, std::uint32_t slice) noexcept {
  header->host = 0;
  const Slice state = slice_at(header, 0);
  if (is_empty_but_filled(header->parameters, as_const(state)))
    state.state->insertions = state.state->inserted_new = 1;
  return {kPacketMagic, slice, sum_of(header, packet_size(header->parameters), slice)};
}

const Header* open_packet(const void* bytes, std::size_t length, std::uint32_t& slice,
                          Problem& problem) noexcept {
  if (length < sizeof(PacketHead) + sizeof(Header)) return damaged("They are too few.", problem);
  const auto* head = static_cast<const PacketHead*>(bytes);
  const auto* header = reinterpret_cast<const Header*>(head + 1);
  const Parameters& parameters = header->parameters;
  if (head->magic != kPacketMagic)
    return damaged("They do not begin as such a state does.", problem);
  if (head->sum != sum_of(header, length, head->slice))
    return damaged("Their checksum is wrong.", problem);
  if (!check_header(*header, problem)) return nullptr;
  if (length != packet_size(parameters) || head->slice >= parameters.slices)
    return damaged("Their number does not fit their header.", problem);
  const ConstSlice state = slice_at(header, 0);
  if (!check_slice(parameters, state, head->slice, problem)) return nullptr;
  if (is_empty_but_filled(parameters, state))
    return damaged("They hold keys without a count.", problem);
  slice = head->slice;
  return header;
}

}  // namespace streamfilter
