#include "core/filter/option_values.hpp"

#include <cmath>

#include "core/base/math_policy.hpp"
#include "core/filter/time_span.hpp"

namespace streamfilter {
namespace {

struct SizeUnit {
  const char* name;
  unsigned shift;
};
constexpr SizeUnit kSizeUnits[] = {{"TB", 40}, {"GB", 30}, {"MB", 20}, {"kB", 10}, {"B", 0}};

bool set_reals(Definition& definition, const OptionSpec& option, const char* value,
               Problem& problem) noexcept {
  Parameters& p = definition.parameters;
  unsigned count = 0;
  for (const char* at = value;;) {
    const char* comma = std::strchr(at, ',');
    const char* end = comma != nullptr ? comma : at + std::strlen(at);
    while (at < end && *at == ' ') ++at;
    double real;
    const auto [stop, error] = std::from_chars(at, end, real);
    if (error != std::errc{} || stop != end) {
      bad_value(problem, Error::syntax, option.name, value);
      return problem.add_hint("Give numbers from %.15g to %.15g, separated by commas.", option.low,
                              option.high);
    }
    if (!(real >= option.low && real <= option.high))
      return bad_range(problem, option.name, value, option.low, option.high);
    if (count == option.max_count) {
      bad_value(problem, Error::out_of_range, option.name, value);
      return problem.add_detail("At most %u %s can be given.", option.max_count,
                                option.max_count == 1 ? "number" : "numbers");
    }
    p.set_real(option.word + 1 + count++, real);
    if (comma == nullptr) break;
    at = comma + 1;
  }
  p.set_integer(option.word, count);
  return true;
}

// '1000000 rows': the number. False: it is no number of rows.
bool parse_rows(const char* value, double& amount, std::uint64_t& rows) noexcept {
  const char* end = value + std::strlen(value);
  const auto [stop, error] = std::from_chars(value, end, amount);
  const char* unit = stop;
  while (*unit == ' ') ++unit;
  if (error != std::errc{} || (std::strcmp(unit, "row") != 0 && std::strcmp(unit, "rows") != 0))
    return false;
  // Beyond 2^53 a double does not hold every whole number.
  if (std::from_chars(value, end, rows).ptr != stop)
    rows = saturate<std::uint64_t>(std::round(amount));
  return true;
}

// A time, or rows.
bool set_span(Definition& definition, const OptionSpec& option, const char* value,
              Problem& problem) noexcept {
  double amount;
  std::uint64_t word;
  std::int64_t time;
  const bool rows = parse_rows(value, amount, word);
  if (!rows && !parse_time_span(value, time)) {
    bad_value(problem, Error::syntax, option.name, value);
    return problem.add_hint(
        "Give a time such as '10 minutes', '1 day 02:30' or '1 month' (of 30 days), or a number of "
        "rows such as '1000000 rows'.");
  }
  if (!rows) {
    amount = to_real(time);
    word = static_cast<std::uint64_t>(time);
  }
  if (!(amount >= option.low && amount <= option.high)) {
    problem.set(Error::out_of_range, "value \"%s\" is out of range for option \"%s\"",
                Excerpt(value).text(), option.name);
    return problem.add_detail("It must be between %.15g and %.15g %s.", option.low, option.high,
                              rows ? "rows" : "microseconds");
  }
  definition.parameters.set_integer(option.word, word);
  definition.parameters.set_integer(option.word + 1, rows ? 1 : 0);
  return true;
}

void write_span(TextWriter& out, std::uint64_t amount, bool rows) noexcept {
  if (!rows) return write_time_span(out, amount);
  out.add(amount);
  out.add(amount == 1 ? " row" : " rows");
}

}  // namespace

bool parse_size(const char* text, std::uint64_t& bytes) noexcept {
  const char* end = text + std::strlen(text);
  std::uint64_t number;
  const auto [stop, error] = std::from_chars(text, end, number);
  if (error != std::errc{}) return false;
  const char* unit = stop;
  while (is_space(*unit)) ++unit;
  if (*unit == '\0') {
    bytes = number;
    return unit == stop;
  }
  const SizeUnit* known = find_named(kSizeUnits, unit);
  if (known == nullptr) return false;
  bytes = number << known->shift;
  return bytes >> known->shift == number;
}

void print_size(std::uint64_t bytes, char* buffer, std::size_t size) noexcept {
  TextWriter out(buffer, size);
  for (const SizeUnit& unit : kSizeUnits)
    if (bytes != 0 && bytes % (std::uint64_t{1} << unit.shift) == 0) {
      out.add(bytes >> unit.shift);
      if (unit.shift > 0) out.add(unit.name);
      return;
    }
  out.add(bytes);
}

bool parse_real(const char* text, double& value) noexcept {
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, value);
  return error == std::errc{} && stop == end && end != text;
}

// A whole number; 1e6 and 1000000.0 are read, too. Plain digits are exact up to 2^64 - 1.
bool parse_integer(const char* text, std::uint64_t& value) noexcept {
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, value);
  if (error == std::errc{} && stop == end && end != text) return true;
  double real;
  if (!parse_real(text, real) || real != std::floor(real) || real < 0 || real >= 0x1p63)
    return false;
  value = static_cast<std::uint64_t>(real);
  return true;
}

