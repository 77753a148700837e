#include "core/filter/compact_form.hpp"

#include <algorithm>
#include <bit>

#include "core/kind/exa_log_log.hpp"

#include "core/base/layer_wall.hpp"

namespace streamfilter {
namespace {

using namespace exa_log_log;

constexpr unsigned kHasSeed = 1, kHasSlices = 2, kNullsAreKeys = 4, kHasRepeats = 8, kAllFlags = 15;

// Bits of a payload: the last two of the update value's; then its seven, or as many zeros and how
// many more there are.
constexpr unsigned kFineBits = 7, kMoreBits = 6, kSubBits = 2;
constexpr unsigned kFineCodes = 1u << kFineBits;
constexpr std::uint32_t kPayloadMask = (1u << kWordPayloadBits) - 1;

// A key is read from so many bits, unless more of them are ones at its beginning.
constexpr unsigned kPeeked = 57, kMostRice = 22,
                   kMostOnes = kPeeked - 1 - kMostRice - kSubBits - kFineBits - kMoreBits;
static_assert(kMaxPlaces == 1u << kMostRice);

unsigned rice_parameter(std::uint64_t places, std::uint32_t count) noexcept {
  const std::uint64_t gap = count > 0 ? places / count : 0;
  return gap > 1 ? static_cast<unsigned>(std::bit_width(gap)) - 1 : 0;
}

// The parameters of what is asked for; false: there are none.
bool derive(std::uint64_t memory, std::uint64_t seed, std::uint64_t slices, bool nulls,
            Parameters& result) noexcept {
  Definition definition;
  Parameters& p = definition.parameters;
  p.kind = Kind::ell;
  p.memory = memory;
  p.seed = seed;
  p.nulls = nulls ? Nulls::not_distinct : Nulls::distinct;
  p.slices = static_cast<std::uint32_t>(slices > 0 ? slices : default_slices(memory));
  definition.give(Common::memory, Common::slices, Common::layout, Common::seed, Common::nulls,
                  Common::slicing);
  Problem ignored;
  if (slices > kMaxPlaces || !in_range(p) || !complete(definition, ignored) || !has_words(p))
    return false;
  result = p;
  return true;
}

class Writer {
 public:
  Writer(unsigned char* bytes, std::size_t room) noexcept : bytes_(bytes), room_(room) {}

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
  // Up to kPeeked of them.
  void put_bits(std::uint64_t bits, unsigned count) noexcept {
    held_ |= bits << holds_;
    holds_ += count;
    if (size_ + sizeof held_ > room_) return put_whole_bytes();
    std::memcpy(bytes_ + size_, &held_, sizeof held_);
    size_ += holds_ / 8;
    held_ = holds_ < 64 ? held_ >> holds_ / 8 * 8 : 0;
    holds_ %= 8;
  }
  void put_key(std::uint64_t gap, unsigned rice, std::uint32_t payload) noexcept {
    std::uint64_t ones = gap >> rice;
    for (; ones > kMostOnes; ones -= kMostOnes) put_bits((1u << kMostOnes) - 1, kMostOnes);
    const unsigned code = payload >> kSubBits, end = static_cast<unsigned>(ones) + 1 + rice;
    std::uint64_t bits = (std::uint64_t{1} << ones) - 1;
    bits |= (gap & ((std::uint64_t{1} << rice) - 1)) << (ones + 1);
    bits |= std::uint64_t{payload & ((1u << kSubBits) - 1)} << end;
    if (code < kFineCodes)
      put_bits(bits | std::uint64_t{code} << (end + kSubBits), end + kSubBits + kFineBits);
    else
      put_bits(bits | std::uint64_t{code - kFineCodes} << (end + kSubBits + kFineBits),
               end + kSubBits + kFineBits + kMoreBits);
  }
  std::size_t finish() noexcept {
    if (holds_ > 0) put_bits(0, 8 - holds_);
    return size_;
  }

 private:
  void put_whole_bytes() noexcept {
    for (; holds_ >= 8; holds_ -= 8, held_ >>= 8) put_byte(static_cast<unsigned>(held_ & 255));
  }

