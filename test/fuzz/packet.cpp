// The state of one slice, as streamfilter_import takes it: a definition, up to the first zero byte,
// then a packet, whose header and checksum are put right. What opens is merged into an empty
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
  Block filter(sizeof(Header) + parameters.slice_bytes), from(0);
  format_header(filter.header(), parameters);
  // Of an empty slice; then its bytes come, and the checksum as a sender would make it.
  std::vector<unsigned char> bytes(packet_size(parameters));
  write_packet(filter.header(), slice, bytes.data());
  const std::size_t end = bytes.size() - kChecksumBytes;
  std::memcpy(bytes.data() + end - parameters.slice_bytes, input.rest(),
              std::min<std::size_t>(input.left(), parameters.slice_bytes));
  const std::uint64_t sum = hash_bytes(bytes.data(), end, kPacketSeed);
  std::memcpy(bytes.data() + end, &sum, sizeof sum);
  from = Block(sizeof(Header) + bytes.size());
  std::uint32_t opened;
  Problem problem;
  if (!read_packet(bytes.data(), bytes.size(), opened, from.header(), problem) ||
      find_ops(parameters.kind)->merge == nullptr)
    return;
  Block into(block_bytes(parameters));
  format(into.header(), parameters);
  FUZZ_REQUIRE(opened == slice);
  merge_slice(into.header(), slice_at(parameters, from.header() + 1, 0), slice);
  FUZZ_REQUIRE(is_valid(into));
  use(into);
}
