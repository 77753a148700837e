// Ascending places as bits: how much further each is than the one before, by a Golomb-Rice code (so
// many ones, a zero, then `rice` bits), and behind it a payload of a few bits. The lowest bit of a
// byte comes first. And numbers of variable length: 7 bits each byte, the lower first.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace streamfilter {

// A gap with its payload is read from so many bits, unless more of them are ones at its beginning.
constexpr unsigned kPeekedBits = 57, kMostRice = 22, kMostPayload = 15,
                   kMostOnes = kPeekedBits - 1 - kMostRice - kMostPayload;

inline unsigned rice_parameter(std::uint64_t places, std::uint64_t count) noexcept {
  const std::uint64_t gap = count > 0 ? places / count : 0;
  return gap > 1 ? std::min(static_cast<unsigned>(std::bit_width(gap)) - 1, kMostRice) : 0;
}

// Counts all bytes, and writes those that there is room for.
class RiceWriter {
 public:
  RiceWriter(unsigned char* bytes, std::size_t room) noexcept : bytes_(bytes), room_(room) {}

  void put_byte(unsigned byte) noexcept {
    if (size_ < room_) bytes_[size_] = static_cast<unsigned char>(byte);
    ++size_;
  }
  void put_bytes(const void* bytes, std::size_t count) noexcept {
    for (std::size_t i = 0; i < count; ++i) put_byte(static_cast<const unsigned char*>(bytes)[i]);
  }
  void put_number(std::uint64_t number) noexcept {
    for (; number >= 128; number >>= 7) put_byte((number & 127) | 128);
    put_byte(static_cast<unsigned>(number));
  }
  void put_gap(std::uint64_t gap, unsigned rice, std::uint64_t payload,
               unsigned payload_bits) noexcept {
    std::uint64_t ones = gap >> rice;
    for (; ones > kMostOnes; ones -= kMostOnes) put_bits((1u << kMostOnes) - 1, kMostOnes);
    const unsigned end = static_cast<unsigned>(ones) + 1 + rice;
    std::uint64_t bits = (std::uint64_t{1} << ones) - 1;
    bits |= (gap & ((std::uint64_t{1} << rice) - 1)) << (ones + 1);
    put_bits(bits | payload << end, end + payload_bits);
  }
  // Fills the last byte, and returns the number of all.
  std::size_t finish() noexcept {
    if (holds_ > 0) put_bits(0, 8 - holds_);
    return size_;
  }

 private:
  // Up to kPeekedBits.
  void put_bits(std::uint64_t bits, unsigned count) noexcept {
    held_ |= bits << holds_;
    holds_ += count;
    if (size_ + sizeof held_ > room_) return put_whole_bytes();
    std::memcpy(bytes_ + size_, &held_, sizeof held_);
    size_ += holds_ / 8;
    held_ = holds_ < 64 ? held_ >> holds_ / 8 * 8 : 0;
    holds_ %= 8;
  }
  void put_whole_bytes() noexcept {
    for (; holds_ >= 8; holds_ -= 8, held_ >>= 8) put_byte(static_cast<unsigned>(held_ & 255));
  }

  unsigned char* bytes_;
  std::size_t room_, size_ = 0;
  std::uint64_t held_ = 0;
  unsigned holds_ = 0;
};

// Bits to read from. More than 8 readable bytes lie before the first.
struct RiceBits {
  const unsigned char* at;
  const unsigned char* end;

  std::uint64_t size() const noexcept { return static_cast<std::uint64_t>(end - at) * 8; }

  // At least kPeekedBits from one of them on; behind the end there are zeros.
  std::uint64_t peek(std::uint64_t bit) const noexcept {
    constexpr std::ptrdiff_t kBytes = sizeof(std::uint64_t);
    const unsigned char* from = at + bit / 8;
    const std::ptrdiff_t left = end - from;
    std::uint64_t bits;
    if (left <= 0) return 0;
    std::memcpy(&bits, left < kBytes ? end - kBytes : from, sizeof bits);
    return (left < kBytes ? bits >> 8 * (kBytes - left) : bits) >> bit % 8;
  }

  // Reads the gap at `bit`, and leaves its payload in `payload`, with what follows.
  std::uint64_t take_gap(std::uint64_t& bit, unsigned rice, std::uint64_t& payload) const noexcept {
    std::uint64_t ones = 0, bits;
    unsigned run;
    for (; (run = static_cast<unsigned>(std::countr_one(bits = peek(bit)))) > kMostOnes;
         bit += kMostOnes)
      ones += kMostOnes;
    bits >>= run + 1;
    bit += run + 1 + rice;
    payload = bits >> rice;
    return (ones + run) << rice | (bits & ((std::uint64_t{1} << rice) - 1));
  }

  // Is less than a byte left, and no bit of that set?
  bool is_end(std::uint64_t bit) const noexcept {
    return bit <= size() && size() - bit < 8 && peek(bit) == 0;
  }
};

// Reads a number of variable length, in the shortest of its forms.
inline bool read_number(const unsigned char*& at, const unsigned char* end,
                        std::uint64_t& number) noexcept {
  number = 0;
  for (unsigned shift = 0; at < end && shift < 64; shift += 7) {
    const unsigned byte = *at++;
    if (shift == 63 && byte > 1) return false;
    number |= std::uint64_t{byte & 127} << shift;
    if (byte < 128) return byte > 0 || shift == 0;
  }
  return false;
}

}  // namespace streamfilter
