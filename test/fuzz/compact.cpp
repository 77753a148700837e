// The compact form of a value of kind ell. What is read is valid, and what is written of it is read
// as the same.
#include "core/filter/compact_form.hpp"

#include "fuzz/filters.hpp"

namespace fuzz {
namespace {

bool read_compact_form(const std::uint8_t* body, std::size_t size, Block& block, Problem& problem) {
  CompactReader reader;
  if (!reader.open(body, size, problem)) return false;
  if (reader.parameters().memory > kMostMemory) return problem.set(Error::too_large, "too large");
  block = Block(reader.parameters().memory);
  format(block.header(), reader.parameters());
  return read_compact(reader, block.header(), problem);
}

// With the host's word.
std::vector<unsigned char> compact_of(const Block& block, std::uint32_t count) {
  const Parameters& p = block.header()->parameters;
  std::vector<Word> words(count);
  std::vector<std::uint64_t> insertions(p.slices);
  list_words(block.header(), words.data());
  list_insertions(block.header(), insertions.data());
  const std::size_t size = write_compact(p, words.data(), count, insertions.data(), nullptr, 0);
  FUZZ_REQUIRE(size <= most_compact(p, count));
  std::vector<unsigned char> bytes(size);
  write_compact(p, words.data(), count, insertions.data(), bytes.data(), size);
  return bytes;
}

}  // namespace
}  // namespace fuzz

void fuzz::compact(const std::uint8_t* data, std::size_t size) {
  const std::vector<std::uint8_t> body(data, data + size);
  Block block(0), again(0);
  Problem problem;
  if (!read_compact_form(body.data(), size, block, problem)) {
    FUZZ_REQUIRE(problem.error == Error::corrupt || problem.error == Error::newer_version ||
                 problem.error == Error::too_large);
    return;
  }
  FUZZ_REQUIRE(is_valid(block));
  if (std::uint32_t count; count_words(block.header(), count)) {
    const std::vector<unsigned char> bytes = compact_of(block, count);
    FUZZ_REQUIRE(
        read_compact_form(bytes.data() + kHostWord, bytes.size() - kHostWord, again, problem) &&
        again.bytes == block.bytes);
  }
  use(block);
}
