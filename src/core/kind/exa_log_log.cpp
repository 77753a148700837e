// ExaLogLog (Ertl 2024, arXiv:2402.13726): how many distinct keys there were, to a relative error
// of sqrt(3.78 / bits), in a few kilobytes, up to 2^60 keys.
//
// A slice begins with tokens of the keys themselves (exa_log_log.hpp), which count nearly
// exactly, and turns them into registers when it has no room for more. The set of keys alone
// decides between the two forms, not the order of keys or merges.
//
// A key's hash names one of m registers and an update value k >= 1; four values each have the
// probabilities 1/8, 1/16, 1/32, … (t = 2 in the paper). A register of 32 bits keeps the largest
// value u that came, and which of the d = 24 below it did: 8 bits of u, then those, the next lower
// first. The estimate is the one that makes the registers most likely (§3.2).
//
// Used as a filter, it misses no repeat, and tells new keys from repeats while there are few: a key
// that changes nothing is a repeat. The registers tell the probability that a new key changes
// something (§3.3, the state change probability), which is 1 - fpr.
//
// Merging two filters gives the very registers of one filter that saw the keys of both.

#include "core/kind/exa_log_log.hpp"
#include "core/base/math_policy.hpp"
#include "core/format/spread.hpp"
#include "core/kind/kind_list.hpp"

