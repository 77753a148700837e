#include "core/filter/resize.hpp"

#include <bit>

#include "core/base/math_policy.hpp"
#include "core/filter/filter.hpp"
#include "core/format/spread.hpp"

namespace streamfilter {
namespace {

// Have keys all their places of `to` among those of `from`?
bool has_same_places(const Parameters& from, const Parameters& to) noexcept {
  constexpr std::uint32_t kSizes = set_of(Common::memory, Common::keys, Common::slices);
  constexpr std::uint32_t kOfKeys = set_of(Common::seed, Common::nulls);
  if (find_difference(from, to, kAllCommon & ~kSizes & ~kOfKeys) != nullptr ||
      from.key_shift != to.key_shift)
    return false;
  // Which slices a key's probes lie in does not follow by scaling.
  if (find_difference(from, to, set_of(Common::slices)) != nullptr &&
      (from.slicing != Slicing::horizontal || from.k1 > 0 || from.key_shift > 0))
    return false;
  const FilterOps* ops = find_ops(from.kind);
  if (ops->resize.undivided != nullptr && ops->resize.undivided(from) &&
      from.slices % to.slices != 0)
    return false;
  for (unsigned i = 0; i < kMaxWords; ++i) {
    if (ops->resize.sized >> i & 1) continue;
    const bool may_be_fewer = ops->resize.hashes >> i & 1;
    if (from.word[i] != to.word[i] && !(may_be_fewer && to.word[i] < from.word[i])) return false;
  }
  return true;
}

// The definition, completed with values of `from` where nothing else was asked for.
Definition as_before(const Definition& asked, const Parameters& from) noexcept {
  Definition pinned = asked;
  const FilterOps* ops = find_ops(from.kind);
  const bool chosen = asked.parameters.kind == Kind::automatic;
  pinned.parameters.kind = from.kind;
  if (!pinned.is_given(Common::layout)) pinned.parameters.layout = from.layout;
  pinned.give(Common::layout);
  for (const OptionSpec& option : ops->options) {
    const unsigned word = option.word;
    const WordSet kept = ops->resize.hashes | ops->resize.kept;
    if (pinned.has(word) || !(chosen || kept >> word & 1) || ops->resize.sized >> word & 1 ||
        !in_use(from, option))
      continue;
    pinned.parameters.word[word] = from.word[word];
    pinned.given |= words(word);
  }
  return pinned;
}

bool derive_for(Definition definition, const Parameters& from, Parameters* result) noexcept {
  Problem ignored;
  if (!complete(definition, ignored)) return false;
  *result = definition.parameters;
  result->seed = from.seed;
  const auto inherit = find_ops(from.kind)->resize.inherit;
  if (inherit != nullptr && !inherit(from, *result)) return false;
  return has_same_places(from, *result);
}

// Are the places of one size whole multiples of the other's?
bool are_multiples(const Parameters& a, const Parameters& b) noexcept {
  const auto places = find_ops(a.kind)->resize.places;
  return places(a) % places(b) == 0 || places(b) % places(a) == 0;
}

// With slices of the former size, so many times more or fewer of them. Arrays of whole words with
// counters beside them (biased_bit_arrays.hpp) are multiples in no other way.
void multiply_slices(const Definition& definition, const Parameters& from, double times,
                     Parameters* result) noexcept {
  const double slices = from.slices * times;
  if (definition.is_given(Common::slices) || slices < 1 || slices > kMaxSlices ||
      slices != std::round(slices))
    return;
  Definition attempt = definition;
  Parameters& p = attempt.parameters;
  p.slices = static_cast<std::uint32_t>(slices);
  p.memory = kStoredHeader + p.slices * from.slice_bytes;
  attempt.give(Common::memory, Common::slices);
  if (Parameters fitted{}; p.memory <= result->memory && derive_for(attempt, from, &fitted) &&
                           are_multiples(from, fitted))
    *result = fitted;
}

// Where the memory is about a whole multiple of the former one, or a whole part, so much less of it
// is used that the places are, too: then no two of them have to share one. What lies ahead of the
// bytes of a slice is of one size in all filters. Kinds that inherit share no places by chance.
void fit_multiple(const Definition& definition, const Parameters& from,
                  Parameters* result) noexcept {
  constexpr double kAbout = 0.02;
  constexpr std::uint64_t kTries = 16;
  if (are_multiples(from, *result) || find_ops(from.kind)->resize.inherit != nullptr) return;
  const double ratio = to_real(result->memory) / to_real(from.memory);
  const double whole = std::round(std::max(ratio, 1 / ratio)), near = ratio > 1 ? whole : 1 / whole;
  if (std::abs(ratio / near - 1) > kAbout) return;
  const double all = near * to_real(from.slices * body_bytes(from));
  const std::uint64_t body =
      std::min((saturate<std::uint64_t>(std::ceil(all / result->slices)) + 63) & ~std::uint64_t{63},
               body_bytes(*result));
  for (std::uint64_t less = 0; less < kTries * 64 && less + 64 < body; less += 64) {
    Definition attempt = definition;
    Parameters& p = attempt.parameters;
    p.slices = result->slices;
    p.slices2 = result->slices2;
    p.memory = kStoredHeader + p.slices * (sizeof(SliceState) + body - less);
    attempt.give(Common::memory, Common::slices);
    Parameters fitted{};
    if (!derive_for(attempt, from, &fitted) || !are_multiples(from, fitted)) continue;
    *result = fitted;
    return;
  }
  multiply_slices(definition, from, near, result);
}

bool can_be_resized(const FilterOps* ops, const Parameters& p) noexcept {
  const Resizing& resize = ops->resize;
  return (resize.spread != nullptr || resize.move != nullptr) &&
         (resize.possible == nullptr || resize.possible(p));
}

// More memory may need fewer places for a key. But keys that are there already hold as large a
// share of it as before, and keep the rate with all of theirs only.
bool has_fewer_places_in_more(const Parameters& from, const Parameters& to) noexcept {
  const WordSet hashes = find_ops(from.kind)->resize.hashes;
  if (to.memory <= from.memory) return false;
  for (unsigned i = 0; i < kMaxWords; ++i)
    if (hashes >> i & 1 && to.word[i] < from.word[i]) return true;
  return false;
}

// Derives as asked, otherwise with what follows from the former parameters; takes their number of
// slices only if keys could not have their places otherwise.
bool derive_like(const Definition& asked, const Parameters& from, Parameters* result) noexcept {
  const FilterOps* ops = find_ops(from.kind);
  const bool as_asked = derive_for(asked, from, result);
  if (as_asked && !has_fewer_places_in_more(from, *result)) {
    fit_multiple(asked, from, result);
    return true;
  }
  Definition pinned = as_before(asked, from);
  for (const bool same_slices : {false, true}) {
    if (same_slices && asked.is_given(Common::slices)) break;
    if (same_slices) {
      pinned.parameters.slices = from.slices;
      pinned.parameters.slices2 = from.slices2;
      pinned.give(Common::slices);
    }
    // The rate of kinds that inherit from the former size grows with the size, as was planned for.
    if (!derive_for(pinned, from, result) ||
        (ops->resize.inherit == nullptr && ops->fpr_bound(*result) > asked.wanted_fpr() &&
         ops->fpr_bound(*result) > ops->fpr_bound(from)))
      continue;
    fit_multiple(pinned, from, result);
    return true;
  }
  if (!as_asked || !derive_for(asked, from, result)) return false;
  fit_multiple(asked, from, result);
  return true;
}

bool cannot(const FilterOps* ops, const char* detail, Problem& problem) noexcept {
  problem.set(Error::unsupported, "kind %s cannot take over what a filter of another size knows",
              ops->name);
  return problem.add_detail("%s", detail);
}

// Share of the old slice `index` that belongs to the new slice `of`.
double share_of(std::uint32_t index, double old_slices, std::uint32_t of,
                double new_slices) noexcept {
  const double start = std::max(index / old_slices, of / new_slices),
               end = std::min((index + 1) / old_slices, (of + 1) / new_slices);
  return std::max(0.0, (end - start) * old_slices);
}

double share_of(const Parameters& from, std::uint32_t index, const Parameters& to,
                std::uint32_t of) noexcept {
  if (from.slices == to.slices) return index == of ? 1 : 0;
  return share_of(index, from.slices, of, to.slices);
}

// A share as small as rounding errors is none.
bool takes_from(const Parameters& from, std::uint32_t index, const Parameters& to,
                std::uint32_t of) noexcept {
  return share_of(from, index, to, of) > 1e-9;
}

// Merges layers in pairs, then the results in pairs, so that none is preferred to earlier ones.
class LayerStack {
 public:
  LayerStack(const Parameters& p, std::uint32_t index, void* scratch) noexcept
      : p_(p), index_(index), scratch_(static_cast<unsigned char*>(scratch)) {}