bool bad_value(Problem& problem, Error error, const char* option, const char* value) noexcept {
  return problem.set(error, "invalid value for option \"%s\": \"%s\"", option,
                     Excerpt(value).text());
}

bool bad_range(Problem& problem, const char* option, const char* value, double low,
               double high) noexcept {
  problem.set(Error::out_of_range, "value \"%s\" is out of range for option \"%s\"",
              Excerpt(value).text(), option);
  return problem.add_detail("It must be between %.15g and %.15g.", low, high);
}

bool read_whole_number(const char* name, const char* value, double low, double high,
                       std::uint64_t& result, Problem& problem) noexcept {
  if (!parse_integer(value, result)) {
    double real;
    if (parse_real(value, real) && (real < low || real > high))
      return bad_range(problem, name, value, low, high);
    bad_value(problem, Error::syntax, name, value);
    return problem.add_hint("Give a whole number from %.15g to %.15g.", low, high);
  }
  if (to_real(result) < low || to_real(result) > high)
    return bad_range(problem, name, value, low, high);
  return true;
}

bool read_choice(const char* option, const char* value, WordList choices, std::uint64_t& result,
                 Problem& problem) noexcept {
  const int word = find_word(choices, value);
  result = static_cast<std::uint64_t>(word);
  if (word >= 0) return true;
  bad_value(problem, Error::syntax, option, value);
  char list[256];
  TextWriter out(list, sizeof list);
  add_words(out, choices);
  return problem.add_hint("Valid values are: %s.", list);
}

bool set_kind_option(Definition& definition, const OptionSpec& option, const char* value,
                     Problem& problem) noexcept {
  Parameters& p = definition.parameters;
  std::uint64_t number;
  double real;
  switch (option.type) {
    case OptionType::integer:
      if (!read_whole_number(option.name, value, option.low, option.high, number, problem))
        return false;
      p.set_integer(option.word, number);
      break;
    case OptionType::real:
      if (!parse_real(value, real)) {
        bad_value(problem, Error::syntax, option.name, value);
        return problem.add_hint("Give a number from %.15g to %.15g.", option.low, option.high);
      }
      if (!(real >= option.low && real <= option.high))
        return bad_range(problem, option.name, value, option.low, option.high);
      p.set_real(option.word, real);
      break;
    case OptionType::choice:
      if (!read_choice(option.name, value, option.choices, number, problem)) return false;
      p.set_integer(option.word, number);
      break;
    case OptionType::reals:
      if (!set_reals(definition, option, value, problem)) return false;
      break;
    case OptionType::span:
      if (!set_span(definition, option, value, problem)) return false;
      break;
  }
  definition.given |= WordSet{1} << option.word;
  return true;
}

bool option_in_range(const Parameters& p, const OptionSpec& option) noexcept {
  const std::uint64_t word = p.integer(option.word);
  const auto within = [&](double value) { return value >= option.low && value <= option.high; };
  switch (option.type) {
    case OptionType::integer: return within(to_real(word));
    case OptionType::real: return within(p.real(option.word));
    case OptionType::span: return within(to_real(word)) && p.integer(option.word + 1) <= 1;
    case OptionType::choice:
      for (std::uint64_t i = 0; option.choices[i] != nullptr; ++i)
        if (i == word) return true;
      return false;
    case OptionType::reals:
      if (word > option.max_count) return false;
      for (unsigned i = 0; i < word; ++i)
        if (!within(p.real(option.word + 1 + i))) return false;
      return true;
  }
  return false;
}

unsigned words_of(const Parameters& p, const OptionSpec& option) noexcept {
  switch (option.type) {
    case OptionType::span: return 2;
    case OptionType::reals:
      return 1 + static_cast<unsigned>(
                     std::min<std::uint64_t>(p.integer(option.word), option.max_count));
    default: return 1;
  }
}

void write_option(TextWriter& out, const Parameters& parameters,
                  const OptionSpec& option) noexcept {
  switch (option.type) {
    case OptionType::integer: out.add(parameters.integer(option.word)); break;
    case OptionType::real: out.add(parameters.real(option.word)); break;
    case OptionType::choice: out.add(option.choices[parameters.integer(option.word)]); break;
    case OptionType::span:
      write_span(out, parameters.integer(option.word), counts_rows(parameters, option));
      break;
    case OptionType::reals:
      for (unsigned i = 0; i < parameters.integer(option.word); ++i) {
        out.add(i > 0 ? "," : "");
        out.add(parameters.real(option.word + 1 + i));
      }
      break;
  }
}

std::size_t print_option(const Parameters& parameters, const OptionSpec& option, char* buffer,
                         std::size_t size) noexcept {
  TextWriter out(buffer, size);
  write_option(out, parameters, option);
  return out.length();
}

bool is_same_option(const OptionSpec& option, const Parameters& a, const Parameters& b) noexcept {
  const unsigned words = words_of(a, option);
  return words == words_of(b, option) &&
         std::equal(a.word + option.word, a.word + option.word + words, b.word + option.word);
}

}  // namespace streamfilter
