#include "core/filter/packed_header.hpp"

#include "core/base/layer_wall.hpp"

namespace streamfilter {
namespace {

constexpr std::size_t kVersionAt = 8, kKindAt = 9, kNumbersAt = 10;

// Bits of byte 10. Slicing: five numbers.
enum CommonBit : unsigned { kLayout, kNulls, kSlices, kKeys, kFpr, kSeed, kSlicing, kUnknown };

constexpr unsigned kRawReal = 62, kMostDecimals = 22;  // 10^22 is exact
constexpr double kMostDigits = 1e9;

// Writes numbers.
struct Put {
  RiceWriter& out;

  bool number(std::uint64_t value) noexcept {
    out.put_number(value);
    return true;
  }
  bool raw(const void* word) noexcept {
    out.put_bytes(word, sizeof(std::uint64_t));
    return true;
  }
  bool real(const void* word) noexcept {
    double value, power = 1;
    std::memcpy(&value, word, sizeof value);
    const double size = std::abs(value);
    for (unsigned e = 0; e <= kMostDecimals; ++e, power *= 10) {
      const double digits = std::round(size * power);
      if (!(digits < kMostDigits)) break;
      if (digits / power == size)
        return number(static_cast<std::uint64_t>(digits) << 6 | e << 1 |
                      unsigned{std::signbit(value)});
    }
    return number(kRawReal) && raw(word);
  }
};

// Reads them; false: they are not there, or too large.
struct Take {
  const unsigned char*& at;
  const unsigned char* end;

  template <typename Number>
  bool number(Number& result) noexcept {
    std::uint64_t value;
    if (!read_number(at, end, value)) return false;
    result = static_cast<Number>(value);
    return static_cast<std::uint64_t>(result) == value;
  }
  bool raw(void* word) noexcept {
    if (end - at < std::ptrdiff_t{sizeof(std::uint64_t)}) return false;
    std::memcpy(word, at, sizeof(std::uint64_t));
    at += sizeof(std::uint64_t);
    return true;
  }
  bool real(void* word) noexcept {
    std::uint64_t code;
    if (!number(code)) return false;
    if (code == kRawReal) return raw(word);
    double power = 1;
    for (unsigned e = code >> 1 & 31; e > 0; --e) power *= 10;
    const double size = to_real(code >> 6) / power, value = (code & 1) != 0 ? -size : size;
    std::memcpy(word, &value, sizeof value);
    return true;
  }
};

bool is_stored(const Parameters& p, const OptionSpec& option) noexcept {
  const std::uint64_t* first = p.word + option.word;
  return in_use(p, option) && std::any_of(first, first + words_of(p, option),
                                          [](std::uint64_t word) { return word != 0; });
}

// What follows or holds.
struct Sets {
  unsigned common = 0;        // CommonBit
  std::uint64_t options = 0;  // in the order of the kind's table