namespace streamfilter {
namespace {

using namespace exa_log_log_model;
using namespace exa_log_log;

constexpr std::uint64_t kLeastRegisters = 16;

constexpr unsigned kRegisters = 0;  // derived: of a slice

enum Form : std::uint64_t { kOfRegisters = 0, kOfTokens = 1 };

template <typename State>
auto& form(State& state) noexcept {
  return state.own[0];
}
template <typename State>
auto& tokens(State& state) noexcept {
  return state.own[1];
}

// 0, or after a resize 1 plus the number of counted keys that are only copies, in units of
// 1/kParts.
template <typename State>
auto& copies(State& state) noexcept {
  return state.own[2];
}

constexpr std::uint64_t kMaxCopies = std::uint64_t{1} << 62;
constexpr double kParts = 256;

TokenTable table(const Parameters& p, Slice slice) noexcept {
  return {slice.body(), p.integer(kRegisters)};
}
TokenView table(const Parameters& p, ConstSlice slice) noexcept {
  return {slice.body(), p.integer(kRegisters)};
}

bool derive(Definition& definition, Problem& problem) noexcept {
  Parameters& p = definition.parameters;
  if (p.fpr > 0) {
    problem.set(Error::conflict, "kind ell keeps no false-positive rate");
    return problem.add_hint("It counts distinct keys. Leave fpr out, or use another kind.");
  }
  const std::uint64_t registers = body_bytes(p) / sizeof(Register);
  if (registers < kLeastRegisters) {
    problem.set(Error::too_small, "kind ell needs at least %llu registers for each slice",
                llu(kLeastRegisters));
    return problem.add_hint("Use more memory, or fewer slices.");
  }
  p.set_integer(kRegisters, registers);
  return true;
}

void init(const Parameters&, Slice slice) noexcept { form(*slice.state) = kOfTokens; }

// A token's home is where its register will be. A new token moves those behind it, seldom beyond
// the next line.
void prefetch(const Parameters& p, ConstSlice slice, const Element& element,
              Prefetches& prefetches) noexcept {
  constexpr std::uint64_t kLine = 64;
  const std::uint64_t at = Update(element.hash, p.integer(kRegisters)).at;
  prefetches.add(slice.body() + at);
  if (form(*slice.state) == kOfTokens)
    prefetches.add(slice.body() + (at + kLine < slice.bytes ? at + kLine : 0));
}

bool test(const Parameters& p, ConstSlice slice, const Element& element) noexcept {
  const std::uint64_t registers = p.integer(kRegisters);
  if (form(*slice.state) == kOfTokens)
    return table(p, slice).contains(token_of(element.hash, registers));
  const Update update(element.hash, registers);
  const Register before = read(slice.body(), update.at);
  return updated(before, update.value) == before;
}

void become_registers(const Parameters& p, Slice slice) noexcept {
  table(p, slice).become_registers();
  form(*slice.state) = kOfRegisters;
  tokens(*slice.state) = 0;
}

// Returns false if there is no room.
bool put_token(const Parameters& p, Slice slice, Token token, bool& seen) noexcept {
  const Added added = table(p, slice).add(token, tokens(*slice.state));
  tokens(*slice.state) += added == Added::is_new;
  seen = added == Added::was_there;
  return added != Added::no_room;
}

// A token that finds no room is new, even if the registers do not change by it.
bool add(const Parameters& p, Slice slice, Token token) noexcept {
  if (form(*slice.state) != kOfTokens) return update_register(slice, Update(token));
  if (bool seen; put_token(p, slice, token, seen)) return seen;
  become_registers(p, slice);
  update_register(slice, Update(token));
  return false;
}

bool insert(const Parameters& p, Slice slice, const Element& element) noexcept {
  const std::uint64_t registers = p.integer(kRegisters);
  if (form(*slice.state) == kOfTokens) return add(p, slice, token_of(element.hash, registers));
  return update_register(slice, Update(element.hash, registers));
}

// Limits the copies to what a slice counts, with a margin, as tokens and registers count
// differently.
std::uint64_t most_copies(double counted) noexcept {
  const double most = 2 * counted + 1;
  return std::min(saturate<std::uint64_t>(std::ceil(most * kParts)), kMaxCopies - 1) + 1;
}

// The likelihood of each number of keys, given what the slice holds.
Likelihood likelihood_of(const Parameters& p, ConstSlice slice) noexcept {
  Likelihood likelihood;
  const std::uint64_t registers = p.integer(kRegisters);
  if (form(*slice.state) == kOfTokens) {
    likelihood.add_empty(registers);
    const TokenView view = table(p, slice);
    for (std::uint64_t i = 0; i < view.cells(); ++i)
      if (const Token token = view.at(i); token.payload != 0)
        likelihood.add_token(token.exponent());
    return likelihood;
  }
  likelihood.add_registers(slice.body(), registers);
  return likelihood;
}

// Adds the copies of two filters up, unless both have the same, made by one resize.
void merge_copies(const Parameters& p, Slice into, ConstSlice from) noexcept {
  SliceState& state = *into.state;
  if (copies(state) == copies(*from.state)) return;
  const double counted = likelihood_of(p, as_const(into)).distinct();
  copies(state) = std::min(copies(state) + copies(*from.state), most_copies(counted));
}

// `settle` counts the new keys later: a sum of both `inserted_new` would count some keys twice.
void merge(const Parameters& p, Slice into, ConstSlice from) noexcept {
  if (form(*from.state) == kOfTokens) {
    const TokenView view = table(p, from);
    for (std::uint64_t i = 0; i < view.cells(); ++i)
      if (const Token token = view.at(i); token.payload != 0) add(p, into, token);
  } else {
    if (form(*into.state) == kOfTokens) become_registers(p, into);
    merge_registers(into.body(), from.body(), p.integer(kRegisters));
  }
  merge_copies(p, into, from);
  SliceState& state = *into.state;
  state.inserted_new = std::max(state.inserted_new, from.state->inserted_new);
}

bool are_possible_registers(const Parameters& p, ConstSlice slice) noexcept {
  for (std::uint64_t i = 0; i < p.integer(kRegisters); ++i)
    if (!exa_log_log_model::is_possible(read(slice.body(), i * sizeof(Register)))) return false;
  return tokens(*slice.state) == 0;
}

bool check(const Parameters& p, ConstSlice slice) noexcept {
  const std::uint64_t(&own)[5] = slice.state->own;
  if (form(*slice.state) > kOfTokens || (own[3] | own[4]) != 0) return false;
  for (std::uint64_t at = p.integer(kRegisters) * sizeof(Register); at < slice.bytes; ++at)
    if (slice.body()[at] != 0) return false;
  return (form(*slice.state) == kOfTokens ? table(p, slice).is_possible(tokens(*slice.state))
                                          : are_possible_registers(p, slice)) &&
         (copies(*slice.state) == 0 ||
          copies(*slice.state) <= most_copies(likelihood_of(p, slice).distinct()));
}

double fill(const Parameters& p, ConstSlice slice) noexcept {
  const std::uint64_t registers = p.integer(kRegisters);
  if (form(*slice.state) == kOfTokens)
    return to_real(tokens(*slice.state)) / to_real(2 * registers);
  double used = 0;
  for (std::uint64_t i = 0; i < registers; ++i)
    used += read(slice.body(), i * sizeof(Register)) != 0;
  return used / to_real(registers);
}

Estimate estimate(const Parameters& p, ConstSlice slice) noexcept {
  const Likelihood likelihood = likelihood_of(p, slice);
  const std::uint64_t noted = copies(*slice.state);
  const double copied = noted > 0 ? to_real(noted - 1) / kParts : 0;
  return {fill(p, slice), 1 - likelihood.change(), std::max(0.0, likelihood.distinct() - copied)};
}

double distinct_error(const Parameters& p) noexcept {
  return relative_error(to_real(p.integer(kRegisters)) * p.slices * 8 * sizeof(Register));
}

// The count comes from the slice's contents alone, so that neither the order of keys nor the way
// they were merged matters.
void settle(const Parameters& p, Slice slice) noexcept {
  SliceState& state = *slice.state;
  const double counted = form(state) == kOfTokens && copies(state) == 0
                             ? to_real(tokens(state))
                             : estimate(p, as_const(slice)).distinct;
  state.inserted_new = std::min(saturate<std::uint64_t>(std::round(counted)), state.insertions);
}

// Tokens of one are brought into the form of the other, if that has registers: they say as much as
// these do.
bool compare(const Parameters& p, Slice a, Slice b, JointLikelihood& likelihood) noexcept {
  if ((copies(*a.state) | copies(*b.state)) != 0) return false;
  const std::uint64_t registers = p.integer(kRegisters);
  if (form(*a.state) != kOfTokens || form(*b.state) != kOfTokens) {
    for (const Slice slice : {a, b})
      if (form(*slice.state) == kOfTokens) become_registers(p, slice);
    likelihood.add_registers(a.body(), b.body(), registers);
    return true;
  }
  likelihood.add_registers(registers);
  for (std::uint32_t payload = 1; payload <= (kMaxCode << kSub | ((1u << kSub) - 1)); ++payload)
    if (is_payload(payload)) likelihood.add_values(Token{0, payload}.exponent(), 2 * registers);
  const TokenTable first = table(p, a), second = table(p, b);
  for_each_token(p, as_const(a), [&](Token token) {
    likelihood.add_token(token.exponent(), true, second.contains(token));
  });
  for_each_token(p, as_const(b), [&](Token token) {
    if (!first.contains(token)) likelihood.add_token(token.exponent(), false, true);
  });
  return true;
}

// ---- another size

std::uint64_t places(const Parameters& p) noexcept { return p.integer(kRegisters); }

// If the new size divides the old one, registers become what they would have been in it. Otherwise
// a register or a token is copied to all of its new places, so that the slice counts too many keys;
// `copies` notes that.
void spread(const Parameters& old, ConstSlice from, const Parameters& p, Slice into,
            std::uint64_t layer) noexcept {
  const std::uint64_t n = places(old), m = places(p);
  if (copies(*from.state) > 0 || n % m != 0 || old.slices % p.slices != 0) copies(*into.state) = 1;
  if (form(*from.state) == kOfTokens) {
    const TokenView view = table(old, from);
    for (std::uint64_t i = 0; i < view.cells(); ++i)
      if (const Token token = view.at(i); token.payload != 0)
        for_each_new_place(2 * n, 2 * m, layer, token.home, [&](std::uint64_t home) {
          add(p, into, {home, token.payload});
        });
    return;
  }
  become_registers(p, into);
  for_each_place(n, m, layer, [&](std::uint64_t at, std::uint64_t old_at) {
    const Register value = read(from.body(), old_at * sizeof value);
    std::memcpy(into.body() + at * sizeof value, &value, sizeof value);
  });
}

void note_keys(const Parameters& p, Slice slice, double keys) noexcept {
  if (copies(*slice.state) == 0) return;
  const double counted = likelihood_of(p, as_const(slice)).distinct(),
               more = std::max(0.0, counted - keys);
  copies(*slice.state) =
      std::min(saturate<std::uint64_t>(std::round(more * kParts)), kMaxCopies - 1) + 1;
}

double fpr_bound(const Parameters&) noexcept { return 1; }

double fnr_at(const Parameters&, double) noexcept { return 0; }

}  // namespace

bool exa_log_log::add_token(const Parameters& p, Slice slice, Token token) noexcept {
  return add(p, slice, token);
}

bool exa_log_log::is_of_tokens(ConstSlice slice) noexcept {
  return form(*slice.state) == kOfTokens;
}

bool exa_log_log::holds_tokens(const Parameters&, ConstSlice slice, std::uint64_t& count) noexcept {
  const SliceState& state = *slice.state;
  count = tokens(state);
  return form(state) == kOfTokens && copies(state) == 0 && state.own[3] == 0 && state.own[4] == 0 &&
         state.inserted_new == count;
}

const FilterOps ell_ops = {
    .kind = Kind::ell,
    .name = "ell",
    .summary = "ExaLogLog: counts distinct keys, and tells repeats only while they are few",
    .options = {},
    .counts_only = true,
    .has_sparse_form = false,
    .derive = derive,
    .init = init,
    .prefetch = prefetch,
    .test = test,
    .insert = insert,
    .merge = merge,
    .settle = settle,
    .check = check,
    .estimate = estimate,
    .distinct_error = distinct_error,
    .fpr_bound = fpr_bound,
    .fnr_at = fnr_at,
    .resize = {.sized = words(kRegisters),
               .places = places,
               .spread = spread,
               .note_keys = note_keys},
    .compare = compare,
};

}  // namespace streamfilter

