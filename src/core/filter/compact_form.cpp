#include "core/filter/compact_form.hpp"

namespace streamfilter {
namespace {

using namespace exa_log_log;

// Bits of a payload: the last two of the update value's; then its seven, or as many zeros and how
// many more there are.
constexpr unsigned kFineBits = 7, kMoreBits = 6, kSubBits = 2;
constexpr unsigned kFineCodes = 1u << kFineBits;
constexpr std::uint32_t kPayloadMask = (1u << kWordPayloadBits) - 1;

static_assert(kMaxPlaces == 1u << kMostRice && kSubBits + kFineBits + kMoreBits == kMostPayload);

void put_key(std::uint64_t gap, unsigned rice, std::uint32_t payload, RiceWriter& out) noexcept {
  const unsigned code = payload >> kSubBits, sub = payload & ((1u << kSubBits) - 1);
  if (code < kFineCodes)
    out.put_gap(gap, rice, sub | code << kSubBits, kSubBits + kFineBits);
  else
    out.put_gap(gap, rice, sub | (code - kFineCodes) << (kSubBits + kFineBits), kMostPayload);
}

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

}  // namespace

bool is_readable(const void* body, std::size_t length, Problem& problem) noexcept {
  if (!is_compact(body, length))
    return problem.set(Error::corrupt, "these bytes are not a streamfilter");
  const unsigned version = static_cast<const unsigned char*>(body)[sizeof kCompactMagic];
  if (version == kCompactVersion) return true;
  if (version < kCompactVersion)
    return problem.set(Error::corrupt, "damaged streamfilter: invalid compact header");
  problem.set(Error::newer_version, "streamfilter of compact format version %u cannot be read",
              version);
  return problem.add_hint("This version of streamfilter reads compact formats up to %u.",
                          kCompactVersion);
}

bool count_words(const Header* header, std::uint32_t& count) noexcept {
  const Parameters& p = header->parameters;
  if (!has_words(p)) return false;
  std::uint64_t all = 0;
  for (std::uint32_t i = 0; i < p.slices; ++i) {
    const ConstSlice slice = slice_at(header, i);
    std::uint64_t its;
    if (!holds_tokens(p, slice, its) || its > slice.state->insertions || its > kMaxPlaces ||
        slice.state->random != fresh_random(p, i))
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
  constexpr std::size_t kNumber = 10, kStart = kMostPacked + kNumber;
  const unsigned rice = rice_parameter(places_of(p), count);
  const std::uint64_t ones = count > 0 ? places_of(p) >> rice : 0;
  return kStart + p.slices * kNumber + 8 +
         (ones + count * std::uint64_t{1 + kMostRice + kSubBits + kFineBits + kMoreBits}) / 8;
}

std::size_t write_compact(const Parameters& p, const Word* words, std::uint32_t count,
                          const std::uint64_t* insertions, unsigned char* bytes,
                          std::size_t room) noexcept {
  RiceWriter out(bytes, room);
  Repeats repeats(p, words, count, insertions);
  const bool has_repeats = repeats.are_any();
  const std::uint32_t start[] = {0, kCompactMagic};
  out.put_bytes(start, sizeof start);
  out.put_byte(kCompactVersion);
  out.put_byte(static_cast<unsigned>(p.kind));
  out.put_byte(has_repeats);
  put_parameters(p, out);
  for (std::uint32_t i = 0; has_repeats && i < p.slices; ++i) out.put_number(repeats.of(i));
  out.put_number(count);
  const unsigned rice = rice_parameter(places_of(p), count);
  std::uint64_t before = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint64_t place = words[i] >> kWordPayloadBits;
    put_key(place - before, rice, words[i] & kPayloadMask, out);
    before = place;
  }
  return out.finish();
}

bool CompactReader::read_repeats() noexcept {
  repeats_ = at_;
  for (std::uint32_t i = 0; i < parameters().slices; ++i)
    if (std::uint64_t number; !read_number(at_, end_, number) || number > kMaxInsertions)
      return false;
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
  if (!is_readable(body, length, problem)) return false;
  at_ += sizeof kCompactMagic;
  const Kind kind{at_[1]};
  const unsigned has_repeats = at_[2];
  at_ += 3;
  std::uint64_t count = 0;
  if (kind != kKindOfWords || has_repeats > 1 || !parameters_.take(at_, end_, kind) ||
      !has_words(parameters()) || (has_repeats && !read_repeats()) ||
      !read_number(at_, end_, count))
    return problem.set(Error::corrupt, "damaged streamfilter: invalid compact header");
  // A key is 10 bits at least.
  if (count > static_cast<std::uint64_t>(end_ - at_) * 8 / 10)
    return problem.set(Error::corrupt, "truncated streamfilter: %llu keys in %zu bytes", llu(count),
                       static_cast<std::size_t>(end_ - at_));
  const std::uint64_t most = parameters().slices * most_tokens(2 * parameters().integer(0));
  if (count > most)
    return problem.set(Error::corrupt,
                       "damaged streamfilter: %llu keys, where there is room for %llu", llu(count),
                       llu(most));
  count_ = static_cast<std::uint32_t>(count);
  places_ = places_of(parameters());
  rice_ = rice_parameter(places_, count_);
  return true;
}

std::uint64_t CompactReader::repeats(std::uint32_t slice) const noexcept {
  if (repeats_ == nullptr) return 0;
  const unsigned char* at = repeats_;
  std::uint64_t number = 0;
  for (std::uint32_t i = 0; i <= slice; ++i) read_number(at, end_, number);
  return number;
}

std::uint32_t CompactReader::next(Word* words, std::uint32_t most) noexcept {
  if (!is_sound_) return 0;
  const RiceBits source{at_, end_};
  std::uint64_t bit = bit_, place = place_, bits;
  Word before = word_;
  std::uint32_t n = 0;
  for (most = std::min(most, count_ - done_); n < most && is_sound_; ++n) {
    place += source.take_gap(bit, rice_, bits);
    const unsigned sub = bits & ((1u << kSubBits) - 1), fine = bits >> kSubBits & (kFineCodes - 1),
                   more = bits >> (kSubBits + kFineBits) & ((1u << kMoreBits) - 1),
                   code = fine > 0 ? fine : kFineCodes + more;
    bit += kSubBits + kFineBits + (fine > 0 ? 0 : kMoreBits);
    words[n] = static_cast<Word>(place << kWordPayloadBits) | code << kSubBits | sub;
    is_sound_ = bit <= source.size() && place < places_ &&
                exa_log_log::is_payload(code << kSubBits) && words[n] > before;
    before = words[n];
  }
  bit_ = bit;
  place_ = place;
  word_ = before;
  n -= !is_sound_;
  done_ += n;
  return n;
}

bool CompactReader::finish(Problem& problem) const noexcept {
  const RiceBits bits{at_, end_};
  if (is_sound_ && done_ == count_ && bits.is_end(bit_)) return true;
  if (!is_sound_ && bit_ > bits.size())
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
