#include "core/base/base64.hpp"

#include <array>
#include <cstdint>

#include "core/base/layer_wall.hpp"

namespace streamfilter {
namespace {

constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::uint8_t kNoDigit = 64;  // a bit that no digit has

constexpr std::array<std::uint8_t, 256> digit_values() noexcept {
  std::array<std::uint8_t, 256> values{};
  for (std::uint8_t& value : values) value = kNoDigit;
  for (std::uint8_t i = 0; i < 64; ++i) values[static_cast<unsigned char>(kDigits[i])] = i;
  return values;
}
constexpr std::array<std::uint8_t, 256> kValues = digit_values();

// Four digits as 24 bits; bit 31 is set if one of them is invalid.
std::uint32_t group(const char* text, unsigned digits) noexcept {
  std::uint32_t bits = 0, bad = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const std::uint32_t value = i < digits ? kValues[static_cast<unsigned char>(text[i])] : 0;
    bad |= value & kNoDigit;
    bits = bits << 6 | (value & 63);
  }
  return bits | bad << 25;
}

}  // namespace

void encode_base64(const void* bytes, std::size_t count, char* text) noexcept {
  const unsigned char* at = static_cast<const unsigned char*>(bytes);
  for (; count >= 3; count -= 3, at += 3, text += 4) {
    const std::uint32_t bits = std::uint32_t{at[0]} << 16 | std::uint32_t{at[1]} << 8 | at[2];
    text[0] = kDigits[bits >> 18];
    text[1] = kDigits[bits >> 12 & 63];
    text[2] = kDigits[bits >> 6 & 63];
    text[3] = kDigits[bits & 63];
  }
  if (count == 0) return;
  const std::uint32_t bits =
      std::uint32_t{at[0]} << 16 | (count == 2 ? std::uint32_t{at[1]} << 8 : 0);
  text[0] = kDigits[bits >> 18];
  text[1] = kDigits[bits >> 12 & 63];
  text[2] = count == 2 ? kDigits[bits >> 6 & 63] : '=';
  text[3] = '=';
}

bool decode_base64(const char* text, void* bytes, std::size_t count) noexcept {
  unsigned char* at = static_cast<unsigned char*>(bytes);
  std::uint32_t all = 0;
  for (; count >= 3; count -= 3, at += 3, text += 4) {
    const std::uint32_t bits = group(text, 4);
    at[0] = static_cast<unsigned char>(bits >> 16);
    at[1] = static_cast<unsigned char>(bits >> 8);
    at[2] = static_cast<unsigned char>(bits);
    all |= bits;
  }
  if (count > 0) {
    if (text[3] != '=' || (count == 1 && text[2] != '=')) return false;
    const std::uint32_t bits = group(text, static_cast<unsigned>(count) + 1);
    at[0] = static_cast<unsigned char>(bits >> 16);
    if (count == 2) at[1] = static_cast<unsigned char>(bits >> 8);
    all |= bits;
  }
  return all >> 31 == 0;
}

}  // namespace streamfilter
