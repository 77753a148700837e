// A filter behind its checksum: a definition, up to the first zero byte, then the bytes of its
// slices. What `check` lets in can be used without harm, and stays what it lets in.
#include <algorithm>

#include "fuzz/filters.hpp"

void fuzz::block(const std::uint8_t* data, std::size_t size) {
  const auto* text = reinterpret_cast<const char*>(data);
  const std::size_t length = strnlen(text, size);
  Parameters parameters;
  if (!read_definition(text, length, parameters) || parameters.memory > kMostMemory) return;
  Block block(block_bytes(parameters));
  format(block.header(), parameters);
  Input input(data, size);
  input.skip(length + 1);
  std::memcpy(block.bytes.data() + sizeof(Header), input.rest(),
              std::min<std::size_t>(input.left(), block.bytes.size() - sizeof(Header)));
  if (is_valid(block)) use(block);
}
