// The compact forms of values. What is read is valid, and what is written of it is read as the
// same.
#include "core/filter/sparse_form.hpp"

#include "fuzz/filters.hpp"

namespace fuzz {
namespace {

bool read_words_form(const std::uint8_t* body, std::size_t size, Block& block, Problem& problem) {
  CompactReader reader;
  if (!reader.open(body, size, problem)) return false;
  if (reader.parameters().memory > kMostMemory) return problem.set(Error::too_large, "too large");
  block = Block(block_bytes(reader.parameters()));
  format(block.header(), reader.parameters());
  return read_compact(reader, block.header(), problem);
}

bool read_compact_form(const std::uint8_t* body, std::size_t size, Block& block, Problem& problem) {
  if (has_words(body, size)) return read_words_form(body, size, block, problem);
  SparseReader reader;
  if (!reader.open(body, size, problem)) return false;
  if (reader.parameters().memory > kMostMemory) return problem.set(Error::too_large, "too large");
  block = Block(block_bytes(reader.parameters()));
  return reader.read(block.header(), problem) &&
         check(block.bytes.data(), block.bytes.size(), problem);
}

}  // namespace
}  // namespace fuzz

void fuzz::compact(const std::uint8_t* data, std::size_t size) {
  std::vector<std::uint8_t> body(data, data + size);
  if (body.size() > sizeof(std::uint32_t) && !has_words(data, size)) {  // with the right checksum
    const std::size_t length = size - sizeof(std::uint32_t);
    const auto sum = static_cast<std::uint32_t>(hash_bytes(data, length, kCompactMagic));
    std::memcpy(body.data() + length, &sum, sizeof sum);
  }
  Block block(0), again(0);
  Problem problem;
  if (!read_compact_form(body.data(), size, block, problem)) {
    FUZZ_REQUIRE(problem.error == Error::corrupt || problem.error == Error::newer_version ||
                 problem.error == Error::too_large);
    return;
  }
  FUZZ_REQUIRE(is_valid(block));
  if (const std::vector<unsigned char> bytes = compact_of(block); !bytes.empty())
    FUZZ_REQUIRE(
        read_compact_form(bytes.data() + kHostWord, bytes.size() - kHostWord, again, problem) &&
        again.bytes == block.bytes);
  use(block);
}
