// Definitions as text: `sbf(memory=64kB, fpr=0.01)`.
#include <charconv>
#include <cmath>
#include <cstdio>

#include "core/kind/filter_ops.hpp"

#include "core/base/layer_wall.hpp"

namespace streamfilter {
namespace {

struct SizeUnit {
  const char* name;
  unsigned shift;
};
constexpr SizeUnit kSizeUnits[] = {{"TB", 40}, {"GB", 30}, {"MB", 20}, {"kB", 10}, {"B", 0}};

bool is_space(char c) noexcept { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// Reads the parts of a definition from left to right.
class Reader {
 public:
  Reader(const char* text, std::size_t length) noexcept
      : start_(text), at_(text), end_(text + length) {}

  void skip_spaces() noexcept {
    while (at_ < end_ && is_space(*at_)) ++at_;
  }

  bool take(char c) noexcept {
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }

  // A name: letters, digits and underscores. False if there is none or it is too long.
  template <std::size_t size>
  bool name(char (&buffer)[size]) noexcept {
    std::size_t length = 0;
    while (at_ < end_ && is_name(*at_)) {
      if (length + 1 == size) return false;
      buffer[length++] = *at_++;
    }
    buffer[length] = '\0';
    return length > 0;
  }

  // A value: up to the next comma or parenthesis, trailing spaces cut; or quoted by ' or ", and
  // then with commas.
  template <std::size_t size>
  bool value(char (&buffer)[size]) noexcept {
    std::size_t length = 0;
    const char quote = at_ < end_ && (*at_ == '\'' || *at_ == '"') ? *at_++ : '\0';
    while (at_ < end_ && (quote ? *at_ != quote : *at_ != ',' && *at_ != ')')) {
      if (length + 1 == size) return false;
      buffer[length++] = *at_++;
    }
    if (quote && !take(quote)) return false;
    while (!quote && length > 0 && is_space(buffer[length - 1])) --length;
    buffer[length] = '\0';
    return true;
  }

  std::size_t used() const noexcept { return static_cast<std::size_t>(at_ - start_); }
  Excerpt rest() const noexcept { return Excerpt(at_, static_cast<std::size_t>(end_ - at_), 30); }

 private:
  static bool is_name(char c) noexcept {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  }

  const char* start_;
  const char* at_;
  const char* end_;
};

bool syntax_error(const Reader& reader, const char* expected, Problem& problem) noexcept {
  problem.set(Error::syntax, "invalid input syntax for type streamfilter");
  problem.add_detail("Expected %s at \"%s\".", expected, reader.rest().text());
  return problem.add_hint("Write kind(option=value, ...), for example sbf(memory=64kB, fpr=0.01).");
}

// Appends text to a buffer; what does not fit is cut.
class Writer {
 public:
  Writer(char* buffer, std::size_t size) noexcept : buffer_(buffer), size_(size) {
    if (size_ > 0) buffer_[0] = '\0';
  }

  void add(const char* text) noexcept {
    for (; *text != '\0' && length_ + 1 < size_; ++text) buffer_[length_++] = *text;
    if (size_ > 0) buffer_[length_] = '\0';
  }

  void add(std::uint64_t number) noexcept {
    char text[24];
    *std::to_chars(text, text + sizeof text - 1, number).ptr = '\0';
    add(text);
  }

  // The shortest text that reads back as the same number.
  void add(double number) noexcept {
    char text[40];
    *std::to_chars(text, text + sizeof text - 1, number).ptr = '\0';
    add(text);
  }

  void begin_option(const char* name) noexcept {
    add(first_ ? "" : ", ");
    add(name);
    add("=");
    first_ = false;
  }

  std::size_t length() const noexcept { return length_; }

 private:
  char* buffer_;
  std::size_t size_;
  std::size_t length_ = 0;
  bool first_ = true;
};

void write_span(Writer& out, std::uint64_t amount, bool rows) noexcept {
  struct Unit {
    const char* one;
    const char* many;
    std::uint64_t size;  // in microseconds or rows
  };
  static constexpr Unit kRows = {" row", " rows", 1};
  static constexpr Unit kUnits[] = {{" day", " days", 86400000000},
                                    {" hour", " hours", 3600000000},
                                    {" minute", " minutes", 60000000},
                                    {" second", " seconds", 1000000},
                                    {" ms", " ms", 1000},
                                    {" us", " us", 1}};
  const Unit* unit = rows ? &kRows : kUnits;
  while (amount % unit->size != 0) ++unit;
  const std::uint64_t count = amount / unit->size;
  out.add(count);
  out.add(count == 1 ? unit->one : unit->many);
}

void write_option(Writer& out, const Parameters& parameters, const OptionSpec& option) noexcept {
  switch (option.type) {
    case OptionType::integer: out.add(parameters.integer(option.slot)); break;
    case OptionType::real: out.add(parameters.real(option.slot)); break;
    case OptionType::choice: out.add(option.choices[parameters.integer(option.slot)]); break;
    case OptionType::span:
      write_span(out, parameters.integer(option.slot), parameters.integer(option.slot + 1) != 0);
      break;
    case OptionType::reals:
      for (unsigned i = 0; i < parameters.integer(option.slot); ++i) {
        out.add(i > 0 ? "," : "");
        out.add(parameters.real(option.slot + 1 + i));
      }
      break;
  }
}

void write_slicing(Writer& out, const Parameters& parameters) noexcept {
  const auto number = [&](const char* name, std::uint64_t value) {
    out.begin_option(name);
    out.add(value);
  };
  if (parameters.slicing == Slicing::diced) {
    char slices[32];
    print_slices(parameters, slices, sizeof slices);
    out.begin_option("slicing");
    out.add("diced");
    out.begin_option("dice");
    out.add(parameters.dice == Dice::hv ? "hv" : "vh");
    out.begin_option("slices");
    out.add("'");
    out.add(slices);
    out.add("'");
    return;
  }
  if (parameters.slices != default_slices(parameters.memory)) number("slices", parameters.slices);
  if (parameters.slicing == Slicing::vertical) {
    out.begin_option("slicing");
    out.add("vertical");
  } else if (parameters.k1 > 0) {
    number("k1", parameters.k1);
    number("k2", parameters.k2);
  }
}

}  // namespace

void print_slices(const Parameters& parameters, char* buffer, std::size_t size) noexcept {
  Writer out(buffer, size);
  const bool two = parameters.slices2 > 0;
  out.add(std::uint64_t{two ? parameters.slices / parameters.slices2 : parameters.slices});
  if (!two) return;
  out.add(",");
  out.add(std::uint64_t{parameters.slices2});
}

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
  for (const SizeUnit& known : kSizeUnits)
    if (std::strcmp(known.name, unit) == 0) {
      bytes = number << known.shift;
      return bytes >> known.shift == number;
    }
  return false;
}

void print_size(std::uint64_t bytes, char* buffer, std::size_t size) noexcept {
  Writer out(buffer, size);
  for (const SizeUnit& unit : kSizeUnits)
    if (bytes != 0 && bytes % (std::uint64_t{1} << unit.shift) == 0) {
      out.add(bytes >> unit.shift);
      if (unit.shift > 0) out.add(unit.name);
      return;
    }
  out.add(bytes);
}

std::size_t print_option(const Parameters& parameters, const OptionSpec& option, char* buffer,
                         std::size_t size) noexcept {
  Writer out(buffer, size);
  write_option(out, parameters, option);
  return out.length();
}

bool parse_definition(const char* text, std::size_t length, Definition& definition,
                      std::size_t& used, Problem& problem) noexcept {
  Reader reader(text, length);
  char name[64], value[512];
  reader.skip_spaces();
  if (!reader.name(name)) return syntax_error(reader, "a kind of filter", problem);
  if (!set_option(definition, "kind", name, problem)) return false;
  reader.skip_spaces();
  if (!reader.take('(')) return syntax_error(reader, "\"(\"", problem);
  reader.skip_spaces();
  for (bool first = true; !reader.take(')'); first = false) {
    if (!first && !reader.take(',')) return syntax_error(reader, "\",\" or \")\"", problem);
    reader.skip_spaces();
    if (!reader.name(name)) return syntax_error(reader, "the name of an option", problem);
    reader.skip_spaces();
    if (!reader.take('=')) return syntax_error(reader, "\"=\"", problem);
    reader.skip_spaces();
    if (!reader.value(value)) return syntax_error(reader, "a value", problem);
    if (std::strcmp(name, "kind") == 0) return syntax_error(reader, "one kind only", problem);
    if (!set_option(definition, name, value, problem)) return false;
    reader.skip_spaces();
  }
  used = reader.used();
  return true;
}

std::size_t print_definition(const Parameters& parameters, char* buffer,
                             std::size_t size) noexcept {
  const FilterOps* ops = find_ops(parameters.kind);
  Writer out(buffer, size);
  char memory[32];
  out.add(ops->name);
  out.add("(");
  out.begin_option("memory");
  print_size(parameters.memory, memory, sizeof memory);
  out.add(memory);
  const auto number = [&](const char* name, std::uint64_t value) {
    out.begin_option(name);
    out.add(value);
  };
  if (parameters.keys > 0) number("keys", parameters.keys);
  if (parameters.fpr > 0) {
    out.begin_option("fpr");
    out.add(parameters.fpr);
  }
  if (parameters.layout == Layout::blocked) {
    out.begin_option("layout");
    out.add("blocked");
  }
  if (parameters.nulls == Nulls::not_distinct) {
    out.begin_option("nulls");
    out.add("not distinct");
  }
  if (parameters.seed != 0) number("seed", parameters.seed);
  write_slicing(out, parameters);
  for (unsigned i = 0; i < ops->option_count; ++i) {
    const OptionSpec& option = ops->options[i];
    if (!in_use(parameters, option)) continue;
    const bool list = option.type == OptionType::reals;
    out.begin_option(option.name);
    if (list) out.add("'");
    write_option(out, parameters, option);
    if (list) out.add("'");
  }
  out.add(")");
  return out.length();
}

}  // namespace streamfilter