  unsigned char* bytes_;
  std::size_t room_, size_ = 0;
  std::uint64_t held_ = 0;
  unsigned holds_ = 0;
};

// Insertions beyond one for each key.
class Repeats {
 public:
  Repeats(const Parameters& p, const Word* words, std::uint32_t count,
          const std::uint64_t* insertions) noexcept
      : p_(p), words_(words), end_(words + count), insertions_(insertions) {}

  // For the slices in turn.
  std::uint64_t of(std::uint32_t slice) noexcept {
    const Word* first = words_;
    while (words_ < end_ && slice_of_word(p_, *words_) == slice) ++words_;
    return insertions_[slice] - static_cast<std::uint64_t>(words_ - first);
  }

  bool are_any() const noexcept {
    Repeats all = *this;
    for (std::uint32_t i = 0; insertions_ != nullptr && i < p_.slices; ++i)
      if (all.of(i) > 0) return true;
    return false;
  }

 private:
  const Parameters& p_;
  const Word* words_;
  const Word* end_;
  const std::uint64_t* insertions_;
};

void write_start(const Parameters& p, unsigned flags, Writer& out) noexcept {
  const std::uint32_t start[] = {0, kCompactMagic};
  out.put_bytes(start, sizeof start);
  out.put_byte(kCompactVersion);
  out.put_byte(static_cast<unsigned>(p.kind));
  out.put_byte(flags);
  out.put_number(p.memory);
  if (flags & kHasSeed) out.put_bytes(&p.seed, sizeof p.seed);
  if (flags & kHasSlices) out.put_number(p.slices);
}

bool is_as_formatted(const Parameters& p, const SliceState& state, std::uint32_t index) noexcept {
  return state.random == mix64(p.seed ^ (index + 1) * kGoldenRatio);
}

}  // namespace

bool has_compact_form(const Parameters& p) noexcept {
  Parameters again;
  return has_words(p) && derive(p.memory, p.seed, p.slices, p.nulls != Nulls::distinct, again) &&
         std::memcmp(&again, &p, sizeof p) == 0;
}

bool count_words(const Header* header, std::uint32_t& count) noexcept {
  const Parameters& p = header->parameters;
  if (!has_compact_form(p)) return false;
  std::uint64_t all = 0;
  for (std::uint32_t i = 0; i < p.slices; ++i) {
    const ConstSlice slice = slice_at(header, i);
    std::uint64_t its;
    if (!holds_tokens(p, slice, its) || its > slice.state->insertions || its > kMaxPlaces ||
        !is_as_formatted(p, *slice.state, i))
      return false;
    all += its;
  }
  count = static_cast<std::uint32_t>(all);
  return true;
}

void list_words(const Header* header, Word* words) noexcept {
  const Parameters& p = header->parameters;
  Word* const first = words;
  for (std::uint32_t i = 0; i < p.slices; ++i) {
    const std::uint64_t start = i * 2 * p.integer(0);
    for_each_token(p, slice_at(header, i), [&](Token token) {
      *words++ = static_cast<Word>((start + token.home) << kWordPayloadBits) | token.payload;
    });
  }
  sort_words(first, static_cast<std::uint32_t>(words - first));
}

void sort_words(Word* words, std::uint32_t count) noexcept { std::sort(words, words + count); }

// All ones of the gaps are no more than what the places make of them.
std::size_t most_compact(const Parameters& p, std::uint32_t count) noexcept {
  constexpr std::size_t kNumber = 10, kStart = 11 + 8 + 3 * kNumber;
  const unsigned rice = rice_parameter(places_of(p), count);
  const std::uint64_t ones = count > 0 ? places_of(p) >> rice : 0;
  return kStart + p.slices * kNumber + 8 +
         (ones + count * std::uint64_t{1 + kMostRice + kSubBits + kFineBits + kMoreBits}) / 8;
}

std::size_t write_compact(const Parameters& p, const Word* words, std::uint32_t count,
                          const std::uint64_t* insertions, unsigned char* bytes,
                          std::size_t room) noexcept {
  Writer out(bytes, room);
  Repeats repeats(p, words, count, insertions);
  const unsigned flags =
      (p.seed != 0 ? kHasSeed : 0) | (p.slices != default_slices(p.memory) ? kHasSlices : 0) |
      (p.nulls != Nulls::distinct ? kNullsAreKeys : 0) | (repeats.are_any() ? kHasRepeats : 0);
  write_start(p, flags, out);
  for (std::uint32_t i = 0; (flags & kHasRepeats) && i < p.slices; ++i)
    out.put_number(repeats.of(i));
  out.put_number(count);
  const unsigned rice = rice_parameter(places_of(p), count);
  std::uint64_t before = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint64_t place = words[i] >> kWordPayloadBits;
    out.put_key(place - before, rice, words[i] & kPayloadMask);
    before = place;
  }
  return out.finish();
}

