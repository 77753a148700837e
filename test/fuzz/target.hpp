// What every fuzz target is: a function of some bytes, which must end, keep what its comment
// promises and give the sanitizers nothing to say. One program per target runs it under libFuzzer;
// the unit tests run all of them on what is kept in test/fuzz/corpus.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace fuzz {

using Target = void (*)(const std::uint8_t* data, std::size_t size);

void block(const std::uint8_t* data, std::size_t size);
void header(const std::uint8_t* data, std::size_t size);
void packet(const std::uint8_t* data, std::size_t size);
void saved(const std::uint8_t* data, std::size_t size);
void definition(const std::uint8_t* data, std::size_t size);
void value(const std::uint8_t* data, std::size_t size);
void compact(const std::uint8_t* data, std::size_t size);
void wire(const std::uint8_t* data, std::size_t size);
void advice(const std::uint8_t* data, std::size_t size);

struct NamedTarget {
  const char* name;  // of its folder in the corpus, too
  Target run;
};
inline constexpr NamedTarget kTargets[] = {
    {"block", block}, {"header", header},         {"packet", packet},
    {"saved", saved}, {"definition", definition}, {"value", value},
    {"wire", wire},   {"advice", advice},         {"compact", compact},
};

// A promise that is broken ends the program, as a sanitizer does: libFuzzer keeps the input.
#define FUZZ_REQUIRE(condition)                                                      \
  do {                                                                               \
    if (!(condition)) {                                                              \
      std::fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                  \
    }                                                                                \
  } while (false)

// Takes an input apart, from the front; zeros follow its end.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : at_(data), end_(data + size) {}

  template <typename Number>
  Number take() {
    Number number{};
    const std::size_t count = left() < sizeof number ? left() : sizeof number;
    std::memcpy(&number, at_, count);
    at_ += count;
    return number;
  }

  const std::uint8_t* rest() const { return at_; }
  std::size_t left() const { return static_cast<std::size_t>(end_ - at_); }
  void skip(std::size_t count) { at_ += count < left() ? count : left(); }

 private:
  const std::uint8_t* at_;
  const std::uint8_t* end_;
};

}  // namespace fuzz
