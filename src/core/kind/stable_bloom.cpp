// The Stable Bloom Filter (Deng, Rafiei, SIGMOD 2006), Algorithm 1: m cells of up to Max. An
// element is a repeat if its K cells are all non-zero. Then P cells, adjacent from one random start
// (§5.2), are decremented, and the K cells are set to Max. The share of zeros becomes stable, and
// with it the false-positive rate, on any stream.
//
// With layout blocked, every 64-byte line is such a filter of its own for the keys that fall into
// it, so that an element touches one cache line. Eq. 8 and 17 hold there with m = cells of a line,
// because the K cells of a key differ.

#include "core/kind/counting_kind.hpp"
#include "core/kind/kind_list.hpp"
#include "core/kind/kind_tools.hpp"
#include "core/model/stable_model.hpp"

namespace streamfilter {
namespace {

// kCells: m, the cells of one region (a line, or with layout scattered the slice). Decrements are
// drawn from one region, too.
enum Word : unsigned { kMax, kCellBits, kK, kP, kGap, kCells };

constexpr OptionSpec kOptions[] = {
    integer_option(kMax, "max", 1, 15),         integer_option(kCellBits, "cell_bits", 1, 4),
    integer_option(kK, "k", 1, kMaxCellsOfKey), integer_option(kP, "p", 1, 1e15),
    integer_option(kGap, "gap", 1, 1e15),
};

CellShape shape(const Parameters& p) noexcept {
  return {p.integer(kCells), p.integer(kK), static_cast<unsigned>(p.integer(kCellBits)),
          static_cast<unsigned>(p.integer(kMax))};
}

using Cells = CountingKind<shape>;

// §4.1: Max comes from the typical gap (1 if none is known); cells are as narrow as Max allows.
bool derive_cells(Definition& definition, Problem& problem) noexcept {
  Parameters& p = definition.parameters;
  if (!definition.has(kMax)) {
    if (definition.has(kCellBits))
      p.set_integer(kMax, (1u << p.integer(kCellBits)) - 1);
    else if (definition.has(kGap))
      p.set_integer(kMax, stable_model::best_max(definition.wanted_fpr(), to_real(p.integer(kGap)),
                                                 to_real(p.memory) * 8));
    else
      p.set_integer(kMax, 1);
  }
  if (!definition.has(kCellBits)) p.set_integer(kCellBits, cell_bits_for(p.integer(kMax)));
  if (p.integer(kMax) >> p.integer(kCellBits) != 0) {
    problem.set(Error::conflict, "%u-bit cells cannot count to max %u",
                static_cast<unsigned>(p.integer(kCellBits)),
                static_cast<unsigned>(p.integer(kMax)));
    return problem.add_hint("Leave out cell_bits, or set it to %u.",
                            cell_bits_for(p.integer(kMax)));
  }
  p.set_integer(kCells, cells_in(region_bytes(p, body_bytes(p)), shape(p).bits));
  return true;
}

bool derive(Definition& definition, Problem& problem) noexcept {
  if (!derive_cells(definition, problem)) return false;
  Parameters& p = definition.parameters;
  const double fpr = definition.wanted_fpr(), max = to_real(p.integer(kMax)),
               m = to_real(p.integer(kCells));
  if (!definition.has(kK)) p.set_integer(kK, stable_model::best_k(fpr, max));
  const double k = to_real(p.integer(kK));
  if (!definition.has(kP)) p.set_integer(kP, stable_model::whole_decrements(fpr, max, k, m));
  if (!are_too_few_cells(p, shape(p), p.integer(kP), "sbf", problem)) return true;
  return problem.add_detail("A %s has %.0f cells; fpr %g needs p = %.0f per element.",
                            p.layout == Layout::blocked ? "line" : "slice", m, fpr,
                            std::ceil(stable_model::decrements(fpr, max, k, std::max(m, k + 1))));
}

template <unsigned bits>
bool insert_cells(const Parameters& p, Slice slice, std::uint64_t hash) noexcept {
  const PackedCells<bits> cells(slice.body() + region_start(p, slice.bytes, hash));
  const std::uint64_t m = p.integer(kCells);
  const unsigned k = static_cast<unsigned>(p.integer(kK)),
                 max = static_cast<unsigned>(p.integer(kMax));
  std::uint64_t at[kMaxCellsOfKey];
  find_cells(p, hash, k, m, at);
  bool seen = true;
  for (unsigned i = 0; i < k; ++i) seen &= cells.get(at[i]) != 0;

  const std::uint64_t emptied = decrement_at_random(cells, m, p.integer(kP), slice.state->random);

  std::uint64_t filled = 0;
  for (unsigned i = 0; i < k; ++i) {
    filled += cells.get(at[i]) == 0;
    cells.set(at[i], max);
  }
  non_zero(*slice.state) += filled - emptied;
  return seen;
}

bool insert(const Parameters& p, Slice slice, const Element& element) noexcept {
  if (slice.state->insertions == 0) stir(slice.state->random, element.hash);
  return with_cell_width(static_cast<unsigned>(p.integer(kCellBits)), [&](auto width) {
    return insert_cells<width.value>(p, slice, element.hash);
  });
}

void merge(const Parameters& p, Slice into, ConstSlice from) noexcept {
  const double k = to_real(p.integer(kK)), m = to_real(p.integer(kCells));
  Cells::merge(p, into, from,
               {k, to_real(p.integer(kP)), stable_model::effective_cells(k, m),
                importance_model::Deletion::random});
}

double fpr_bound(const Parameters& p) noexcept {
  const double k = to_real(p.integer(kK));
  return stable_model::fpr_bound(to_real(p.integer(kMax)), k, to_real(p.integer(kP)),
                                 stable_model::effective_cells(k, to_real(p.integer(kCells))));
}

double fnr_at(const Parameters& p, double gap) noexcept {
  return stable_model::fnr(gap, to_real(p.integer(kMax)), to_real(p.integer(kK)),
                           to_real(p.integer(kP)),
                           to_real(p.integer(kCells) * regions_of_slice(p) * p.slices));
}

// Every region sees its share of the stream. The uneven spread of gaps over lines has no model.
Prediction predict(const Parameters& p, const Stream& stream) noexcept {
  if (p.layout == Layout::blocked && stream.gap() > 0) return kNoPrediction;
  const double m = to_real(p.integer(kCells)), regions = to_real(regions_of_slice(p));
  return cells_model::predict({to_real(p.integer(kK)), m, static_cast<unsigned>(p.integer(kMax)),
                               to_real(p.integer(kP)) / m, /*by_value=*/false},
                              stream.part(regions * p.slices));
}

constexpr OptionToTry kToTry[] = {{"max", "3"}, {"max", "7"}};

}  // namespace

const FilterOps sbf_ops = {
    .kind = Kind::sbf,
    .name = "sbf",
    .summary =
        "Stable Bloom Filter: keeps its false-positive rate for ever, forgets old keys gradually",
    .options = kOptions,
    .has_blocked_layout = true,
    .keeps_fpr_forever = true,
    .learns_from_repeats = always,
    .derive = derive,
    .prefetch = Cells::prefetch,
    .test = Cells::test,
    .insert = insert,
    .merge = merge,
    .check = Cells::check,
    .estimate = Cells::estimate,
    .fpr_bound = fpr_bound,
    .load = Cells::load,
    .rate_at = Cells::rate_at,
    .fnr_at = fnr_at,
    .predict = predict,
    .to_try = kToTry,
    .resize = {.sized = words(kP, kCells), .places = Cells::places, .spread = Cells::spread},
};

}  // namespace streamfilter