  bool has(CommonBit bit) const noexcept { return (common >> bit & 1) != 0; }
};

Sets sets_of(const Parameters& p) noexcept {
  Sets sets;
  const auto add = [&](CommonBit bit, bool holds) { sets.common |= unsigned{holds} << bit; };
  add(kLayout, p.layout != Layout::scattered);
  add(kNulls, p.nulls != Nulls::distinct);
  add(kSlices, p.slices != 1);
  add(kKeys, p.keys != 0);
  add(kFpr, p.fpr != 0);
  add(kSeed, p.seed != 0);
  add(kSlicing, p.slicing != Slicing::horizontal || p.k1 > 0);
  std::uint64_t bit = 1;
  for (const OptionSpec& option : find_ops(p.kind)->options) {
    if (is_stored(p, option)) sets.options |= bit;
    bit <<= 1;
  }
  return sets;
}

// Puts or takes the numbers in their order. The first word of a list says how many there are.
template <typename Io, typename P>
bool each_number(Io io, const Sets& sets, P& p) noexcept {
  if (!io.number(p.memory) || (sets.has(kSlices) && !io.number(p.slices)) ||
      (sets.has(kKeys) && !io.number(p.keys)) || (sets.has(kFpr) && !io.real(&p.fpr)) ||
      (sets.has(kSeed) && !io.raw(&p.seed)))
    return false;
  std::uint8_t cut[] = {std::uint8_t(p.slicing), std::uint8_t(p.dice), p.k1, p.k2};
  if (sets.has(kSlicing)) {
    for (std::uint8_t& number : cut)
      if (!io.number(number)) return false;
    if (!io.number(p.slices2)) return false;
  }
  if constexpr (!std::is_const_v<P>) {
    p.slicing = Slicing{cut[0]};
    p.dice = Dice{cut[1]};
    p.k1 = cut[2];
    p.k2 = cut[3];
  }
  std::uint64_t left = sets.options;
  for (const OptionSpec& option : find_ops(p.kind)->options) {
    for (unsigned i = 0; (left & 1) != 0 && (i == 0 || i < words_of(p, option)); ++i) {
      const bool is_real =
          option.type == OptionType::real || (option.type == OptionType::reals && i > 0);
      auto& word = p.word[option.word + i];
      if (!(is_real ? io.real(&word) : io.number(word))) return false;
    }
    left >>= 1;
  }
  return left == 0;
}

}  // namespace

void put_parameters(const Parameters& p, RiceWriter& out) noexcept {
  const Sets sets = sets_of(p);
  out.put_byte(sets.common);
  out.put_number(sets.options);
  each_number(Put{out}, sets, p);
}

bool ParametersReader::derive(const unsigned char*& at, const unsigned char* end,
                              Kind kind) noexcept {
  const unsigned char* start = at;
  Sets sets;
  Parameters p{};
  p.kind = kind;
  p.slices = 1;
  if (find_ops(kind) == nullptr || at == end) return false;
  sets.common = *at++;
  p.layout = Layout{sets.has(kLayout)};
  p.nulls = Nulls{sets.has(kNulls)};
  if (sets.has(kUnknown) || !read_number(at, end, sets.options) ||
      !each_number(Take{at, end}, sets, p) || !in_range(p))
    return false;
  Definition definition = definition_of(p);
  Problem ignored;
  if (!complete(definition, ignored)) return false;
  parameters_ = definition.parameters;
  // There is one way to write parameters.
  constexpr std::size_t kRoom = sizeof written_ - kNumbersAt;
  RiceWriter out(written_ + kNumbersAt, kRoom);
  put_parameters(parameters_, out);
  numbers_ = out.finish();
  return numbers_ <= kRoom && numbers_ == static_cast<std::size_t>(at - start) &&
         std::equal(start, at, written_ + kNumbersAt);
}

bool ParametersReader::take(const unsigned char*& at, const unsigned char* end,
                            Kind kind) noexcept {
  if (numbers_ > 0 && parameters_.kind == kind &&
      end - at >= static_cast<std::ptrdiff_t>(numbers_) &&
      std::memcmp(at, written_ + kNumbersAt, numbers_) == 0) {
    at += numbers_;
    return true;
  }
  header_ = 0;
  if (derive(at, end, kind)) return true;
  numbers_ = 0;
  return false;
}

PackedHeader::PackedHeader(const Parameters& parameters) noexcept {
  RiceWriter out(bytes, sizeof bytes);
  const std::uint32_t start[] = {0, kPackedMagic};
  out.put_bytes(start, sizeof start);
  out.put_byte(kFormatVersion);
  out.put_byte(static_cast<unsigned>(parameters.kind));
  put_parameters(parameters, out);
  size = (out.finish() + kStoredHeader - 1) / kStoredHeader * kStoredHeader;
}

bool ParametersReader::unpack(const void* bytes, std::size_t length, std::size_t& size,
                              Problem& problem) noexcept {
  const auto* start = static_cast<const unsigned char*>(bytes);
  std::uint32_t magic = 0;
  size = header_;
  if (size > 0 && size <= length &&
      std::memcmp(start + kHostWord, written_ + kHostWord, size - kHostWord) == 0)
    return true;
  if (length < kStoredHeader)
    return problem.set(Error::corrupt, "truncated streamfilter: %zu bytes", length);
  std::memcpy(&magic, start + kHostWord, sizeof magic);
  if (magic != kPackedMagic)
    return problem.set(Error::corrupt, "these bytes are not a streamfilter");
  if (!check_version(start[kVersionAt], problem)) return false;
  const unsigned char* at = start + kNumbersAt;
  if (!take(at, start + std::min(length, kMostPacked), Kind{start[kKindAt]}))
    return problem.set(Error::corrupt, "damaged streamfilter: invalid parameters");
  size = static_cast<std::size_t>(at - start + kStoredHeader - 1) / kStoredHeader * kStoredHeader;
  const auto is_zero = [](unsigned char byte) { return byte == 0; };
  if (size > length || !std::all_of(at, start + size, is_zero))
    return problem.set(Error::corrupt, "damaged streamfilter: invalid header");
  std::memcpy(written_, start, header_ = size);
  return true;
}

bool unpack_header(const void* bytes, std::size_t length, Parameters& parameters, std::size_t& size,
                   Problem& problem) noexcept {
  ParametersReader reader;
  if (!reader.unpack(bytes, length, size, problem)) return false;
  parameters = reader.parameters();
  return true;
}

std::uint64_t checksum(const Header* header) noexcept {
  const PackedHeader packed(header->parameters);
  const std::uint64_t seed =
      hash_bytes(packed.bytes + kHostWord, packed.size - kHostWord, kPackedMagic);
  return hash_bytes(header + 1, slices_bytes(header->parameters), seed);
}

}  // namespace streamfilter