  // An empty slice for the next layer.
  Slice next(std::uint64_t& random) noexcept {
    const Slice layer = at(height_++);
    format_slice(p_, layer, index_);
    layer.state->random = random = mix64(random + kGoldenRatio);
    return layer;
  }

  void merge_equals() noexcept {
    for (std::uint64_t count = ++count_; count % 2 == 0; count /= 2, --height_)
      merge(at(height_ - 2), at(height_ - 1));
  }

  void merge_into(Slice slice) noexcept {
    while (height_ > 0) merge(slice, at(--height_));
  }

 private:
  void merge(Slice into, Slice layer) noexcept {
    const FilterOps* ops = find_ops(p_.kind);
    (ops->resize.merge != nullptr ? ops->resize.merge : ops->merge)(p_, into, as_const(layer));
  }

  Slice at(unsigned i) const noexcept {
    return {reinterpret_cast<SliceState*>(scratch_ + i * p_.slice_bytes), body_bytes(p_)};
  }

  const Parameters& p_;
  std::uint32_t index_;
  unsigned char* scratch_;
  unsigned height_ = 0;
  std::uint64_t count_ = 0;
};

// Number of layers that a slice takes from an old one.
std::uint64_t layers_for(const Parameters& from, const Parameters& to) noexcept {
  const Resizing& resize = find_ops(to.kind)->resize;
  return resize.move != nullptr ? 1 : layers_of(resize.places(from), resize.places(to));
}

std::uint64_t part(std::uint64_t count, double share) noexcept {
  return saturate<std::uint64_t>(std::round(to_real(count) * share));
}

}  // namespace

bool resized_parameters(const Parameters& from, const Definition& asked, Parameters* result,
                        Problem& problem) noexcept {
  const FilterOps* ops = find_ops(from.kind);
  if (!can_be_resized(ops, from))
    return cannot(ops, "Its state cannot be brought into another size.", problem);
  if (asked.parameters.kind != Kind::automatic && asked.parameters.kind != from.kind)
    return cannot(ops, "The new definition is of another kind.", problem);
  if (asked.is_given(Common::seed) && asked.parameters.seed != from.seed)
    return cannot(ops, "The new definition has another seed.", problem);
  if (derive_like(asked, from, result)) return true;
  return cannot(ops, "With the new parameters a key has other places.", problem);
}

SliceRange sources_of(const Parameters& from, const Parameters& to, std::uint32_t index) noexcept {
  SliceRange range{from.slices, 0};
  for (std::uint32_t i = 0; i < from.slices; ++i) {
    if (!takes_from(from, i, to, index)) continue;
    range.first = std::min(range.first, i);
    range.end = i + 1;
  }
  return range;
}

bool can_take_over(const Header* from, SliceRange slices, const Parameters& to,
                   Problem& problem) noexcept {
  const Parameters& p = from->parameters;
  const FilterOps* ops = find_ops(p.kind);
  const auto may_join = ops->resize.may_join_places;
  if (may_join == nullptr || ops->resize.places(to) % ops->resize.places(p) == 0) return true;
  for (std::uint32_t i = slices.first; i < slices.end; ++i)
    if (!may_join(p, slice_at(from, i)))
      return cannot(ops,
                    "Keys were deleted since it was enlarged, and would be known again by copies.",
                    problem);
  return true;
}

unsigned scratch_slices(const Parameters& from, const Parameters& to) noexcept {
  return static_cast<unsigned>(std::bit_width(from.slices * layers_for(from, to))) + 1;
}

void resize_slice(Header* to, std::uint32_t index, const Header* from, void* scratch) noexcept {
  const Parameters &p = to->parameters, &old = from->parameters;
  const FilterOps* ops = find_ops(p.kind);
  const Slice slice = slice_at(to, index);
  const std::uint64_t layers = layers_for(old, p);
  LayerStack stack(p, index, scratch);
  std::uint64_t insertions = 0, inserted_new = 0;
  double keys = 0;
  const SliceRange sources = sources_of(old, p, index);
  for (std::uint32_t i = sources.first; i < sources.end; ++i) {
    const double share = share_of(old, i, p, index);
    const ConstSlice source = slice_at(from, i);
    // The new slice must not repeat the random numbers of the old one.
    slice.state->random = mix64(slice.state->random + source.state->random);
    insertions += part(source.state->insertions, share);
    inserted_new += part(source.state->inserted_new, share);
    keys += ops->estimate(old, source).distinct * share;
    for (std::uint64_t j = 0; j < layers; ++j) {
      const Slice layer = stack.next(slice.state->random);
      if (ops->resize.move != nullptr)
        ops->resize.move(old, source, p, layer, index);
      else
        ops->resize.spread(old, source, p, layer, j);
      stack.merge_equals();
    }
  }
  stack.merge_into(slice);
  const bool is_empty = !(ops->estimate(p, as_const(slice)).fill > 0);
  slice.state->insertions = std::max(insertions, std::uint64_t{!is_empty && p.k1 == 0});
  slice.state->inserted_new = std::min(inserted_new, slice.state->insertions);
  if (ops->resize.note_keys != nullptr) ops->resize.note_keys(p, slice, keys);
}

double fpr_to_come(const Header* header) noexcept {
  const Parameters& p = header->parameters;
  const FilterOps* ops = find_ops(p.kind);
  if (ops->resize.fpr_to_come == nullptr) return 0;
  double worst = 0;
  for (std::uint32_t i = 0; i < p.slices; ++i)
    worst = std::max(worst, ops->resize.fpr_to_come(p, slice_at(header, i)));
  return worst;
}

double fpr_bound(const Header* header, const OverfullLimit& limit) noexcept {
  const Parameters& p = header->parameters;
  const double reached =
      std::max({find_ops(p.kind)->fpr_bound(p), fpr_to_come(header), totals(header).estimate.fpr});
  return limit.is_none() ? reached : std::min(reached, limit.rate);
}

}  // namespace streamfilter
