#include "core/filter/time_span.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <iterator>

#include "core/base/layer_wall.hpp"

namespace streamfilter {
namespace {

constexpr std::uint64_t kMillisecond = 1000, kSecond = 1000000, kMinute = 60 * kSecond,
                        kHour = 60 * kMinute, kDay = 24 * kHour, kWeek = 7 * kDay,
                        kMonth = 30 * kDay, kYear = 12 * kMonth;

struct Unit {
  const char* name;
  std::uint64_t size;
};
constexpr Unit kUnits[] = {
    {"us", 1},
    {"usec", 1},
    {"usecs", 1},
    {"usecond", 1},
    {"useconds", 1},
    {"microsecon", 1},
    {"microsecond", 1},
    {"microseconds", 1},
    {"ms", kMillisecond},
    {"msec", kMillisecond},
    {"msecs", kMillisecond},
    {"msecond", kMillisecond},
    {"mseconds", kMillisecond},
    {"millisecond", kMillisecond},
    {"milliseconds", kMillisecond},
    {"s", kSecond},
    {"sec", kSecond},
    {"secs", kSecond},
    {"second", kSecond},
    {"seconds", kSecond},
    {"m", kMinute},
    {"min", kMinute},
    {"mins", kMinute},
    {"minute", kMinute},
    {"minutes", kMinute},
    {"h", kHour},
    {"hr", kHour},
    {"hrs", kHour},
    {"hour", kHour},
    {"hours", kHour},
    {"d", kDay},
    {"day", kDay},
    {"days", kDay},
    {"w", kWeek},
    {"week", kWeek},
    {"weeks", kWeek},
    {"mon", kMonth},
    {"mons", kMonth},
    {"month", kMonth},
    {"months", kMonth},
    {"y", kYear},
    {"yr", kYear},
    {"yrs", kYear},
    {"year", kYear},
    {"years", kYear},
    {"dec", 10 * kYear},
    {"decs", 10 * kYear},
    {"decade", 10 * kYear},
    {"decades", 10 * kYear},
    {"c", 100 * kYear},
    {"cent", 100 * kYear},
    {"century", 100 * kYear},
    {"centuries", 100 * kYear},
    {"mil", 1000 * kYear},
    {"mils", 1000 * kYear},
    {"millennia", 1000 * kYear},
    {"millennium", 1000 * kYear},
};

bool is_letter(char c) noexcept { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

class Reader {
 public:
  explicit Reader(const char* text) noexcept : at_(text), end_(text + std::strlen(text)) {}

  bool read(std::int64_t& result) noexcept {
    skip_spaces();
    if (peek() == '@') ++at_;
    skip_spaces();
    const bool is_iso = to_lower(peek()) == 'p' && (!is_letter(at_[1]) || to_lower(at_[1]) == 't');
    if (!(is_iso ? read_iso() : read_parts()) || at_ != end_ || parts_ == 0) return false;
    constexpr auto kMost = static_cast<__int128>(kLongestSpan);
    result = static_cast<std::int64_t>(std::clamp(ago_ ? -sum_ : sum_, -kMost, kMost));
    return true;
  }

 private:
  // A number, its whole part exact.
  struct Number {
    bool negative;
    double value;         // without its sign
    std::uint64_t whole;  // if it is
    bool is_whole;

    __int128 times(std::uint64_t unit) const noexcept {
      constexpr double kMost = 1e30;
      const __int128 product = is_whole ? static_cast<__int128>(whole) * static_cast<__int128>(unit)
                                        : static_cast<__int128>(std::round(
                                              std::min(value * static_cast<double>(unit), kMost)));
      return negative ? -product : product;
    }
  };

  char peek() const noexcept { return at_ < end_ ? *at_ : '\0'; }

  void skip_spaces() noexcept {
    while (is_space(peek())) ++at_;
  }

  bool take(char c) noexcept {
    if (to_lower(peek()) != c) return false;
    ++at_;
    return true;
  }

  void add(__int128 amount) noexcept {
    constexpr auto kMost = static_cast<__int128>(1) << 120;
    sum_ = std::clamp(sum_ + std::clamp(amount, -kMost, kMost), -kMost, kMost);
    ++parts_;
  }

  bool read_number(Number& number) noexcept {
    number.negative = peek() == '-';
    if (peek() == '-' || peek() == '+') ++at_;
    if (!is_digit(peek()) && !(peek() == '.' && is_digit(at_[1]))) return false;
    const auto [stop, error] = std::from_chars(at_, end_, number.value);
    if (error != std::errc{}) return false;
    const auto [whole_stop, whole_error] = std::from_chars(at_, end_, number.whole);
    number.is_whole = whole_error == std::errc{} && whole_stop == stop;
    at_ = stop;
    return true;
  }

  // Behind hours, or minutes where seconds have a fraction: ':MM', ':MM:SS', ':SS.S'.
  bool read_clock(const Number& first) noexcept {
    Number second{}, third{};
    if (!first.is_whole || !take(':') || !read_number(second) || second.negative) return false;
    const bool has_hours = second.is_whole;
    if (take(':')) {
      if (!has_hours || !read_number(third) || third.negative) return false;
    }
    if (second.value > (has_hours ? 59 : 60) || third.value > 60) return false;
    const __int128 parts =
        has_hours ? second.times(kMinute) + third.times(kSecond) : second.times(kSecond);
    add(first.times(has_hours ? kHour : kMinute) + (first.negative ? -parts : parts));
    return true;
  }

  bool read_unit(std::uint64_t& size) noexcept {
    const char* start = at_;
    while (is_letter(peek())) ++at_;
    const auto length = static_cast<std::size_t>(at_ - start);
    for (const Unit& unit : kUnits)
      if (std::strlen(unit.name) == length &&
          std::equal(start, at_, unit.name, [](char a, char b) { return to_lower(a) == b; })) {
        size = unit.size;
        return true;
      }
    return false;
  }

  // 'ago' ends it.
  bool read_ago() noexcept {
    if (end_ - at_ < 3 || to_lower(at_[0]) != 'a' || to_lower(at_[1]) != 'g' ||
        to_lower(at_[2]) != 'o')
      return false;
    at_ += 3;
    skip_spaces();
    return ago_ = true;
  }

  bool read_part() noexcept {
    Number number{};
    if (!read_number(number)) return false;
    if (peek() == ':') return read_clock(number);
    if (peek() == '-' && number.is_whole) {  // years and months
      Number months{};
      ++at_;
      if (!read_number(months) || !months.is_whole || months.negative || months.whole > 11)
        return false;
      months.negative = number.negative;
      add(number.times(kYear) + months.times(kMonth));
      return true;
    }
    skip_spaces();
    std::uint64_t size;
    if (is_letter(peek())) {
      if (!read_unit(size)) return false;
      add(number.times(size));
      return true;
    }
    // Days stand in front of a clock without a unit.
    add(number.times(kDay));
    Number hours{};
    return read_number(hours) && peek() == ':' && read_clock(hours);
  }

  bool read_parts() noexcept {
    while (at_ < end_) {
      if (parts_ > 0 && read_ago()) break;
      if (!read_part()) return false;
      skip_spaces();
    }
    return true;
  }

  // 'P1Y2M3W4DT5H6M7S', 'P0001-02-03T04:05:06'.
  bool read_iso() noexcept {
    ++at_;
    bool is_time = false;
    while (at_ < end_ && !is_space(peek())) {
      if (!is_time && take('t')) {
        is_time = true;
        continue;
      }
      Number number{};
      if (!read_number(number)) return false;
      if (is_time && peek() == ':') {
        if (!read_clock(number)) return false;
      } else if (!is_time && peek() == '-') {
        if (!read_date(number)) return false;
      } else if (!read_iso_unit(number, is_time)) {
        return false;
      }
    }
    skip_spaces();
    return true;
  }

  bool read_date(const Number& years) noexcept {
    Number months{}, days{};
    if (!take('-') || !read_number(months) || !take('-') || !read_number(days) || months.negative ||
        days.negative)
      return false;
    const __int128 rest = months.times(kMonth) + days.times(kDay);
    add(years.times(kYear) + (years.negative ? -rest : rest));
    return true;
  }

  bool read_iso_unit(const Number& number, bool is_time) noexcept {
    constexpr Unit kDates[] = {{"y", kYear}, {"m", kMonth}, {"w", kWeek}, {"d", kDay}};
    constexpr Unit kTimes[] = {{"h", kHour}, {"m", kMinute}, {"s", kSecond}};
    const Unit* units = is_time ? kTimes : kDates;
    const std::size_t count = is_time ? std::size(kTimes) : std::size(kDates);
    for (std::size_t i = 0; i < count; ++i)
      if (take(units[i].name[0])) {
        add(number.times(units[i].size));
        return true;
      }
    return false;
  }

  const char* at_;
  const char* end_;
  __int128 sum_ = 0;
  unsigned parts_ = 0;
  bool ago_ = false;
};

}  // namespace

bool parse_time_span(const char* text, std::int64_t& microseconds) noexcept {
  return Reader(text).read(microseconds);
}

void write_time_span(TextWriter& out, std::uint64_t microseconds) noexcept {
  struct Name {
    const char* one;
    const char* many;
    std::uint64_t size;
  };
  static constexpr Name kNames[] = {
      {" day", " days", kDay},          {" hour", " hours", kHour},
      {" minute", " minutes", kMinute}, {" second", " seconds", kSecond},
      {" ms", " ms", kMillisecond},     {" us", " us", 1}};
  const Name* name = kNames;
  while (microseconds % name->size != 0) ++name;
  const std::uint64_t count = microseconds / name->size;
  out.add(count);
  out.add(count == 1 ? name->one : name->many);
}

}  // namespace streamfilter
