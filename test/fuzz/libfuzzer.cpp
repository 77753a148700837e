// One target as a program of its own; the build says which: -DFUZZ_TARGET=block.
#include "fuzz/target.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::FUZZ_TARGET(data, size);
  return 0;
}