// ---- tokens -------------------------------------------------------------------------------------

namespace streamfilter::exa_log_log {

using namespace exa_log_log_model;

TokenView::Position TokenView::find(Token token) const noexcept {
  std::uint64_t cell = token.home;
  for (unsigned distance = 0;; ++distance, cell = next(cell)) {
    const unsigned there = read(cell), its_distance = there >> kPayloadBits,
                   mine = distance << kPayloadBits | token.payload;
    if (there == mine) return {cell, distance, true};
    // Entries are ordered by home, then payload: a later home shows as a smaller distance.
    if (there == 0 || its_distance < distance || (its_distance == distance && there > mine) ||
        distance > kMaxDistance)
      return {cell, distance, false};
  }
}

bool TokenView::can_move_on(std::uint64_t cell) const noexcept {
  for (unsigned bits; (bits = read(cell)) != 0; cell = next(cell))
    if (bits >> kPayloadBits == kMaxDistance) return false;
  return true;
}

bool TokenView::is_possible(std::uint64_t tokens) const noexcept {
  if (tokens > most()) return false;
  std::uint64_t found = 0;
  unsigned before = read(cells_ - 1);
  for (std::uint64_t cell = 0; cell < cells_; ++cell) {
    const unsigned bits = read(cell), distance = bits >> kPayloadBits,
                   its_distance = before >> kPayloadBits;
    if (bits != 0) {
      ++found;
      if (!is_payload(bits & kPayloadMask) || distance >= cells_) return false;
      // An entry away from its home follows one that comes before it in that order.
      if (distance > 0) {
        const bool same_home = distance == its_distance + 1;
        if (before == 0 || distance > its_distance + 1) return false;
        if (same_home && (before & kPayloadMask) >= (bits & kPayloadMask)) return false;
      }
    }
    before = bits;
  }
  return found == tokens;
}

Added TokenTable::add(Token token, std::uint64_t tokens) const noexcept {
  const Position place = find(token);
  if (place.found) return Added::was_there;
  if (tokens == most() || place.distance > kMaxDistance || !can_move_on(place.cell))
    return Added::no_room;
  unsigned moved = place.distance << kPayloadBits | token.payload;
  for (std::uint64_t cell = place.cell; moved != 0; cell = next(cell)) {
    const unsigned there = read(cell);
    write(cell, moved);
    moved = there == 0 ? 0 : there + (1u << kPayloadBits);
  }
  return Added::is_new;
}

// A register's tokens lie in its own two cells or behind, in the order of registers, and never
// beyond an empty cell. Starting at an empty cell, the loop reads all tokens of a register, and
// those in its cells, before it writes the register.
void TokenTable::become_registers() const noexcept {
  const std::uint64_t registers = cells() / 2;
  std::uint64_t empty = 0;
  while (read(empty) != 0) ++empty;
  // The first register whose cells begin at or behind the empty cell.
  std::uint64_t index = (empty + 1) / 2 % registers, cell = 2 * index, done = 0;  // cells
  for (std::uint64_t i = 1; i <= registers; ++i) {
    Register made = 0;
    for (; done < cells(); ++done, cell = next(cell)) {
      const Token token = at(cell);
      const bool is_its = token.payload != 0 && token.register_index() == index;
      if (!is_its && done >= 2 * i) break;
      if (is_its) made = updated(made, token.update_value());
    }
    std::memcpy(body_ + index * sizeof made, &made, sizeof made);
    index = index + 1 == registers ? 0 : index + 1;
  }
}

}  // namespace streamfilter::exa_log_log
