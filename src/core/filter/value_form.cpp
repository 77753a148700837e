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
  Header header{};
  header.magic = kMagic;
  const char* stop = at + 1;
  for (; stop < end && is_digit(*stop) && header.version < 1000; ++stop)
    header.version = static_cast<std::uint16_t>(header.version * 10 + (*stop - '0'));
  if (stop == at + 1 || stop == end || *stop != ':')
    return bad_syntax("Expected \":\", the version of the format and \":\"", at, end, problem);
  at = stop + 1;
  return header.version == kFormatVersion || check_header(header, problem);
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
  const BodyText form(header_->parameters.memory);
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
  return check_length(start.body_length, BodyText(start.definition.parameters.memory).length(),
                      "characters of body", problem);
}

bool BodyReader::step() noexcept {
  if (!is_base64_) return false;
  const BodyText form(header_->parameters.memory);
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
  return check(header_, header_->parameters.memory, problem);
}

bool read_binary_header(const void* bytes, std::size_t length, Header& header,
                        Problem& problem) noexcept {
  if (length < sizeof(Header) + kChecksumBytes) {
    problem.set(Error::corrupt, "truncated streamfilter");
    return problem.add_detail("The value has only %zu bytes.", length);
  }
  std::memcpy(static_cast<void*>(&header), bytes, sizeof header);
  if (!check_header(header, problem)) return false;
  return header.host == 0 || problem.set(Error::corrupt, "damaged streamfilter: invalid header");
}

bool read_binary(const void* bytes, std::size_t length, Header* block, Problem& problem) noexcept {
  Header header;
  if (!read_binary_header(bytes, length, header, problem) ||
      !check_length(length, binary_size(header.parameters), "bytes", problem))
    return false;
  const std::uint64_t memory = header.parameters.memory;
  std::uint64_t sum;
  std::memcpy(&sum, static_cast<const unsigned char*>(bytes) + memory, sizeof sum);
  std::memmove(static_cast<void*>(block), bytes, memory);
  if (sum != checksum(block))
    return problem.set(Error::corrupt, "damaged streamfilter: wrong checksum");
  return check(block, memory, problem);
}

// ---- one slice ----------------------------------------------------------------------------------

namespace {

constexpr std::uint32_t kPacketMagic = 0x4c534653;  // "SFSL"

std::uint64_t sum_of(const Header* header, std::uint64_t length, std::uint32_t slice) noexcept {
  return hash_bytes(header, length - sizeof(PacketHead),
                    kPacketMagic + (std::uint64_t{slice} << 32));
}

bool is_empty_but_filled(const Parameters& parameters, ConstSlice slice) noexcept {
  return slice.state->insertions == 0 &&
         find_ops(parameters.kind)->estimate(parameters, slice).fill > 0;
}

const Header* damaged(const char* detail, Problem& problem) noexcept {
  problem.set(Error::corrupt, "these bytes are not the state of a slice");
  problem.add_detail("%s", detail);
  problem.add_hint("Give what streamfilter_export has returned.");
  return nullptr;
}

}  // namespace

std::uint64_t packet_size(const Parameters& parameters) noexcept {
  return sizeof(PacketHead) + sizeof(Header) + parameters.slice_bytes;
}

// Arrivals are counted in the first place of a key; a slice that has only others must not look
// like an empty one.
PacketHead seal_packet(Header* header, std::uint32_t slice) noexcept {
  header->host = 0;
  const Slice state = slice_at(header, 0);
  if (is_empty_but_filled(header->parameters, as_const(state)))
    state.state->insertions = state.state->inserted_new = 1;
  return {kPacketMagic, slice, sum_of(header, packet_size(header->parameters), slice)};
}

const Header* open_packet(const void* bytes, std::size_t length, std::uint32_t& slice,
                          Problem& problem) noexcept {
  if (length < sizeof(PacketHead) + sizeof(Header)) return damaged("They are too few.", problem);
  const auto* head = static_cast<const PacketHead*>(bytes);
  const auto* header = reinterpret_cast<const Header*>(head + 1);
  const Parameters& parameters = header->parameters;
  if (head->magic != kPacketMagic)
    return damaged("They do not begin as such a state does.", problem);
  if (head->sum != sum_of(header, length, head->slice))
    return damaged("Their checksum is wrong.", problem);
  if (!check_header(*header, problem)) return nullptr;
  if (length != packet_size(parameters) || head->slice >= parameters.slices)
    return damaged("Their number does not fit their header.", problem);
  const ConstSlice state = slice_at(header, 0);
  if (!check_slice(parameters, state, head->slice, problem)) return nullptr;
  if (is_empty_but_filled(parameters, state))
    return damaged("They hold keys without a count.", problem);
  slice = head->slice;
  return header;
}

}  // namespace streamfilter
