
#include "core/filter/definition_text.hpp"
#include "core/filter/auto_kind.hpp"

namespace streamfilter {
namespace {

// Reads the parts of a definition from left to right.
class Reader {
 public:
  Reader(const char* text, std::size_t length) noexcept
      : start_(text), at_(text), end_(text + length) {}

  void skip_spaces() noexcept {
    while (at_ < end_ && is_space(*at_)) ++at_;
  }

  bool is_at_end() const noexcept { return at_ == end_; }

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
    const char* start = at_;
    const char quote = at_ < end_ && (*at_ == '\'' || *at_ == '"') ? *at_++ : '\0';
    while (at_ < end_ && (quote ? *at_ != quote : *at_ != ',' && *at_ != ')')) {
      if (length + 1 == size) {
        at_ = start;  // not amid a character
        return false;
      }
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

// The options of text in their order; those of a diced filter end with its two numbers of slices.
const CommonOption& option_at(unsigned place, const Parameters& parameters) noexcept {
  auto id = static_cast<Common>(place);
  if (parameters.slicing == Slicing::diced && id >= Common::slices && id <= Common::dice)
    id = id == Common::dice ? Common::slices : static_cast<Common>(place + 1);
  return find_common(id);
}

// Lists of numbers are quoted: a comma ends a value.
template <typename Write>
void write_value(TextWriter& out, Write write) noexcept {
  char value[512];
  TextWriter text(value, sizeof value);
  write(text);
  const char* quote = std::strchr(value, ',') != nullptr ? "'" : "";
  out.add(quote);
  out.add(value);
  out.add(quote);
}

}  // namespace

bool parse_definition(const char* text, std::size_t length, Definition& definition,
                      std::size_t& used, Problem& problem) noexcept {
  Reader reader(text, length);
  char name[64], value[512];
  reader.skip_spaces();
  if (!reader.name(name)) return syntax_error(reader, "a kind of filter", problem);
  if (!set_option(definition, "kind", name, problem)) return false;
  reader.skip_spaces();
  if (reader.is_at_end()) {  // a kind alone
    used = reader.used();
    return true;
  }
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
  TextWriter out(buffer, size);
  out.add(ops->name);
  const char* before = "(";
  const auto begin = [&](const char* name) {
    out.add(before);
    out.add(name);
    out.add("=");
    before = ", ";
  };
  for (unsigned rank = 1; rank < kCommonOptionCount; ++rank) {
    const CommonOption& option = option_at(rank, parameters);
    if (!option.is_needed(parameters)) continue;
    begin(option.name);
    write_value(out, [&](TextWriter& text) { option.write(text, parameters); });
  }
  for (const OptionSpec& option : ops->options) {
    if (!in_use(parameters, option)) continue;
    const char* quote = option.type == OptionType::reals ? "'" : "";
    begin(option.name);
    out.add(quote);
    write_option(out, parameters, option);
    out.add(quote);
  }
  out.add(")");
  return out.length();
}

// ---- from options to parameters -----------------------------------------------------------------

bool complete(Definition& definition, Problem& problem) noexcept {
  if (definition.parameters.kind == Kind::automatic) {
    // The promise is the reason for the choice, so leniency must not influence it.
    definition.may_break_fpr = false;
    choose_kind(definition);
  }
  return derive_parameters(definition, problem);
}

bool mergeable(const Parameters& a, const Parameters& b, Problem& problem) noexcept {
  const FilterOps* ops = find_ops(a.kind);
  if (a.kind != b.kind) {
    problem.set(Error::mismatch, "filters of different kinds cannot be merged");
    return problem.add_detail("One is of kind %s, the other of kind %s.", ops->name,
                              find_ops(b.kind)->name);
  }
  if (ops->merge == nullptr)
    return problem.set(Error::unsupported, "filters of kind %s cannot be merged", ops->name);
  if (a.seed != b.seed) {
    problem.set(Error::mismatch, "filters with different seeds cannot be merged");
    problem.add_detail("One has the seed %llu, the other %llu.", llu(a.seed), llu(b.seed));
    return problem.add_hint(
        "Values have the same seed unless told otherwise; give named filters "
        "that are to be merged the same option seed.");
  }
  Parameters other = b;
  copy_options(other, a, kRequests);
  if (std::memcmp(&a, &other, sizeof a) == 0) return true;
  problem.set(Error::mismatch, "filters with different parameters cannot be merged");
  char left[180], right[180];
  print_definition(a, left, sizeof left);
  print_definition(b, right, sizeof right);
  problem.add_detail("One is %s, the other %s.", left, right);
  return problem.add_hint("Fill one of them again, from its keys, by the definition of the other.");
}

}  // namespace streamfilter
