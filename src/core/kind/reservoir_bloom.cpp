// The reservoir sampling Bloom filter of Bera et al. 2012 §3: k arrays of s bits, one hash
// function each.
//
// printed: Algorithm 1. The first s elements are inserted; then, while s/iter > p_star, every
//   element with probability s/iter, and one random bit of each array is reset after it; from then
//   on every element, and for each of its bits that was unset a set bit of that array is reset.
// measured: what gives the paper's figures for it (tables 4-9): every element, repeat or not,
// resets
//   one random bit in each array and then sets its own.
//
// Neither variant's resets depend on answers, so the load of an array stays below a limit on any
// stream (biased_model.hpp), and the false-positive rate below that limit's k-th power. With the k
// of Eq. 6.1, rounded up, fpr is kept for ever.

#include "core/kind/biased_bit_arrays.hpp"
#include "core/kind/kind_list.hpp"

namespace streamfilter {
namespace {

using biased_bit_arrays::kArrayBits;
using biased_bit_arrays::kArrays;
using biased_model::Scheme;

enum Word : unsigned { kPStar = kArrayBits + 1, kVariant };
enum Variant : std::uint64_t { kPrinted, kMeasured };

constexpr const char* kVariants[] = {"printed", "measured", nullptr};
constexpr double kDefaultPStar = 0.03;  // §6

constexpr OptionSpec kOptions[] = {
    biased_bit_arrays::kArraysOption,
    {.word = kPStar, .name = "p_star", .type = OptionType::real, .low = 1e-9, .high = 1},
    {.word = kVariant, .name = "variant", .type = OptionType::choice, .choices = kVariants},
};

// Limits the search for a bit that is set. Where it fails, an array that is all but empty may gain
// a bit; at the load that Algorithm 1 bounds, a search fails once in 10^27.
constexpr unsigned kMaxProbes = 64;

biased_model::Setting setting(const Parameters& p) noexcept {
  return {p.integer(kVariant) == kMeasured ? Scheme::rsbf_measured : Scheme::rsbf_printed,
          to_real(p.integer(kArrays)), to_real(p.integer(kArrayBits)), p.real(kPStar)};
}

using Modelled = biased_bit_arrays::Modelled<setting>;

// After a resize or merge an array may hold more than `keys` keys, but the limit for ever holds.
double rate_for_ever(const Parameters& p) noexcept {
  return biased_model::fpr_bound(setting(p), std::numeric_limits<double>::infinity());
}
double fpr_to_come(const Parameters& p, ConstSlice slice) noexcept {
  return std::min(biased_bit_arrays::fpr_to_come(p, slice), rate_for_ever(p));
}

// The fewest arrays that keep fpr: false negatives are fewest with k = 1 (§6.1). Without `keys`
// this is Eq. 6.1, k = ln fpr / ln(1 - 1/e), rounded up.
bool derive_arrays(Definition& definition, Problem& problem) noexcept {
  Parameters& p = definition.parameters;
  for (std::uint64_t k = 1; k <= kMaxArrays; ++k) {
    p.set_integer(kArrays, k);
    if (!biased_bit_arrays::derive_bits(p, problem)) return false;
    if (Modelled::fpr_bound(p) <= definition.wanted_fpr()) return true;
  }
  if (definition.break_fpr(words(kVariant))) return true;
  problem.set(Error::out_of_range, "kind rsbf cannot keep fpr %g", definition.wanted_fpr());
  return problem.add_detail("With k = %u, the most, its false-positive rate is at most %.3g.",
                            kMaxArrays, Modelled::fpr_bound(p));
}

bool derive(Definition& definition, Problem& problem) noexcept {
  Parameters& p = definition.parameters;
  if (!definition.has(kPStar)) p.set_real(kPStar, kDefaultPStar);
  if (!definition.has(kVariant)) p.set_integer(kVariant, kPrinted);
  return definition.has(kArrays) ? biased_bit_arrays::derive_bits(p, problem)
                                 : derive_arrays(definition, problem);
}

void clear_a_set_bit(const BitArrays<>& arrays, unsigned i, std::uint64_t& random) noexcept {
  if (arrays.ones(i) == 0) return;
  for (unsigned probe = 0; probe < kMaxProbes; ++probe) {
    const std::uint64_t at = random_below(random, arrays.s());
    if (!arrays.get(i, at)) continue;
    arrays.clear(i, at);
    return;
  }
}

// The limit is the load that s elements cause, and three standard deviations. After a resize or
// merge an array can have more: then one bit is reset for each that is set.
void keep_first_load(const BitArrays<>& arrays, std::uint64_t& random) noexcept {
  constexpr double kLoad = 0.6321205588285577;  // 1 - 1/e
  const double s = to_real(arrays.s()), most = s * kLoad + std::sqrt(s);
  for (unsigned i = 0; i < arrays.k(); ++i)
    if (to_real(arrays.ones(i)) > most) clear_a_set_bit(arrays, i, random);
}

// Algorithm 1 for element number `iter`.
void remember_as_printed(const BitArrays<>& arrays, const KeyBits& bits, std::uint64_t iter,
                         double p_star, std::uint64_t& random) noexcept {
  const std::uint64_t s = arrays.s();
  if (iter <= s) {
    bits.set(arrays);
    keep_first_load(arrays, random);
  } else if (to_real(s) / to_real(iter) <= p_star) {
    for (unsigned i = 0; i < arrays.k(); ++i) {
      if (arrays.get(i, bits[i])) continue;
      clear_a_set_bit(arrays, i, random);
      arrays.set(i, bits[i]);
    }
  } else if (random_below(random, iter) < s) {
    bits.set(arrays);
    for (unsigned i = 0; i < arrays.k(); ++i) arrays.clear_random(i, random);
  }
}

void remember_as_measured(const BitArrays<>& arrays, const KeyBits& bits,
                          std::uint64_t& random) noexcept {
  for (unsigned i = 0; i < arrays.k(); ++i) arrays.clear_random(i, random);
  bits.set(arrays);
}

// Every slice is a filter of its own, and `iter` counts its own elements.
bool insert(const Parameters& p, Slice slice, const Element& element) noexcept {
  const BitArrays<> arrays = biased_bit_arrays::of(p, slice);
  const KeyBits bits(element.hash, arrays.k(), arrays.s());
  const bool seen = bits.all_set(arrays);
  if (slice.state->insertions == 0) stir(slice.state->random, element.hash);
  if (p.integer(kVariant) == kMeasured)
    remember_as_measured(arrays, bits, slice.state->random);
  else
    remember_as_printed(arrays, bits, slice.state->insertions + 1, p.real(kPStar),
                        slice.state->random);
  return seen;
}

constexpr OptionToTry kToTry[] = {{"variant", "measured"}};

}  // namespace

const FilterOps rsbf_ops = {
    .kind = Kind::rsbf,
    .name = "rsbf",
    .summary =
        "reservoir sampling Bloom filter: remembers a sample of the stream, later what is recent",
    .options = kOptions,
    .keeps_fpr_forever = true,
    .learns_from_repeats = always,
    .derive = derive,
    .test = biased_bit_arrays::test,
    .insert = insert,
    .merge = Modelled::merge,
    .check = biased_bit_arrays::check,
    .estimate = biased_bit_arrays::estimate,
    .fpr_bound = Modelled::fpr_bound,
    .load = biased_bit_arrays::load,
    .rate_at = biased_bit_arrays::rate_at,
    .fnr_at = Modelled::fnr_at,
    .predict = Modelled::predict,
    .to_try = kToTry,
    .resize = biased_bit_arrays::resizing(fpr_to_come),
};

}  // namespace streamfilter
