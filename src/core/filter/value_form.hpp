// A filter on its way from one place to another: the text and the binary form of the SQL type
// streamfilter.
//
// Text:   kind(option=value, …)           an empty filter
//         kind(option=value, …):1:        the same, with options that contradict each other
//         kind(option=value, …):1:body    a filled one: the version of the format, and base64 of
//                                         everything behind the header and 8 bytes of checksum
// Binary: the packed header with 0 in the host's word, the slices, then 8 bytes of checksum
//
// Bodies are worked off in steps, between which a host can look for interrupts.
#pragma once

#include "core/filter/packed_header.hpp"

namespace streamfilter {

constexpr std::size_t kChecksumBytes = sizeof(std::uint64_t);

// ---- text

// How the body lies in text: first as many bytes as make whole groups of four characters; then the
// few that are left, together with the checksum.
struct BodyText {
  std::size_t whole, rest;  // bytes of the two parts

  explicit BodyText(const Parameters& parameters) noexcept
      : whole(slices_bytes(parameters) / 3 * 3), rest(slices_bytes(parameters) - whole) {}

  std::size_t length() const noexcept;
};

// Does the definition alone give this slice back? `scratch` is for working: slice_bytes, 8-byte
// aligned. A filter is its definition if all its slices are.
bool is_pristine(const Header* header, std::uint32_t index, void* scratch) noexcept;

// Longest text in front of a body, with a final zero.
constexpr std::size_t kMaxTextStart = kMaxDefinitionText + 16;

// The definition; also the version, for a filled filter and for one that would not be read without.
// Returns the length.
std::size_t write_text_start(const Header* header, bool is_filled, char* buffer,
                             std::size_t size) noexcept;

class BodyWriter {
 public:
  // `buffer` has room for BodyText::length() characters.
  BodyWriter(const Header* header, char* buffer) noexcept : header_(header), text_(buffer) {}

  // Writes another piece; false if this was the last one.
  bool step() noexcept;

 private:
  const Header* header_;
  char* text_;
  std::size_t done_ = 0;
};

// How to read a definition without a version and a body. request: it must keep what it promises.
// restored: from a dump, so that a version has accepted it; it is taken as it is.
enum class Reading : std::uint8_t { request, restored };

// What a text says before the body.
struct TextStart {
  Definition definition;  // complete
  bool has_version = false;
  const char* body = nullptr;  // nullptr: there is none
  std::size_t body_length = 0;
};

// Errors: those of definitions; syntax, corrupt, newer_version.
bool read_text_start(const char* text, std::size_t length, Reading reading, TextStart& start,
                     Problem& problem) noexcept;

class BodyReader {
 public:
  // The header is there (format_header); `body` is what read_text_start has found.
  BodyReader(Header* header, const char* body) noexcept : header_(header), text_(body) {}

  // Reads another piece; false if this was the last one.
  bool step() noexcept;

  // After the last step: is this a filter? Errors: corrupt.
  bool finish(Problem& problem) const noexcept;

 private:
  Header* header_;
  const char* text_;
  std::size_t done_ = 0;
  std::uint64_t sum_ = 0;
  bool is_base64_ = true;
};

// ---- binary

inline std::uint64_t binary_size(const Parameters& parameters) noexcept {
  return stored_bytes(parameters) + kChecksumBytes;
}

// Writes binary_size() bytes.
void write_binary(const Header* header, void* bytes) noexcept;

// The parameters, from the first of `length` bytes, and the size of the header that says them.
// Errors: corrupt, newer_version.
bool read_binary_header(const void* bytes, std::size_t length, Parameters& parameters,
                        std::size_t& size, Problem& problem) noexcept;

// Copies `length` bytes in binary form into a block of as many as their parameters say, and checks
// them. Errors: corrupt, newer_version.
bool read_binary(const void* bytes, std::size_t length, Header* block, Problem& problem) noexcept;

// The state of one slice of a filter on its way to the same slice of another one: the packed header
// of the filter with the number of the slice in the host's word, the slice, 8 bytes of checksum.

constexpr std::uint64_t kPacketSeed = 0x4c534653;  // of the checksum

// Bytes of a packet of one slice of such a filter.
std::uint64_t packet_size(const Parameters& parameters) noexcept;

// Writes packet_size() bytes for slice `slice`, which lies behind its header.
void write_packet(Header* header, std::uint32_t slice, void* bytes) noexcept;

// Puts header and slice of such a packet into a block, which has sizeof(Header) more than `length`
// bytes. Safe on any bytes. Errors: corrupt, newer_version.
bool read_packet(const void* bytes, std::size_t length, std::uint32_t& slice, Header* block,
                 Problem& problem) noexcept;

}  // namespace streamfilter
