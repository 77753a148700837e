// ExaLogLog (Ertl 2024, arXiv:2402.13726): how many distinct keys there were, to a relative error
// of sqrt(3.78 / bits), in a few kilobytes, up to 2^60 keys.
//
// A key's hash names one of m registers and an update value k >= 1, of which four each have the
// probabilities 1/8, 1/16, 1/32, … (t = 2 in the paper). A register of 32 bits keeps the largest
// value u that came, and which of the d = 24 below it did: 8 bits of u, then those, the next lower
// first. The estimate is the one that makes the registers most likely (§3.2).
//
// As a filter it is one that misses nothing and tells new keys from repeats as long as there are
// few: a key is a repeat if it changes nothing. A key that is new changes something with a
// probability that the registers tell (§3.3, the state change probability), 1 - fpr.
//
// Two that saw different keys become the very registers of one that saw both.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "core/base/hash.hpp"
#include "core/format/slice_counters.hpp"
#include "core/kind/filter_kind.hpp"
#include "core/kind/kind_list.hpp"
#include "core/model/exa_log_log_model.hpp"

#include "core/base/layer_wall.hpp"

namespace streamfilter {
namespace {

using namespace exa_log_log_model;

using Register = std::uint32_t;

constexpr std::uint64_t kLeastRegisters = 16;

enum Word : unsigned { kRegisters };  // derived: of a slice

// The register of a key, and what it will be.
struct Place {
  Place(const Parameters& p, std::uint64_t hash) noexcept
      : at(position(hash, 0, p.integer(kRegisters)) * sizeof(Register)),
        value(update_value(position(hash, 1, 0))) {}

  std::uint64_t at;  // byte of the body
  unsigned value;

 private:
  static std::uint64_t position(std::uint64_t hash, unsigned i, std::uint64_t n) noexcept {
    const std::uint64_t mixed = mix64(hash + (i + 1) * kGoldenRatio);
    return n == 0 ? mixed : scale(mixed, n);
  }
};

Register read(const unsigned char* body, std::uint64_t at) noexcept {
  Register value;
  std::memcpy(&value, body + at, sizeof value);
  return value;
}

bool derive(Definition& definition, Problem& problem) noexcept {
  Parameters& p = definition.parameters;
  if (p.fpr > 0) {
    problem.set(Error::conflict, "kind ell keeps no false-positive rate");
    return problem.add_hint("It counts distinct keys. Leave fpr out, or use another kind.");
  }
  const std::uint64_t registers = (p.slice_bytes - sizeof(SliceState)) / sizeof(Register);
  if (registers < kLeastRegisters) {
    problem.set(Error::too_small, "kind ell needs at least %llu registers for each slice",
                static_cast<unsigned long long>(kLeastRegisters));
    return problem.add_hint("Use more memory, or fewer slices.");
  }
  p.set_integer(kRegisters, registers);
  return true;
}

void prefetch(const Parameters& p, ConstSlice slice, const Element& element,
              Prefetches& prefetches) noexcept {
  prefetches.add(slice.body() + Place(p, element.hash).at);
}

bool test(const Parameters& p, ConstSlice slice, const Element& element) noexcept {
  const Place place(p, element.hash);
  const Register before = read(slice.body(), place.at);
  return updated(before, place.value) == before;
}

bool insert(const Parameters& p, Slice slice, const Element& element) noexcept {
  const Place place(p, element.hash);
  const Register before = read(slice.body(), place.at), after = updated(before, place.value);
  if (after == before) return true;
  std::memcpy(slice.body() + place.at, &after, sizeof after);
  return false;
}

// What a slice's registers say.
Likelihood likelihood_of(const Parameters& p, ConstSlice slice) noexcept {
  Likelihood likelihood;
  for (std::uint64_t i = 0; i < p.integer(kRegisters); ++i)
    likelihood.add(read(slice.body(), i * sizeof(Register)));
  return likelihood;
}

// Keys are counted by the registers alone: `inserted_new` of both would count them twice.
void merge(const Parameters& p, Slice into, ConstSlice from) noexcept {
  const double before =
      likelihood_of(p, as_const(into)).distinct() + likelihood_of(p, from).distinct();
  for (std::uint64_t at = 0; at < p.integer(kRegisters) * sizeof(Register);
       at += sizeof(Register)) {
    const Register both = merged(read(into.body(), at), read(from.body(), at));
    std::memcpy(into.body() + at, &both, sizeof both);
  }
  SliceState& state = *into.state;
  state.inserted_new = merged_new(state.inserted_new, from.state->inserted_new, before,
                                  likelihood_of(p, as_const(into)).distinct());
}

bool check(const Parameters& p, ConstSlice slice) noexcept {
  for (std::uint64_t i = 0; i < p.integer(kRegisters); ++i)
    if (!is_possible(read(slice.body(), i * sizeof(Register)))) return false;
  for (std::uint64_t at = p.integer(kRegisters) * sizeof(Register); at < slice.bytes; ++at)
    if (slice.body()[at] != 0) return false;
  const std::uint64_t(&own)[5] = slice.state->own;
  return (own[0] | own[1] | own[2] | own[3] | own[4]) == 0;
}

Estimate estimate(const Parameters& p, ConstSlice slice) noexcept {
  const Likelihood likelihood = likelihood_of(p, slice);
  return {likelihood.used(), 1 - likelihood.change(), likelihood.distinct()};
}

double fpr_bound(const Parameters&) noexcept { return 1; }

double fnr_at(const Parameters&, double) noexcept { return 0; }

}  // namespace

const FilterOps ell_ops = {
    .kind = Kind::ell,
    .name = "ell",
    .summary = "ExaLogLog: counts distinct keys, and tells repeats only while they are few",
    .options = nullptr,
    .option_count = 0,
    .counts_only = true,
    .derive = derive,
    .prefetch = prefetch,
    .test = test,
    .insert = insert,
    .merge = merge,
    .check = check,
    .estimate = estimate,
    .fpr_bound = fpr_bound,
    .fnr_at = fnr_at,
};

}  // namespace streamfilter
