#include <cstdio>

#include "core/filter/value_form.hpp"

namespace streamfilter {
namespace {

constexpr std::size_t kStep = 3 << 20;  // bytes; whole groups of base64

const unsigned char* body_of(const Header* header) noexcept {
  return reinterpret_cast<const unsigned char*>(header + 1);
}
unsigned char* body_of(Header* header) noexcept {
  return reinterpret_cast<unsigned char*>(header + 1);
}

bool check_length(std::size_t length, std::uint64_t expected, const char* unit,
                  Problem& problem) noexcept {
  if (length == expected) return true;
  problem.set(Error::corrupt, "%s streamfilter", length < expected ? "truncated" : "damaged");
  return problem.add_detail("The value has %zu %s instead of %llu.", length, unit, llu(expected));
}

bool bad_syntax(const char* detail, const char* at, const char* end, Problem& problem) noexcept {
  problem.set(Error::syntax, "invalid input syntax for type streamfilter");
  return problem.add_detail("%s at \"%s\".", detail,
                            Excerpt(at, static_cast<std::size_t>(end - at), 30).text());
}

// Reads ":version:" in front of a body.
bool read_version(const char*& at, const char* end, Problem& problem) noexcept {
  if (*at != ':') return bad_syntax("Junk after the closing parenthesis", at, end, problem);
  unsigned version = 0;
  const char* stop = at + 1;
  for (; stop < end && is_digit(*stop) && version < 1000; ++stop)
    version = version * 10 + static_cast<unsigned>(*stop - '0');
  if (stop == at + 1 || stop == end || *stop != ':')
    return bad_syntax("Expected \":\", the version of the format and \":\"", at, end, problem);
  at = stop + 1;
  return check_version(version, problem);
}

}  // namespace

std::size_t BodyText::length() const noexcept {
  return base64_length(whole) + base64_length(rest + kChecksumBytes);
}

bool is_pristine(const Header* header, std::uint32_t index, void* scratch) noexcept {
  const ConstSlice slice = slice_at(header, index);
  if (slice.state->insertions > 0) return false;
  const Slice fresh = {static_cast<SliceState*>(scratch), slice.bytes};
  format_slice(header->parameters, fresh, index);
  return std::memcmp(fresh.state, slice.state, header->parameters.slice_bytes) == 0;
}

std::size_t write_text_start(const Header* header, bool is_filled, char* buffer,
                             std::size_t size) noexcept {
  const std::size_t length = print_definition(header->parameters, buffer, size);
  if (!is_filled && keeps_promise(header->parameters)) return length;
  return length + static_cast<std::size_t>(
                      std::snprintf(buffer + length, size - length, ":%u:", kFormatVersion));
}

bool BodyWriter::step() noexcept {
  const BodyText form(header_->parameters);
  const unsigned char* body = body_of(header_);
  if (done_ < form.whole) {
    const std::size_t count = std::min(kStep, form.whole - done_);
    encode_base64(body + done_, count, text_);
    text_ += base64_length(count);
    done_ += count;
    return true;
  }
  unsigned char rest[2 + kChecksumBytes];
  const std::uint64_t sum = checksum(header_);
  std::memcpy(rest, body + form.whole, form.rest);
  std::memcpy(rest + form.rest, &sum, sizeof sum);
  encode_base64(rest, form.rest + kChecksumBytes, text_);
  return false;
}

bool read_text_start(const char* text, std::size_t length, Reading reading, TextStart& start,
                     Problem& problem) noexcept {
  while (length > 0 && is_space(text[length - 1])) --length;
  std::size_t used;
  if (!parse_definition(text, length, start.definition, used, problem)) return false;
  const Definition asked = start.definition;
  const bool is_request = used == length && reading == Reading::request;
  start.definition.may_break_fpr = !is_request;
  if (!complete(start.definition, problem)) return false;
  if (used == length) return !is_request || check_request(asked, start.definition, problem);
  const char* body = text + used;
  if (!read_version(body, text + length, problem)) return false;
  start.has_version = true;
  start.body_length = static_cast<std::size_t>(text + length - body);
  if (start.body_length == 0 && !keeps_promise(start.definition.parameters)) return true;
  start.body = body;
  return check_length(start.body_length, BodyText(start.definition.parameters).length(),
                      "characters of body", problem);
}

bool BodyReader::step() noexcept {
  if (!is_base64_) return false;
  const BodyText form(header_->parameters);
  unsigned char* body = body_of(header_);
  if (done_ < form.whole) {
    const std::size_t count = std::min(kStep, form.whole - done_);
    is_base64_ = decode_base64(text_, body + done_, count);
    text_ += base64_length(count);
    done_ += count;
    return is_base64_;
  }
  unsigned char rest[2 + kChecksumBytes];
  is_base64_ = decode_base64(text_, rest, form.rest + kChecksumBytes);
  if (!is_base64_) return false;
  std::memcpy(body + form.whole, rest, form.rest);
  std::memcpy(&sum_, rest + form.rest, sizeof sum_);
  return false;
}

bool BodyReader::finish(Problem& problem) const noexcept {
  if (!is_base64_)
    return problem.set(Error::corrupt, "damaged streamfilter: the body is not base64");
  if (sum_ != checksum(header_))
    return problem.set(Error::corrupt, "damaged streamfilter: wrong checksum");
  return check(header_, block_bytes(header_->parameters), problem);
}

void write_binary(const Header* header, void* bytes) noexcept {
  const PackedHeader packed(header->parameters);
  const std::uint64_t body = slices_bytes(header->parameters), sum = checksum(header);
  auto* at = static_cast<unsigned char*>(bytes);
  std::memcpy(at, packed.bytes, packed.size);
  std::memcpy(at + packed.size, header + 1, body);
  std::memcpy(at + packed.size + body, &sum, sizeof sum);
}

bool read_binary_header(const void* bytes, std::size_t length, Parameters& parameters,
                        std::size_t& size, Problem& problem) noexcept {
  std::uint32_t host;
  if (length < kStoredHeader + kChecksumBytes) {
    problem.set(Error::corrupt, "truncated streamfilter");
    return problem.add_detail("The value has only %zu bytes.", length);
  }
  std::memcpy(&host, bytes, sizeof host);
  return unpack_header(bytes, length, parameters, size, problem) &&
         (host == 0 || problem.set(Error::corrupt, "damaged streamfilter: invalid header"));
}

bool read_binary(const void* bytes, std::size_t length, Header* block, Problem& problem) noexcept {
  Parameters parameters;
  std::size_t start;
  if (!read_binary_header(bytes, length, parameters, start, problem) ||
      !check_length(length, binary_size(parameters), "bytes", problem))
    return false;
  const auto* at = static_cast<const unsigned char*>(bytes) + start;
  const std::uint64_t body = slices_bytes(parameters);
  std::uint64_t sum;
  std::memcpy(&sum, at + body, sizeof sum);
  std::memmove(body_of(block), at, body);
  format_header(block, parameters);
  if (sum != checksum(block))
    return problem.set(Error::corrupt, "damaged streamfilter: wrong checksum");
  return check(block, block_bytes(parameters), problem);
}

// ---- one slice ----------------------------------------------------------------------------------

static bool is_empty_but_filled(const Parameters& parameters, ConstSlice slice) noexcept {
  return slice.state->insertions == 0 &&
         find_ops(parameters.kind)->estimate(parameters, slice).fill > 0;
}

static bool damaged(const char* detail, Problem& problem) noexcept {
  problem.set(Error::corrupt, "these bytes are not the state of a slice");
  problem.add_detail("%s", detail);
  return problem.add_hint("Give what streamfilter_export has returned.");
}

std::uint64_t packet_size(const Parameters& parameters) noexcept {
  return PackedHeader(parameters).size + parameters.slice_bytes + kChecksumBytes;
}

// Arrivals are counted in the first place of a key; a slice that has only others must not look
// like an empty one.
void write_packet(Header* header, std::uint32_t slice, void* bytes) noexcept {
  const Parameters& parameters = header->parameters;
  const PackedHeader packed(parameters);
  const Slice state = slice_at(header, 0);
  if (is_empty_but_filled(parameters, as_const(state)))
    state.state->insertions = state.state->inserted_new = 1;
  auto* at = static_cast<unsigned char*>(bytes);
  std::memcpy(at, packed.bytes, packed.size);
  std::memcpy(at, &slice, sizeof slice);
  std::memcpy(at + packed.size, state.state, parameters.slice_bytes);
  const std::size_t length = packed.size + parameters.slice_bytes;
  const std::uint64_t sum = hash_bytes(bytes, length, kPacketSeed);
  std::memcpy(at + length, &sum, sizeof sum);
}

bool read_packet(const void* bytes, std::size_t length, std::uint32_t& slice, Header* block,
                 Problem& problem) noexcept {
  const auto* at = static_cast<const unsigned char*>(bytes);
  std::uint32_t magic;
  std::uint64_t sum;
  Parameters parameters;
  std::size_t start;
  if (length < kStoredHeader + kChecksumBytes) return damaged("They are too few.", problem);
  std::memcpy(&slice, at, sizeof slice);
  std::memcpy(&magic, at + kHostWord, sizeof magic);
  std::memcpy(&sum, at + length - sizeof sum, sizeof sum);
  if (magic != kPackedMagic) return damaged("They do not begin as such a state does.", problem);
  if (sum != hash_bytes(bytes, length - sizeof sum, kPacketSeed))
    return damaged("Their checksum is wrong.", problem);
  if (!unpack_header(bytes, length, parameters, start, problem)) return false;
  if (length != packet_size(parameters) || slice >= parameters.slices)
    return damaged("Their number does not fit their header.", problem);
  format_header(block, parameters);
  std::memcpy(body_of(block), at + start, parameters.slice_bytes);
  const ConstSlice state = slice_at(parameters, block + 1, 0);
  if (!check_slice(parameters, state, slice, problem)) return false;
  return !is_empty_but_filled(parameters, state) ||
         damaged("They hold keys without a count.", problem);
}

}  // namespace streamfilter
