#include "core/filter/time_span.hpp"

#include <cmath>

namespace streamfilter {
namespace {

constexpr std::uint64_t kMillisecond = 1000, kSecond = 1000000, kMinute = 60 * kSecond,
                        kHour = 60 * kMinute, kDay = 24 * kHour, kWeek = 7 * kDay,
                        kMonth = 30 * kDay, kYear = 12 * kMonth;

struct Unit {
  std::uint64_t size;
  const char* words[7];  // first those that are written, of one and of many
};
constexpr Unit kUnits[] = {
    {1, {"us", "us", "usec", "usecs", "microsecond", "microseconds"}},
    {kMillisecond, {"ms", "ms", "msec", "msecs", "millisecond", "milliseconds"}},
    {kSecond, {"second", "seconds", "s", "sec", "secs"}},
    {kMinute, {"minute", "minutes", "m", "min", "mins"}},
    {kHour, {"hour", "hours", "h"}},
    {kDay, {"day", "days", "d"}},
    {kWeek, {"week", "weeks", "w"}},
    {kMonth, {"month", "months", "mon", "mons"}},
    {kYear, {"year", "years", "y"}},
};
constexpr int kLargestWritten = 5;
static_assert(kUnits[kLargestWritten].size == kDay);

bool is_letter(char c) noexcept { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// Parts are amounts with a unit, and clocks.
class Reader {
 public:
  explicit Reader(const char* text) noexcept : at_(text), end_(text + std::strlen(text)) {}

  bool read(std::int64_t& result) noexcept {
    skip_spaces();
    if (at_ == end_) return false;
    while (at_ < end_) {
      if (!read_part()) return false;
      skip_spaces();
    }
    result = static_cast<std::int64_t>(sum_);
    return true;
  }

 private:
  // A number, its whole part exact.
  struct Number {
    double value;
    std::uint64_t whole;  // if it is
    bool is_whole;

    unsigned __int128 times(std::uint64_t unit) const noexcept {
      constexpr double kMost = 1e30;
      return is_whole ? static_cast<unsigned __int128>(whole) * unit
                      : static_cast<unsigned __int128>(
                            std::round(std::min(value * static_cast<double>(unit), kMost)));
    }
  };

  char peek() const noexcept { return at_ < end_ ? *at_ : '\0'; }

  void skip_spaces() noexcept {
    while (is_space(peek())) ++at_;
  }

  void add(unsigned __int128 amount) noexcept {
    constexpr auto kMost = static_cast<unsigned __int128>(kLongestSpan);
    sum_ = std::min(sum_ + std::min(amount, kMost), kMost);
  }

  bool read_number(Number& number) noexcept {
    if (!is_digit(peek()) && !(peek() == '.' && is_digit(at_[1]))) return false;
    const auto [stop, error] = std::from_chars(at_, end_, number.value);
    if (error != std::errc{}) return false;
    const auto [whole_stop, whole_error] = std::from_chars(at_, end_, number.whole);
    number.is_whole = whole_error == std::errc{} && whole_stop == stop;
    at_ = stop;
    return true;
  }

  // Behind hours: ':MM', ':MM:SS', ':MM:SS.S'.
  bool read_clock(const Number& hours) noexcept {
    Number minutes{}, seconds{};
    ++at_;
    if (!hours.is_whole || !read_number(minutes) || !minutes.is_whole || minutes.whole > 59)
      return false;
    if (peek() == ':') {
      ++at_;
      if (!read_number(seconds) || seconds.value >= 60) return false;
    }
    add(hours.times(kHour) + minutes.times(kMinute) + seconds.times(kSecond));
    return true;
  }

  bool read_unit(std::uint64_t& size) noexcept {
    char word[16] = {};  // longer than any of them
    for (std::size_t length = 0; is_letter(peek()); ++at_)
      if (length + 1 < sizeof word) word[length++] = to_lower(*at_);
    for (const Unit& unit : kUnits)
      if (find_word(unit.words, word) >= 0) {
        size = unit.size;
        return true;
      }
    return false;
  }

  bool read_part() noexcept {
    Number number{};
    if (!read_number(number)) return false;
    if (peek() == ':') return read_clock(number);
    skip_spaces();
    std::uint64_t size;
    if (!read_unit(size)) return false;
    add(number.times(size));
    return true;
  }

  const char* at_;
  const char* end_;
  unsigned __int128 sum_ = 0;
};

}  // namespace

bool parse_time_span(const char* text, std::int64_t& microseconds) noexcept {
  return Reader(text).read(microseconds);
}

void write_time_span(TextWriter& out, std::uint64_t microseconds) noexcept {
  const Unit* unit = &kUnits[kLargestWritten];
  while (microseconds % unit->size != 0) --unit;
  const std::uint64_t count = microseconds / unit->size;
  out.add(count);
  out.add(" ");
  out.add(unit->words[count == 1 ? 0 : 1]);
}

}  // namespace streamfilter