bool CompactReader::read_number(std::uint64_t& number) noexcept {
  number = 0;
  for (unsigned shift = 0; at_ < end_ && shift < 63; shift += 7) {
    const unsigned byte = *at_++;
    number |= std::uint64_t{byte & 127} << shift;
    if (byte < 128) return byte > 0 || shift == 0;  // the shortest of several forms only
  }
  return false;
}

bool CompactReader::read_parameters() noexcept {
  std::uint64_t memory, seed = 0, slices = 0;
  if (!read_number(memory)) return false;
  if (flags_ & kHasSeed) {
    if (end_ - at_ < 8) return false;
    std::memcpy(&seed, at_, sizeof seed);
    at_ += sizeof seed;
  }
  if ((flags_ & kHasSlices) && !read_number(slices)) return false;
  const bool nulls = flags_ & kNullsAreKeys;
  if (memory == parameters_.memory && seed == parameters_.seed &&
      nulls == (parameters_.nulls != Nulls::distinct) &&
      (slices > 0 ? slices : default_slices(memory)) == parameters_.slices)
    return true;  // they are those of the filter before
  return derive(memory, seed, slices, nulls, parameters_);
}

bool CompactReader::read_repeats() noexcept {
  if (!(flags_ & kHasRepeats)) return true;
  repeats_ = at_;
  for (std::uint32_t i = 0; i < parameters_.slices; ++i)
    if (std::uint64_t number; !read_number(number) || number > kMaxInsertions) return false;
  return true;
}

bool CompactReader::open(const void* body, std::size_t length, Problem& problem) noexcept {
  at_ = static_cast<const unsigned char*>(body);
  end_ = at_ + length;
  repeats_ = nullptr;
  done_ = 0;
  word_ = 0;
  bit_ = place_ = 0;
  is_sound_ = true;
  if (!is_compact(body, length))
    return problem.set(Error::corrupt, "these bytes are not a streamfilter");
  at_ += sizeof kCompactMagic;
  if (at_[0] > kCompactVersion) {
    problem.set(Error::newer_version, "streamfilter of compact format version %u cannot be read",
                at_[0]);
    return problem.add_hint("This version of streamfilter reads compact formats up to %u.",
                            kCompactVersion);
  }
  flags_ = at_[2];
  const bool is_known = at_[0] == kCompactVersion && flags_ <= kAllFlags &&
                        at_[1] == static_cast<unsigned>(Kind::ell);
  at_ += 3;
  std::uint64_t count = 0;
  if (!is_known || !read_parameters() || !read_repeats() || !read_number(count))
    return problem.set(Error::corrupt, "damaged streamfilter: invalid compact header");
  // A key is 10 bits at least.
  if (count > static_cast<std::uint64_t>(end_ - at_) * 8 / 10)
    return problem.set(Error::corrupt, "truncated streamfilter: %llu keys in %zu bytes",
                       static_cast<unsigned long long>(count),
                       static_cast<std::size_t>(end_ - at_));
  const std::uint64_t most = parameters_.slices * most_tokens(2 * parameters_.integer(0));
  if (count > most)
    return problem.set(
        Error::corrupt, "damaged streamfilter: %llu keys, where there is room for %llu",
        static_cast<unsigned long long>(count), static_cast<unsigned long long>(most));
  count_ = static_cast<std::uint32_t>(count);
  bits_ = static_cast<std::uint64_t>(end_ - at_) * 8;
  places_ = places_of(parameters_);
  rice_ = rice_parameter(places_, count_);
  return true;
}

