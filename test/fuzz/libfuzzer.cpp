// One target as a program of its own; the build says which: -DFUZZ_TARGET=block.
#include <algorithm>
#include <random>

#include "fuzz/target.hpp"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::FUZZ_TARGET(data, size);
  return 0;
}

// Where an input begins with a definition and a zero byte, mostly what follows is changed: few
// changes of the text leave a definition.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned seed) {
  std::minstd_rand random(seed);
  const std::uint8_t* end = std::find(data, data + size, 0);
  const auto text = static_cast<std::size_t>(end - data) + 1;
  if (text >= size || text < 2 || data[text - 2] != ')' || random() % 8 == 0)
    return LLVMFuzzerMutate(data, size, most);
  return text + LLVMFuzzerMutate(data + text, size - text, most - text);
}
