// The state of one slice, as streamfilter_import takes it: a definition, up to the first zero byte,
// then a packet, whose magic number and checksum are put right. What opens is merged into an empty
// filter.
#include "core/filter/value_form.hpp"

#include <algorithm>

#include "fuzz/filters.hpp"

void fuzz::packet(const std::uint8_t* data, std::size_t size) {
  const auto* text = reinterpret_cast<const char*>(data);
  const std::size_t length = strnlen(text, size);
  Parameters parameters;
  if (!read_definition(text, length, parameters) || parameters.memory > kMostMemory) return;
  Input input(data, size);
  input.skip(length + 1);
  const auto slice = input.take<std::uint32_t>();
  std::vector<unsigned char> bytes(packet_size(parameters));
  auto* header = reinterpret_cast<Header*>(bytes.data() + sizeof(PacketHead));
  format_header(header, parameters);
  // Of an empty slice; then its bytes come, and the checksum as a sender would make it.
  PacketHead head = seal_packet(header, slice);
  std::memcpy(slice_at(header, 0).state, input.rest(),
              std::min<std::size_t>(input.left(), parameters.slice_bytes));
  head.sum = hash_bytes(header, bytes.size() - sizeof head,
                        head.magic + (static_cast<std::uint64_t>(slice) << 32));
  std::memcpy(bytes.data(), &head, sizeof head);
  std::uint32_t opened;
  Problem problem;
  const Header* from = open_packet(bytes.data(), bytes.size(), opened, problem);
  if (from == nullptr || find_ops(parameters.kind)->merge == nullptr) return;
  Block into(parameters.memory);
  format(into.header(), parameters);
  FUZZ_REQUIRE(opened == slice);
  merge_slice(into.header(), slice_at(from, 0), slice);
  FUZZ_REQUIRE(is_valid(into));
  use(into);
}
