#include "core/filter/slicing_rules.hpp"

#include <algorithm>

#include "core/filter/options.hpp"

#include "core/base/layer_wall.hpp"

namespace streamfilter {
namespace {

// k1 and k2 are a slicing of their own (§3.3): they say what k is. With k1 = 1 it is the horizontal
// one, with k2 = 1 the vertical one.
bool check_k1_k2(Definition& definition, const FilterOps& ops, Problem& problem) noexcept {
  Parameters& p = definition.parameters;
  if (p.k1 == 0 || p.k2 == 0) {
    problem.set(Error::conflict, "options k1 and k2 belong together");
    return problem.add_hint("A key has k1 places with k2 of its bits in each: give both.");
  }
  if (p.slicing != Slicing::horizontal) {
    problem.set(Error::conflict, "options k1 and k2 cannot be combined with slicing \"%s\"",
                p.slicing == Slicing::vertical ? "vertical" : "diced");
    return problem.add_hint("k1 places of k2 bits are a slicing of their own: leave slicing out.");
  }
  const OptionSpec& k = *find_option(ops, "k");
  const std::uint64_t bits = std::uint64_t{p.k1} * p.k2;
  if (definition.has(k.word) && p.integer(k.word) != bits) {
    problem.set(Error::conflict, "k1 times k2 is not k");
    return problem.add_detail("%u times %u is %u, but k is %u.", p.k1, p.k2,
                              static_cast<unsigned>(bits),
                              static_cast<unsigned>(p.integer(k.word)));
  }
  if (static_cast<double>(bits) > k.high) {
    problem.set(Error::out_of_range, "k1 times k2 is out of range");
    return problem.add_detail("It must be between 1 and %.15g.", k.high);
  }
  p.set_integer(k.word, bits);
  definition.given |= WordSet{1} << k.word;
  if (p.k1 > 1 && p.k2 > 1) return true;
  if (p.k2 == 1 && p.k1 > 1) p.slicing = Slicing::vertical;
  p.k1 = p.k2 = 0;
  definition.leave_out(Common::k1, Common::k2);
  return true;
}

// Divided by `part` and rounded the same way, it is what the whole is, divided by `of`.
std::uint64_t share_of(std::uint64_t whole, std::uint64_t part, std::uint64_t of,
                       Share share) noexcept {
  const std::uint64_t more = share == Share::rounded_up ? of - 1 : 0;
  const auto result = (static_cast<unsigned __int128>(whole) * part + more) / of;
  return std::max(static_cast<std::uint64_t>(result), std::uint64_t{1});
}

bool is_of_all_slices(const Parameters& p, const OptionSpec& option) noexcept {
  return option.share != Share::none && in_use(p, option) &&
         (option.type != OptionType::span || p.integer(option.word + 1) != 0);
}

}  // namespace

void take_share(Parameters& p, std::uint32_t slices) noexcept {
  if (slices == p.slices) return;
  const FilterOps* ops = find_ops(p.kind);
  for (const OptionSpec& option : ops->options) {
    if (option.share == Share::follows)
      p.set_integer(option.word, 0);
    else if (is_of_all_slices(p, option))
      p.set_integer(option.word, share_of(p.integer(option.word), slices, p.slices, option.share));
  }
}

bool check_slicing(Definition& definition, const FilterOps& ops, Problem& problem) noexcept {
  Parameters& p = definition.parameters;
  if (p.slicing == Slicing::diced ? p.slices2 == 0 : p.slices2 != 0) {
    problem.set(Error::conflict, p.slices2 == 0 ? "slicing \"diced\" needs two numbers of slices"
                                                : "two numbers of slices need slicing \"diced\"");
    return problem.add_hint("For example: slicing 'diced', slices '8,5'.");
  }
  if (p.slicing != Slicing::diced && (definition.is_given(Common::dice) || p.dice != Dice::hv)) {
    problem.set(Error::conflict, "option dice needs slicing \"diced\"");
    return problem.add_hint("For example: slicing 'diced', dice 'vh', slices '8,5'.");
  }
  if (p.slicing == Slicing::horizontal && !definition.has_probes()) return true;
  if (ops.insert_unconditionally == nullptr) {
    problem.set(Error::unsupported, "kind %s can be sliced horizontally only", ops.name);
    char names[80];
    list_kinds([](const FilterOps& other) { return other.insert_unconditionally != nullptr; },
               names, sizeof names);
    return problem.add_hint("Leave slicing out, or use one of the kinds: %s.", names);
  }
  if (p.layout == Layout::blocked) {
    problem.set(Error::conflict, "layout \"blocked\" goes with horizontal slices only");
    return problem.add_hint("It keeps all bits of a key in one line of one slice.");
  }
  return !definition.has_probes() || check_k1_k2(definition, ops, problem);
}

void derive_probes(Parameters& p) noexcept {
  if (p.slicing == Slicing::horizontal) return;
  p.k1 = static_cast<std::uint8_t>(p.integer(find_option(*find_ops(p.kind), "k")->word));
  p.k2 = 1;
}

}  // namespace streamfilter
