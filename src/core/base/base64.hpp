// Base64 (RFC 4648, section 4) without line breaks.
#pragma once

#include <cstddef>

namespace streamfilter {

constexpr std::size_t base64_length(std::size_t bytes) noexcept { return (bytes + 2) / 3 * 4; }

// Writes base64_length(count) characters and no final zero.
void encode_base64(const void* bytes, std::size_t count, char* text) noexcept;

// Reads base64_length(count) characters. False if they are not the base64 of `count` bytes.
bool decode_base64(const char* text, void* bytes, std::size_t count) noexcept;

}  // namespace streamfilter
