// A filter as a value, in text and in binary form, and a decimal number as its key. What is read is
// written as it was.
#include "core/filter/value_form.hpp"

#include <algorithm>
#include <string>

#include "core/base/text.hpp"
#include "fuzz/filters.hpp"
#include "fuzz/utf8.hpp"

namespace fuzz {
namespace {

bool read_text(const std::string& text, Block& block, Problem& problem) {
  TextStart start;
  if (!read_text_start(text.data(), text.size(), Reading::request, start, problem)) return false;
  const Parameters& parameters = start.definition.parameters;
  if (parameters.memory > kMostMemory) return false;
  block = Block(block_bytes(parameters));
  format(block.header(), parameters);
  if (start.body == nullptr) return true;
  BodyReader reader(block.header(), start.body);
  while (reader.step()) {
  }
  return reader.finish(problem);
}

std::string text_of(const Block& block) {
  char start[kMaxTextStart];
  const std::size_t length = write_text_start(block.header(), true, start, sizeof start);
  std::string text(start, length);
  text.resize(length + BodyText(block.header()->parameters).length());
  BodyWriter writer(block.header(), text.data() + length);
  while (writer.step()) {
  }
  return text;
}

void read_any_text(const Input& input) {
  const std::string text(input.rest(), input.rest() + input.left());
  Block block(0);
  Problem problem;
  if (read_text(text, block, problem)) {
    FUZZ_REQUIRE(is_valid(block));
    use(block);
  } else if (is_utf8(text.data(), text.size())) {
    for (const char* part : {problem.message, problem.detail, problem.hint})
      FUZZ_REQUIRE(is_utf8(part, std::strlen(part)));
  }
}

void read_any_binary(const Input& input) {
  const std::vector<std::uint8_t> bytes(input.rest(), input.rest() + input.left());
  Parameters parameters;
  std::size_t start;
  Problem problem;
  if (!read_binary_header(bytes.data(), bytes.size(), parameters, start, problem) ||
      parameters.memory > kMostMemory)
    return;
  Block block(block_bytes(parameters));
  if (!read_binary(bytes.data(), bytes.size(), block.header(), problem)) return;
  FUZZ_REQUIRE(is_valid(block));
  use(block);
}

// A place and a change, a definition up to the first zero byte, the bytes of its slices.
void write_and_change(Input input) {
  const auto at = input.take<std::uint16_t>();
  const auto change = input.take<std::uint8_t>();
  const auto* text = reinterpret_cast<const char*>(input.rest());
  const std::size_t length = strnlen(text, input.left());
  Parameters parameters;
  if (!read_definition(text, length, parameters) || parameters.memory > kMostMemory) return;
  Block block(block_bytes(parameters));
  format(block.header(), parameters);
  input.skip(length + 1);
  std::memcpy(block.bytes.data() + sizeof(Header), input.rest(),
              std::min<std::size_t>(input.left(), block.bytes.size() - sizeof(Header)));
  if (!is_valid(block)) return;
  std::string written = text_of(block);
  Block again(0);
  Problem problem;
  FUZZ_REQUIRE(read_text(written, again, problem) && again.bytes == block.bytes);
  written[at % written.size()] = static_cast<char>(change);
  if (read_text(written, again, problem)) FUZZ_REQUIRE(is_valid(again));
}

void read_decimal(const Input& input) {
  const std::string text(input.rest(), input.rest() + input.left());
  std::uint64_t hash;
  Problem problem;
  FUZZ_REQUIRE(hash_decimal_text(text.data(), text.size(), 7, hash, problem) != bool(problem));
}

}  // namespace
}  // namespace fuzz

void fuzz::value(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  switch (input.take<std::uint8_t>() % 4) {
    case 0: read_any_text(input); break;
    case 1: read_any_binary(input); break;
    case 2: write_and_change(input); break;
    default: read_decimal(input);
  }
}
