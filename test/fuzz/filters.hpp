// Filters for fuzz targets: from a definition, in exactly as many bytes as they say, and used in
// every way there is.
#pragma once

#include <string>
#include <vector>

#include "core/filter/filter.hpp"
#include "fuzz/target.hpp"

namespace fuzz {

using namespace streamfilter;

// More than this is not allocated.
constexpr std::uint64_t kMostMemory = 64 * 1024;

// Reads and completes a definition.
bool read_definition(const char* text, std::size_t length, Parameters& parameters);

// The block of a filter. operator new gives it the alignment it needs.
struct Block {
  explicit Block(std::uint64_t size) : bytes(size) {}
  Header* header() { return reinterpret_cast<Header*>(bytes.data()); }
  const Header* header() const { return reinterpret_cast<const Header*>(bytes.data()); }

  std::vector<unsigned char> bytes;
};

bool is_valid(const Block& block);

// The compact form, with the host's word. Empty: it has none.
std::vector<unsigned char> compact_of(const Block& block);

// What an outsider can put into a filter: the ends of every range among it.
Element element_of(std::uint64_t seed);

// Inserts, tests, promotes, forgets, merges and asks. Whatever `check` has let in, it lets in
// afterwards.
void use(Block& block);

// What can be asked of parameters alone.
void ask(const Parameters& parameters);

}  // namespace fuzz
