// The Importance-aware Bloom Filter (Bhoraskar et al. 2013), Algorithms 1 and 2: a Stable Bloom
// Filter. Important elements set their K cells higher, and no element lowers a cell it sets.
//   ibf2c  two classes: M/2 or M             (table IV: M/2-insert + Random-delete)
//   ibfmc  levels 1..M                       (Imp-insert + Random-delete)
//   ibfh   levels 1..M                       (Imp-insert + Probabilistic-delete-val)
// Option `delete` combines either way of deleting with either way of inserting.
//
// With layout blocked, every 64-byte line is such a filter of its own, as in stable_bloom.cpp. Only
// with random deletion: a line has too few cells for the model of the other.

#include "core/format/importance_levels.hpp"
#include "core/kind/counting_kind.hpp"
#include "core/kind/kind_list.hpp"
#include "core/kind/kind_registry.hpp"
#include "core/kind/kind_tools.hpp"
#include "core/model/stable_model.hpp"

namespace streamfilter {
namespace {

enum Word : unsigned {
  kMax,
  kK,
  kP,
  kDelete,
  kRange,                 // two numbers in the next words
  kLevels = kRange + 3,   // up to 14 numbers in the next words
  kCells = kLevels + 15,  // derived: m of one region
};

constexpr importance::Words kImportanceWords = {kRange, kLevels};
constexpr std::uint64_t kDefaultMax = 7, kDefaultK = 5;  // table III

constexpr const char* kDeletions[] = {"random", "value", nullptr};

constexpr OptionSpec kOptions[] = {
    integer_option(kMax, "max", 1, 15),
    integer_option(kK, "k", 1, kMaxCellsOfKey),
    integer_option(kP, "p", 1, 1e15),
    {.word = kDelete, .name = "delete", .type = OptionType::choice, .choices = kDeletions},
    importance::range_option(kRange),
    importance::levels_option(kLevels, 14),
};

constexpr OptionSpec kOptionsOfTwoClasses[] = {
    integer_option(kMax, "max", 2, 15),    kOptions[1], kOptions[2], kOptions[3], kOptions[4],
    importance::levels_option(kLevels, 1),
};

unsigned cell_bits(const Parameters& p) noexcept { return cell_bits_for(p.integer(kMax)); }

CellShape shape(const Parameters& p) noexcept {
  return {p.integer(kCells), p.integer(kK), cell_bits(p), static_cast<unsigned>(p.integer(kMax))};
}

using Cells = CountingKind<shape>;

bool has_two_classes(const Parameters& p) noexcept { return p.kind == Kind::ibf2c; }

importance_model::Setting setting_of(const Parameters& p, double regions) noexcept {
  return {to_real(p.integer(kK)), to_real(p.integer(kP)), to_real(p.integer(kCells)) * regions,
          static_cast<importance_model::Deletion>(p.integer(kDelete))};
}

// How an importance becomes a level (§IV-E): by equal parts of a range, or by thresholds. With the
// default, the range from 1 to max, the importance is the level.
bool derive_importance(Definition& definition, Problem& problem) noexcept {
  Parameters& p = definition.parameters;
  const std::uint64_t max = p.integer(kMax), thresholds = p.integer(kLevels);
  if (!definition.has(kRange) && !definition.has(kLevels)) {
    p.set_integer(kRange, 2);
    p.set_real(kRange + 1, 1);
    p.set_real(kRange + 2, to_real(std::max<std::uint64_t>(max, 2)));
  }
  if (!importance::check(definition, kImportanceWords, problem)) return false;
  if (!has_two_classes(p) && thresholds >= max && definition.has(kLevels)) {
    problem.set(Error::conflict, "too many numbers in option importance_levels for max %u: %u",
                static_cast<unsigned>(max), static_cast<unsigned>(thresholds));
    return problem.add_detail("Numbers up to one less than max divide the levels 1 to max.");
  }
  return true;
}

// M and K are the paper's unless given. With its P = 10 the false-positive rate can rise to .74, so
// P is derived: the least that keeps fpr (1 % unless given) for ever, for any importance.
bool derive(Definition& definition, Problem& problem) noexcept {
  Parameters& p = definition.parameters;
  if (!definition.has(kMax)) p.set_integer(kMax, kDefaultMax);
  if (!definition.has(kK)) p.set_integer(kK, kDefaultK);
  if (!definition.has(kDelete)) p.set_integer(kDelete, p.kind == Kind::ibfh);
  if (!derive_importance(definition, problem)) return false;
  if (p.layout == Layout::blocked && p.integer(kDelete) != 0) {
    problem.set(Error::unsupported, "kind %s has no layout \"blocked\" with delete value",
                find_ops(p.kind)->name);
    return problem.add_hint("Use layout scattered, or delete random.");
  }

  p.set_integer(kCells, cells_in(region_bytes(p, body_bytes(p)), cell_bits(p)));
  const double fpr = definition.wanted_fpr(), m = to_real(p.integer(kCells));
  if (!definition.has(kP))
    p.set_integer(kP, importance_model::decrements(fpr, static_cast<unsigned>(p.integer(kMax)),
                                                   setting_of(p, 1)));
  if (!are_too_few_cells(p, shape(p), p.integer(kP), find_ops(p.kind)->name, problem)) return true;
  return problem.add_detail("A %s has %.0f cells, which are too few for fpr %g.",
                            p.layout == Layout::blocked ? "line" : "slice", m, fpr);
}

// The value that the cells of an element must reach.
unsigned level_of(const Parameters& p, double importance) noexcept {
  const unsigned max = static_cast<unsigned>(p.integer(kMax));
  unsigned parts = has_two_classes(p) ? 1 : max - 1;
  const unsigned part = importance::part(p, kImportanceWords, importance, parts);
  if (has_two_classes(p)) return part > 0 ? max : max / 2;
  return parts > 0 ? 1 + (part * (max - 1) * 2 + parts) / (parts * 2) : max;
}

// Probabilistic-delete-val (§IV-C) decrements P cells that are not zero, each chosen with a
// probability inversely proportional to its value: random cells are taken with probability 1/value
// until there are P. (Adjacent cells would change the error rates here.) The search is bounded,
// which matters only while few cells are set.
template <unsigned bits>
std::uint64_t delete_value(const Parameters& p, const PackedCells<bits>& cells,
                           std::uint64_t& random) noexcept {
  const std::uint64_t m = p.integer(kCells), decrements = p.integer(kP);
  std::uint64_t emptied = 0, taken = 0;
  for (std::uint64_t looks = std::min(decrements * importance_model::kMaxLooks, m);
       looks > 0 && taken < decrements; --looks) {
    const std::uint64_t at = random_below(random, m);
    const unsigned value = cells.get(at);
    if (value == 1 || (value > 1 && random_below(random, value) == 0)) {
      cells.set(at, value - 1);
      emptied += value == 1;
      ++taken;
    }
  }
  return emptied;
}

// In Algorithm 1, an unimportant element that meets a cell of M/2 or more goes to the Else branch,
// which sets the cell to M. Here the cell stays as it is, as in Algorithm 2.
template <unsigned bits>
bool insert_cells(const Parameters& p, Slice slice, const Element& element) noexcept {
  const PackedCells<bits> cells(slice.body() + region_start(p, slice.bytes, element.hash));
  const unsigned k = static_cast<unsigned>(p.integer(kK)), level = level_of(p, element.importance);
  std::uint64_t at[kMaxCellsOfKey];
  find_cells(p, element.hash, k, p.integer(kCells), at);
  bool seen = true;
  for (unsigned i = 0; i < k; ++i) seen &= cells.get(at[i]) != 0;

  std::uint64_t& random = slice.state->random;
  const std::uint64_t emptied =
      p.integer(kDelete) != 0
          ? delete_value<bits>(p, cells, random)
          : decrement_at_random(cells, p.integer(kCells), p.integer(kP), random);

  std::uint64_t filled = 0;
  for (unsigned i = 0; i < k; ++i) {
    const unsigned value = cells.get(at[i]);
    filled += value == 0;
    if (value < level) cells.set(at[i], level);
  }
  non_zero(*slice.state) += filled - emptied;
  return seen;
}

bool insert(const Parameters& p, Slice slice, const Element& element) noexcept {
  if (slice.state->insertions == 0) stir(slice.state->random, element.hash);
  return with_cell_width(cell_bits(p),
                         [&](auto width) { return insert_cells<width.value>(p, slice, element); });
}

void merge(const Parameters& p, Slice into, ConstSlice from) noexcept {
  Cells::merge(p, into, from, setting_of(p, 1));
}

double fpr_bound(const Parameters& p) noexcept {
  return importance_model::fpr_bound(static_cast<unsigned>(p.integer(kMax)), setting_of(p, 1));
}

// The mean over elements whose importance is spread evenly, as in the paper's analysis.
double fnr_at(const Parameters& p, double gap) noexcept {
  const unsigned max = static_cast<unsigned>(p.integer(kMax));
  return importance_model::mean_fnr(
      gap, has_two_classes(p) ? importance_model::two_classes(max) : importance_model::uniform(max),
      setting_of(p, to_real(p.slices * regions_of_slice(p))));
}

// The worst case: all cells have the level of importance 0.
Prediction predict(const Parameters& p, const Stream& stream) noexcept {
  const importance_model::Setting s = setting_of(p, 1);
  const unsigned level = level_of(p, 0);
  const double looks = importance_model::looks(importance_model::most_important(level), s);
  return cells_model::predict(
      {s.k, s.m, level, looks / s.m, s.deletion == importance_model::Deletion::value},
      stream.part(p.slices));
}

constexpr FilterOps row(Kind kind, const char* name, const char* summary,
                        std::span<const OptionSpec> options) noexcept {
  return {
      .kind = kind,
      .name = name,
      .summary = summary,
      .options = options,
      .has_blocked_layout = true,
      .keeps_fpr_forever = true,
      .uses_importance = always,
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
      .resize = {.sized = words(kP, kCells), .places = Cells::places, .spread = Cells::spread},
  };
}

}  // namespace

const FilterOps ibf2c_ops =
    row(Kind::ibf2c, "ibf2c",
        "importance-aware Bloom filter of two classes: important keys are remembered longer",
        kOptionsOfTwoClasses);

const FilterOps ibfmc_ops =
    row(Kind::ibfmc, "ibfmc",
        "importance-aware Bloom filter: the more important a key, the longer it is remembered",
        kOptions);

const FilterOps ibfh_ops =
    row(Kind::ibfh, "ibfh",
        "importance-aware Bloom filter that forgets what has least value left first", kOptions);

}  // namespace streamfilter
