// Parameters of a filter: what the user asks for (Definition), and what it is completed to
// (Parameters, stored in the filter's bytes).
#pragma once

#include <cstdint>
#include <cstring>

namespace streamfilter {

// Numbers are part of the stored format: never renumber.
enum class Kind : std::uint8_t {
  automatic = 0,
  bloom = 1,
  sbf = 2,
  rsbf = 3,
  bsbf = 4,
  bsbfsd = 5,
  rlbsbf = 6,
  sqf = 7,
  dsqf = 8,
  ibf2c = 9,
  ibfmc = 10,
  ibfh = 11,
  timer = 12,
  lru = 13,
  fplru = 14,
  clq = 15,
  ell = 16,
  vqf = 17,
};

// scattered: the cells of a key lie anywhere, as in the papers. blocked: all lie in one 64-byte
// line.
enum class Layout : std::uint8_t { scattered = 0, blocked = 1 };
inline constexpr const char* kLayoutWords[] = {"scattered", "blocked", nullptr};

// Meaning of a NULL in a key: `distinct` rows are never repeats and are not remembered.
enum class Nulls : std::uint8_t { distinct = 0, not_distinct = 1 };
inline constexpr const char* kNullsWords[] = {"distinct", "not distinct", nullptr};

// Which slices the bits of a key lie in: layout.hpp. `diced` has two numbers of slices, S and S2,
// in one of two orders.
enum class Slicing : std::uint8_t { horizontal = 0, vertical = 1, diced = 2 };
inline constexpr const char* kSlicingWords[] = {"horizontal", "vertical", "diced", nullptr};
enum class Dice : std::uint8_t { hv = 0, vh = 1 };
inline constexpr const char* kDiceWords[] = {"hv", "vh", nullptr};

constexpr unsigned kMaxWords = 47;

// Complete parameters; part of the stored format. A kind keeps its own in `word`, by the numbers in
// its option table; words without an option hold derived numbers.
struct Parameters {
  Kind kind;
  Layout layout;
  Nulls nulls;
  // 0: Element.hash is a hash of the key. Otherwise it is the key itself, an integer, and keys that
  // agree in all bits from this one on share a slice. Set by the kind.
  std::uint8_t key_shift;
  std::uint32_t slices;       // independently locked parts, >= 1
  std::uint64_t memory;       // at most so many bytes are stored (kStoredHeader and the slices)
  std::uint64_t slice_bytes;  // bytes of one slice, a multiple of 64
  std::uint64_t keys;         // distinct keys expected; 0: not given
  double fpr;                 // false-positive rate asked for; 0: not given
  std::uint64_t seed;         // of the key hash
  std::uint64_t word[kMaxWords];
  Slicing slicing;
  Dice dice;
  std::uint8_t k1, k2;    // probes of a key, and its bits in each; 0, 0: one probe with all bits
  std::uint32_t slices2;  // diced: S2, where `slices` is S * S2; otherwise 0

  std::uint64_t integer(unsigned index) const noexcept { return word[index]; }
  double real(unsigned index) const noexcept {
    double value;
    std::memcpy(&value, &word[index], sizeof value);
    return value;
  }
  void set_integer(unsigned index, std::uint64_t value) noexcept { word[index] = value; }
  void set_real(unsigned index, double value) noexcept {
    std::memcpy(&word[index], &value, sizeof value);
  }
};

enum class OptionType : std::uint8_t {
  integer,  // a whole number; also written 1e6
  real,
  choice,  // one word of a list, stored as its index
  reals,   // a list of numbers: the count, then the numbers, in consecutive words
  span,    // time or rows ('10 minutes', '1000000 rows'): the amount, in microseconds or rows,
           // then in the next word 0 for time and 1 for rows
};

// Is a number that holds for each slice, or for all slices together, divided among them? Or does
// that of some slices follow from their other parameters?
enum class Share : std::uint8_t { none, rounded_up, rounded_down, follows };

// An option of a kind. Tables of these drive parsing, range checks, printing and hints.
struct OptionSpec {
  unsigned word;  // index of its Parameters::word
  const char* name;
  OptionType type;
  double low = 0;                        // smallest allowed value (of each element, for lists)
  double high = 0;                       // largest allowed value; for `reals` see also max_count
  const char* const* choices = nullptr;  // ends with nullptr; only for `choice`
  unsigned max_count = 0;                // only for `reals`
  Share share = Share::none;             // only for `integer`, and for `span`s in rows
};

// Is an option of a kind in use? 0 means "not given" if it is no allowed value.
inline bool in_use(const Parameters& parameters, const OptionSpec& option) noexcept {
  return parameters.integer(option.word) != 0 ||
         (option.low <= 0 && option.type != OptionType::reals);
}

// A set of words.
using WordSet = std::uint64_t;
static_assert(kMaxWords <= 64);

constexpr WordSet words(auto... index) noexcept { return (... | (WordSet{1} << index)); }

// The options of every kind, in the order of the text form.
enum class Common : std::uint8_t {
  kind,
  memory,
  keys,
  fpr,
  layout,
  nulls,
  seed,
  slices,
  slicing,
  dice,
  k1,
  k2,
};

constexpr std::uint32_t set_of(auto... options) noexcept {
  return (... | (std::uint32_t{1} << static_cast<unsigned>(Common{options})));
}

// Options given so far; filter/definition_text.hpp derives the rest.
struct Definition {
  Parameters parameters{};
  WordSet given = 0;             // the kind's own options
  std::uint32_t common = 0;      // options of every kind, a bit for each
  bool may_break_fpr = false;    // accept parameters that cannot keep fpr, to be measured
  bool breaks_fpr = false;       // such parameters were accepted
  const char* reason = nullptr;  // why `complete` has chosen the kind; nullptr: it was given

  bool has(unsigned index) const noexcept { return given >> index & 1; }
  bool is_given(auto... options) const noexcept { return (common & set_of(options...)) != 0; }
  void give(auto... options) noexcept { common |= set_of(options...); }
  void leave_out(auto... options) noexcept { common &= ~set_of(options...); }
  bool has_probes() const noexcept { return is_given(Common::k1, Common::k2); }
  // The false-positive rate to derive parameters for.
  double wanted_fpr() const noexcept { return parameters.fpr > 0 ? parameters.fpr : kDefaultFpr; }

  // Call when no derived parameters keep fpr. True: accept the best ones; the parameters then say
  // what was asked for. False: refuse, as always if more options of the kind are given than
  // `wishes`, which say what the filter should do.
  bool break_fpr(WordSet wishes = 0) noexcept {
    if (!may_break_fpr || (given & ~wishes) != 0) return false;
    parameters.fpr = wanted_fpr();
    return breaks_fpr = true;
  }

  static constexpr double kDefaultFpr = 0.01;
};

}  // namespace streamfilter
