// The text of a definition. It is refused with a message that holds whole characters only, or it
// makes a filter, and its text reads back as the same.
#include "fuzz/filters.hpp"
#include "fuzz/utf8.hpp"

void fuzz::definition(const std::uint8_t* data, std::size_t size) {
  const auto* text = reinterpret_cast<const char*>(data);
  Definition definition;
  Problem problem;
  std::size_t used = 0;
  if (!parse_definition(text, size, definition, used, problem) || !complete(definition, problem)) {
    FUZZ_REQUIRE(problem && problem.message[0] != '\0');
    if (is_utf8(text, size))
      for (const char* part : {problem.message, problem.detail, problem.hint})
        FUZZ_REQUIRE(is_utf8(part, std::strlen(part)));
    return;
  }
  FUZZ_REQUIRE(used <= size);
  ask(definition.parameters);
  Header header;
  format_header(&header, definition.parameters);
  FUZZ_REQUIRE(check_header(header, problem));
  if (definition.parameters.memory > kMostMemory) return;
  Block block(block_bytes(definition.parameters));
  format(block.header(), definition.parameters);
  FUZZ_REQUIRE(is_valid(block));
  use(block);
}
