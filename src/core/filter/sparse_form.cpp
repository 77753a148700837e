#include "core/filter/sparse_form.hpp"

namespace streamfilter {
namespace {

constexpr std::size_t kStart = 14, kMostNumber = 10;  // least bytes ahead of the units

using Checksum = std::uint32_t;

Checksum checksum_of(const void* body, std::size_t length) noexcept {
  return static_cast<Checksum>(hash_bytes(body, length, kCompactMagic));
}

// One bit, or 8 of them with their value.
constexpr unsigned payload_of(unsigned unit) noexcept { return unit > 1 ? unit : 0; }

std::uint64_t places_of(const Parameters& p, unsigned unit) noexcept {
  return p.slices * p.slice_bytes * 8 / unit;
}

// Visits the words of the slices that differ from a fresh filter's, and their index; stops if
// `visit` returns false. Most of a large filter of few keys are zeros, which pass by the block.
template <typename Visit>
void for_each_difference(const Header* header, Visit visit) noexcept {
  static constexpr unsigned char kZeros[512] = {};
  const Parameters& p = header->parameters;
  for (std::uint32_t i = 0; i < p.slices; ++i) {
    const auto* slice = reinterpret_cast<const unsigned char*>(slice_at(header, i).state);
    for (std::uint64_t at = 0; at < p.slice_bytes; at += sizeof kZeros) {
      const std::uint64_t end = std::min<std::uint64_t>(at + sizeof kZeros, p.slice_bytes);
      if (std::memcmp(slice + at, kZeros, end - at) == 0 && at != 0) continue;
      for (std::uint64_t j = at; j < end; j += 8) {
        std::uint64_t word;
        std::memcpy(&word, slice + j, sizeof word);
        if (j == 0) word ^= fresh_random(p, i);
        if (word != 0 && !visit((i * p.slice_bytes + j) / 8, word)) return;
      }
    }
  }
}

unsigned bytes_in(std::uint64_t word) noexcept {
  constexpr std::uint64_t kLow = 0x7f7f7f7f7f7f7f7f;
  return static_cast<unsigned>(std::popcount((((word & kLow) + kLow) | word) & ~kLow));
}

// Says of most filters at once that they hold too much: is a quarter of the bits of some words set,
// and half of the bytes?
bool looks_full(const Header* header) noexcept {
  constexpr std::uint64_t kSample = 16;
  const Parameters& p = header->parameters;
  const std::uint64_t of_slice = p.slice_bytes / 8, words = p.slices * of_slice;
  const auto* bytes_of = reinterpret_cast<const unsigned char*>(header + 1);
  unsigned bits = 0, bytes = 0;
  for (std::uint64_t i = 0; i < kSample; ++i) {
    const std::uint64_t at = (2 * i + 1) * words / (2 * kSample);
    std::uint64_t word;
    std::memcpy(&word, bytes_of + at * 8, sizeof word);
    // With 32 slices, or 64, all are their first words.
    if (at % of_slice == 0) word ^= fresh_random(p, static_cast<std::uint32_t>(at / of_slice));
    bits += static_cast<unsigned>(std::popcount(word));
    bytes += bytes_in(word);
  }
  return bits > kSample * 64 / 4 && bytes > kSample * 8 / 2;
}

// Without what is left to round up, and the first bytes.
std::uint64_t least_bits(const Parameters& p, unsigned unit, std::uint64_t count) noexcept {
  return count * (1 + rice_parameter(places_of(p, unit), count) + payload_of(unit));
}

void write_start(const Parameters& p, const SparsePlan& plan, RiceWriter& out) noexcept {
  const std::uint32_t start[] = {0, kCompactMagic};
  out.put_bytes(start, sizeof start);
  out.put_byte(kCompactVersion);
  out.put_byte(static_cast<unsigned>(p.kind));
  out.put_byte(plan.unit);
  put_parameters(p, out);
  out.put_number(plan.count);
}

}  // namespace

bool plan_sparse(const Header* header, std::size_t most, SparsePlan& plan) noexcept {
  const Parameters& p = header->parameters;
  if (!find_ops(p.kind)->has_sparse_form || looks_full(header)) return false;
  std::uint64_t bits = 0, bytes = 0;
  for_each_difference(header, [&](std::uint64_t, std::uint64_t word) {
    bits += static_cast<unsigned>(std::popcount(word));
    bytes += bytes_in(word);
    return bytes <= most;  // a byte is 9 bits at least, or several units
  });
  const std::uint64_t by_bit = least_bits(p, 1, bits), by_byte = least_bits(p, 8, bytes);
  plan.unit = by_bit <= by_byte ? 1 : 8;
  plan.count = plan.unit == 1 ? bits : bytes;
  const std::uint64_t least = std::min(by_bit, by_byte) / 8;
  if (bytes > most || kStart + least > most) return false;
  // All ones of the gaps are no more than what the places make of them.
  const std::uint64_t places = plan.count > 0 ? places_of(p, plan.unit) : 0;
  plan.room = kMostPacked + kMostNumber + least +
              (places >> rice_parameter(places, plan.count)) / 8 + 2 * sizeof(std::uint64_t) +
              sizeof(Checksum);
  return true;
}

std::size_t write_sparse(const Header* header, const SparsePlan& plan,
                         unsigned char* bytes) noexcept {
  const Parameters& p = header->parameters;
  RiceWriter out(bytes, plan.room);
  write_start(p, plan, out);
  const unsigned rice = rice_parameter(places_of(p, plan.unit), plan.count), unit = plan.unit;
  const std::uint64_t mask = (std::uint64_t{1} << unit) - 1;
  std::uint64_t next = 0;
  for_each_difference(header, [&](std::uint64_t index, std::uint64_t word) {
    while (word != 0) {
      const unsigned at = static_cast<unsigned>(std::countr_zero(word)) / unit;
      const std::uint64_t place = index * (64 / unit) + at, its = mask << at * unit;
      out.put_gap(place - next, rice, unit > 1 ? (word & its) >> at * unit : 0, payload_of(unit));
      next = place + 1;
      word &= ~its;
    }
    return true;
  });
  const Checksum sum = checksum_of(bytes + kHostWord, out.finish() - kHostWord);
  out.put_bytes(&sum, sizeof sum);
  return out.finish();
}

bool SparseReader::open(const void* body, std::size_t length, Problem& problem) noexcept {
  if (!is_readable(body, length, problem)) return false;
  const auto* at = static_cast<const unsigned char*>(body) + sizeof kCompactMagic;
  body_ = body;
  bits_ = {at + 3, at - sizeof kCompactMagic + length - sizeof(Checksum)};
  unit_ = at[2];
  if ((unit_ != 1 && unit_ != 8) || !parameters_.take(bits_.at, bits_.end, Kind{at[1]}) ||
      !find_ops(parameters().kind)->has_sparse_form || !read_number(bits_.at, bits_.end, count_))
    return problem.set(Error::corrupt, "damaged streamfilter: invalid compact header");
  const std::uint64_t places = places_of(parameters(), unit_);
  if (count_ > places)
    return problem.set(Error::corrupt,
                       "damaged streamfilter: %llu places, where there is room for %llu",
                       llu(count_), llu(places));
  if (least_bits(parameters(), unit_, count_) <= bits_.size()) return true;
  return problem.set(Error::corrupt, "truncated streamfilter: %llu places in %zu bytes",
                     llu(count_), static_cast<std::size_t>(bits_.end - bits_.at));
}

bool SparseReader::add_units(unsigned char* bytes, Problem& problem) const noexcept {
  const std::uint64_t places = places_of(parameters(), unit_);
  const unsigned rice = rice_parameter(places, count_);
  std::uint64_t bit = 0, next = 0, payload;
  for (std::uint64_t i = 0; i < count_; ++i) {
    const std::uint64_t place = next + bits_.take_gap(bit, rice, payload);
    bit += payload_of(unit_);
    if (bit > bits_.size())
      return problem.set(Error::corrupt, "truncated streamfilter: %llu of %llu places are there",
                         llu(i), llu(count_));
    const unsigned value = unit_ > 1 ? payload & 255 : 1u << place % 8;
    if (place >= places || value == 0)
      return problem.set(Error::corrupt, "damaged streamfilter: invalid place");
    bytes[unit_ > 1 ? place : place / 8] ^= static_cast<unsigned char>(value);
    next = place + 1;
  }
  Checksum sum;
  std::memcpy(&sum, bits_.end, sizeof sum);
  if (!bits_.is_end(bit))
    return problem.set(Error::corrupt, "damaged streamfilter: bytes behind the last place");
  return sum == checksum_of(body_, static_cast<std::size_t>(
                                       bits_.end - static_cast<const unsigned char*>(body_))) ||
         problem.set(Error::corrupt, "damaged streamfilter: wrong checksum");
}

bool SparseReader::read(Header* filter, Problem& problem) const noexcept {
  const Parameters& p = parameters();
  std::memset(static_cast<void*>(filter), 0, block_bytes(p));
  format_header(filter, p);
  for (std::uint32_t i = 0; i < p.slices; ++i)
    slice_at(filter, i).state->random = fresh_random(p, i);
  return add_units(reinterpret_cast<unsigned char*>(filter + 1), problem);
}

}  // namespace streamfilter
