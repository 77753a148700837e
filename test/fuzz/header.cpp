// The header of a filter, in memory and packed. What is certain to be refused (magic, version,
// reserved words) is put right first. Parameters that are in range can be derived anew, and what
// that gives is a valid header.
#include "core/filter/packed_header.hpp"
#include "fuzz/filters.hpp"

void fuzz::header(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  Header header{};
  header.magic = kMagic;
  header.version = kFormatVersion;
  header.parameters = input.take<Parameters>();
  Problem problem;
  if (check_header(header, problem)) ask(header.parameters);
  if (!in_range(header.parameters)) return;
  Definition definition = definition_of(header.parameters);
  if (!complete(definition, problem)) {
    FUZZ_REQUIRE(problem && problem.message[0] != '\0');
    return;
  }
  header.parameters = definition.parameters;
  FUZZ_REQUIRE(check_header(header, problem));
  const PackedHeader packed(header.parameters);
  Parameters unpacked;
  std::size_t used;
  FUZZ_REQUIRE(unpack_header(packed.bytes, packed.size, unpacked, used, problem) &&
               used == packed.size &&
               std::memcmp(&unpacked, &header.parameters, sizeof unpacked) == 0);
  ask(header.parameters);
  if (header.parameters.memory > kMostMemory) return;
  Block block(block_bytes(header.parameters));
  format(block.header(), header.parameters);
  FUZZ_REQUIRE(is_valid(block));
  use(block);
}
