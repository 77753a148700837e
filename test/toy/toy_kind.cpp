// A kind for tests alone: it shows that a kind is one file, a number and two lines, and that the
// loops over the kinds meet it without being told. `make FLAVOUR=toy` adds it to the table.
//
// A slice has places for fingerprints; each key has one place, and the last key to come there is
// remembered. So two keys are mistaken for one another where place and fingerprint are the same,
// on any stream.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/format/layout.hpp"
#include "core/kind/kind_list.hpp"
#include "core/model/stream.hpp"

namespace streamfilter {
namespace {

enum Word : unsigned { kPrintBits };
using Print = std::uint32_t;  // 0: the place is free

constexpr std::uint64_t kMostBits = 32, kLeastBits = 4;

constexpr OptionSpec kOptions[] = {
    {.word = kPrintBits,
     .name = "print_bits",
     .type = OptionType::integer,
     .low = kLeastBits,
     .high = kMostBits},
};

std::uint64_t places_of(const Parameters& p) noexcept { return body_bytes(p) / sizeof(Print); }
double all_places(const Parameters& p) noexcept {
  return static_cast<double>(places_of(p)) * p.slices;
}
std::uint64_t prints_of(std::uint64_t bits) noexcept { return (std::uint64_t{1} << bits) - 1; }

std::uint64_t& held(SliceState& state) noexcept { return state.own[0]; }
double share(const Parameters& p, std::uint64_t count) noexcept {
  return static_cast<double>(count) / static_cast<double>(places_of(p));
}

std::uint64_t place_of(const Parameters& p, std::uint64_t hash) noexcept {
  return position(hash, 0, places_of(p));
}
Print print_of(const Parameters& p, std::uint64_t hash) noexcept {
  return static_cast<Print>(1 + position(hash, 1, prints_of(p.integer(kPrintBits))));
}

Print read(ConstSlice slice, std::uint64_t place) noexcept {
  Print print;
  std::memcpy(&print, slice.body() + place * sizeof print, sizeof print);
  return print;
}
void write(Slice slice, std::uint64_t place, Print print) noexcept {
  held(*slice.state) -= read(as_const(slice), place) != 0;
  held(*slice.state) += print != 0;
  std::memcpy(slice.body() + place * sizeof print, &print, sizeof print);
}

bool derive(Definition& definition, Problem& problem) noexcept {
  Parameters& p = definition.parameters;
  if (definition.has(kPrintBits)) return true;
  std::uint64_t bits = kLeastBits;
  while (bits < kMostBits && 1 / static_cast<double>(prints_of(bits)) > definition.wanted_fpr())
    ++bits;
  p.set_integer(kPrintBits, bits);
  if (1 / static_cast<double>(prints_of(bits)) <= definition.wanted_fpr() || definition.break_fpr())
    return true;
  return problem.set(Error::out_of_range, "kind toy cannot keep fpr %g", definition.wanted_fpr());
}

void prefetch(const Parameters& p, ConstSlice slice, const Element& element,
              Prefetches& prefetches) noexcept {
  prefetches.add(slice.body() + place_of(p, element.hash) * sizeof(Print));
}

bool test(const Parameters& p, ConstSlice slice, const Element& element) noexcept {
  return read(slice, place_of(p, element.hash)) == print_of(p, element.hash);
}

bool insert(const Parameters& p, Slice slice, const Element& element) noexcept {
  const bool seen = test(p, as_const(slice), element);
  if (!seen) write(slice, place_of(p, element.hash), print_of(p, element.hash));
  return seen;
}

bool erase(const Parameters& p, Slice slice, const Element& element) noexcept {
  const bool seen = test(p, as_const(slice), element);
  if (seen) write(slice, place_of(p, element.hash), 0);
  return seen;
}

// Of two fingerprints in one place, the larger stays, whichever side it comes from.
void merge(const Parameters& p, Slice into, ConstSlice from) noexcept {
  std::uint64_t added = 0, used = 0;
  for (std::uint64_t i = 0; i < places_of(p); ++i) {
    const Print print = read(from, i), before = read(as_const(into), i);
    used += print != 0;
    if (print <= before) continue;
    added += before == 0;
    write(into, i, print);
  }
  into.state->inserted_new =
      merged_new_by_entries(into.state->inserted_new, from.state->inserted_new, added, used);
}

bool check(const Parameters& p, ConstSlice slice) noexcept {
  std::uint64_t count = 0;
  for (std::uint64_t i = 0; i < places_of(p); ++i) {
    const Print print = read(slice, i);
    if (print > prints_of(p.integer(kPrintBits))) return false;
    count += print != 0;
  }
  return count == slice.state->own[0];
}

double fpr_bound(const Parameters& p) noexcept {
  return 1 / static_cast<double>(prints_of(p.integer(kPrintBits)));
}

Estimate estimate(const Parameters& p, ConstSlice slice) noexcept {
  const double fill = share(p, slice.state->own[0]), places = static_cast<double>(places_of(p));
  return {fill, fill * fpr_bound(p), counted_keys(fill * places, places, 1)};
}

double fnr_at(const Parameters& p, double gap) noexcept {
  return -std::expm1(gap * std::log1p(-1 / all_places(p)));
}

// A repeat of uniform draws is each of the keys seen; of these, as many are held as places are in
// use.
Prediction predict(const Parameters& p, const Stream& stream) noexcept {
  const auto filled = [&](double n) { return -std::expm1(-n / all_places(p)) * all_places(p); };
  const auto rate = [&](double n) { return filled(n) / all_places(p) * fpr_bound(p); };
  double fnr = kNoPrediction.fnr;
  if (stream.gap() == 0)
    fnr = exact_store_model::mean_fnr(stream, filled, rate);
  else if (stream.repeats() > 0)
    fnr = fnr_at(p, stream.gap());
  return {exact_store_model::mean_fpr(stream.distinct(), rate), fnr};
}

}  // namespace

const FilterOps toy_ops = {
    .kind = Kind::toy,
    .name = "toy",
    .summary = "for tests: the last key of each place",
    .options = kOptions,
    .keeps_fpr_forever = true,
    .derive = derive,
    .prefetch = prefetch,
    .in_one_line = [](const Parameters&, const SliceState&) noexcept { return true; },
    .test = test,
    .insert = insert,
    .erase = erase,
    .merge = merge,
    .check = check,
    .estimate = estimate,
    .fpr_bound = fpr_bound,
    .fnr_at = fnr_at,
    .predict = predict,
};

}  // namespace streamfilter
