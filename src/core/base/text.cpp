#include <array>

#include "core/base/hash.hpp"
#include "core/base/text.hpp"

// ---- base64 -------------------------------------------------------------------------------------

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

// ---- decimal numbers ----------------------------------------------------------------------------

namespace {

constexpr int kDigitsOfGroup = 4;           // base 10000
constexpr std::int64_t kMaxWeight = 32767;  // NUMERIC_WEIGHT_MAX
constexpr std::int64_t kMaxScale = 16383;   // NUMERIC_DSCALE_MAX
constexpr std::int64_t kMaxExponent = 1 << 30;

// As isspace() of C.
bool is_any_space(char c) noexcept { return c == ' ' || (c >= '\t' && c <= '\r'); }

struct Text {
  const char* at;
  const char* end;

  bool take(char c) noexcept {
    if (at == end || to_lower(*at) != c) return false;
    ++at;
    return true;
  }

  bool take_word(const char* word) noexcept {
    const char* start = at;
    for (; *word != '\0'; ++word)
      if (!take(*word)) {
        at = start;
        return false;
      }
    return true;
  }

  // Returns their number.
  std::int64_t skip_digits() noexcept {
    const char* start = at;
    while (at < end && is_digit(*at)) ++at;
    return at - start;
  }
};

// Digits with a point anywhere among them.
struct Digits {
  const char* start;
  const char* end;
  std::int64_t whole;     // number of digits before the point
  std::int64_t fraction;  // and behind it
};

bool read_digits(Text& text, Digits& digits) noexcept {
  digits.start = text.at;
  digits.whole = text.skip_digits();
  digits.fraction = text.take('.') ? text.skip_digits() : 0;
  digits.end = text.at;
  return digits.whole + digits.fraction > 0;
}

bool read_exponent(Text& text, std::int64_t& exponent) noexcept {
  exponent = 0;
  if (!text.take('e')) return true;
  const bool negative = text.take('-');
  if (!negative) text.take('+');
  const char* start = text.at;
  for (; text.at < text.end && is_digit(*text.at); ++text.at)
    exponent = std::min(exponent * 10 + (*text.at - '0'), kMaxExponent);
  if (negative) exponent = -exponent;
  return text.at > start;
}

bool read_special(Text& text, bool is_signed, bool negative, SpecialDecimal& special) noexcept {
  if (text.take_word("infinity") || text.take_word("inf")) {
    special = negative ? SpecialDecimal::minus_infinity : SpecialDecimal::infinity;
    return true;
  }
  special = SpecialDecimal::nan;
  return !is_signed && text.take_word("nan");
}

// Hashes the digits in groups; `power` is the power of ten of the first digit. First and last digit
// are not zero.
std::uint64_t hash_groups(const char* at, const char* end, std::int64_t power,
                          std::uint64_t seed) noexcept {
  constexpr unsigned kGroups = 256;
  std::uint16_t groups[kGroups];
  unsigned count = 0;
  XXH3_state_t state;
  XXH3_INITSTATE(&state);
  XXH3_64bits_reset_withSeed(&state, seed);
  int left = static_cast<int>(((power % kDigitsOfGroup) + kDigitsOfGroup) % kDigitsOfGroup) + 1;
  unsigned group = 0;
  const auto close = [&] {
    groups[count++] = static_cast<std::uint16_t>(group);
    group = 0;
    left = kDigitsOfGroup;
    if (count < kGroups) return;
    XXH3_64bits_update(&state, groups, sizeof groups);
    count = 0;
  };
  for (; at < end; ++at) {
    if (*at == '.') continue;
    group = group * 10 + static_cast<unsigned>(*at - '0');
    if (--left == 0) close();
  }
  if (left < kDigitsOfGroup) {
    for (; left > 0; --left) group *= 10;
    close();
  }
  XXH3_64bits_update(&state, groups, count * sizeof *groups);
  return XXH3_64bits_digest(&state);
}

bool hash_digits(const Digits& digits, std::int64_t exponent, bool negative, std::uint64_t seed,
                 std::uint64_t& hash) noexcept {
  if (digits.fraction - exponent > kMaxScale) return false;
  const auto counts = [](char c) { return c != '0' && c != '.'; };
  const char* first = std::find_if(digits.start, digits.end, counts);
  if (first == digits.end) {
    hash = decimal_hash(SpecialDecimal::zero, seed);
    return true;
  }
  const char* end = digits.end;
  while (!counts(end[-1])) --end;
  const std::int64_t place = first - digits.start;  // a point before that counts as one character
  const std::int64_t power = digits.whole - place - (place < digits.whole ? 1 : 0) + exponent;
  const std::int64_t weight = (power >= 0 ? power : power - (kDigitsOfGroup - 1)) / kDigitsOfGroup;
  if (weight > kMaxWeight) return false;
  hash =
      decimal_hash(hash_groups(first, end, power, seed), static_cast<int>(weight), negative, seed);
  return true;
}

}  // namespace

bool hash_decimal_text(const char* text, std::size_t length, std::uint64_t seed,
                       std::uint64_t& hash, Problem& problem) noexcept {
  Text in{text, text + length};
  const auto bad_syntax = [&] {
    return problem.set(Error::syntax, "invalid input syntax for type numeric: \"%s\"",
                       Excerpt(text, length).text());
  };
  while (in.at < in.end && is_any_space(*in.at)) ++in.at;
  while (in.at < in.end && is_any_space(in.end[-1])) --in.end;
  const bool negative = in.take('-');
  const bool is_signed = negative || in.take('+');

  SpecialDecimal special;
  if (read_special(in, is_signed, negative, special)) {
    if (in.at != in.end) return bad_syntax();
    hash = decimal_hash(special, seed);
    return true;
  }
  Digits digits;
  std::int64_t exponent;
  if (!read_digits(in, digits) || !read_exponent(in, exponent) || in.at != in.end)
    return bad_syntax();
  if (!hash_digits(digits, exponent, negative, seed, hash))
    return problem.set(Error::out_of_range, "value overflows numeric format");
  return true;
}

}  // namespace streamfilter