std::uint64_t CompactReader::repeats(std::uint32_t slice) const noexcept {
  if (repeats_ == nullptr) return 0;
  CompactReader copy = *this;
  copy.at_ = repeats_;
  std::uint64_t number = 0;
  for (std::uint32_t i = 0; i <= slice; ++i) copy.read_number(number);
  return number;
}

// At least kPeeked bits from one of them on; behind the end there are zeros. More than 8 bytes lie
// before the first.
std::uint64_t CompactReader::peek(std::uint64_t bit) const noexcept {
  constexpr std::ptrdiff_t kBytes = sizeof(std::uint64_t);
  const unsigned char* from = at_ + bit / 8;
  const std::ptrdiff_t left = end_ - from;
  std::uint64_t bits;
  if (left <= 0) return 0;
  std::memcpy(&bits, left < kBytes ? end_ - kBytes : from, sizeof bits);
  return (left < kBytes ? bits >> 8 * (kBytes - left) : bits) >> bit % 8;
}

std::uint32_t CompactReader::next(Word* words, std::uint32_t most) noexcept {
  if (!is_sound_) return 0;
  std::uint64_t bit = bit_, place = place_, bits;
  Word before = word_;
  std::uint32_t n = 0;
  for (most = std::min(most, count_ - done_); n < most && is_sound_; ++n) {
    std::uint64_t ones = 0;
    unsigned run;
    for (; (run = static_cast<unsigned>(std::countr_one(bits = peek(bit)))) > kMostOnes;
         bit += kMostOnes)
      ones += kMostOnes;
    bits >>= run + 1;
    place += (ones + run) << rice_ | (bits & ((std::uint64_t{1} << rice_) - 1));
    bits >>= rice_;
    const unsigned sub = bits & ((1u << kSubBits) - 1), fine = bits >> kSubBits & (kFineCodes - 1),
                   more = bits >> (kSubBits + kFineBits) & ((1u << kMoreBits) - 1),
                   code = fine > 0 ? fine : kFineCodes + more;
    bit += run + 1 + rice_ + kSubBits + kFineBits + (fine > 0 ? 0 : kMoreBits);
    words[n] = static_cast<Word>(place << kWordPayloadBits) | code << kSubBits | sub;
    is_sound_ = bit <= bits_ && place < places_ && exa_log_log::is_payload(code << kSubBits) &&
                words[n] > before;
    before = words[n];
  }
  bit_ = bit;
  place_ = place;
  word_ = before;
  n -= !is_sound_;
  done_ += n;
  return n;
}

// Less than a byte is left, and no bit of that is set.
bool CompactReader::is_at_end() const noexcept { return bits_ - bit_ < 8 && peek(bit_) == 0; }

bool CompactReader::finish(Problem& problem) const noexcept {
  if (is_sound_ && done_ == count_ && is_at_end()) return true;
  if (!is_sound_ && bit_ > bits_)
    return problem.set(Error::corrupt, "truncated streamfilter: %u of %u keys are there", done_,
                       count_);
  return problem.set(Error::corrupt,
                     is_sound_ ? "damaged streamfilter: bytes behind the last key"
                               : "damaged streamfilter: invalid or unordered key %u",
                     done_);
}

bool merge_compact(CompactReader& reader, Header* into, Problem& problem) noexcept {
  const Parameters& p = into->parameters;
  constexpr std::uint32_t kAtOnce = 64;
  Word words[kAtOnce];
  while (const std::uint32_t count = reader.next(words, kAtOnce)) {
    add_words(into, words, count);
    if (p.slices == 1) slice_at(into, 0).state->insertions += count;
    for (std::uint32_t i = 0; p.slices > 1 && i < count; ++i)
      ++slice_at(into, slice_of_word(p, words[i])).state->insertions;
  }
  if (!reader.finish(problem)) return false;
  for (std::uint32_t i = 0; i < p.slices; ++i) {
    std::uint64_t& insertions = slice_at(into, i).state->insertions;
    insertions = std::min(insertions + reader.repeats(i), kMaxInsertions);
  }
  return true;
}

bool read_compact(CompactReader& reader, Header* filter, Problem& problem) noexcept {
  if (!merge_compact(reader, filter, problem)) return false;
  for (std::uint32_t i = 0; i < filter->parameters.slices; ++i) settle_slice(filter, i);
  return true;
}

}  // namespace streamfilter
