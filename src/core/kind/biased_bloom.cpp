// The biased sampling Bloom filters of Bera et al. 2012 §4-5: k arrays of s bits, one hash
// function each. An element is a repeat if its k bits are all set; otherwise some random bits are
// reset and its k bits are set. The three kinds differ in what they reset. (Algorithms 2, 3 and 4
// print the two answers the wrong way round.)
#include "core/kind/biased_bit_arrays.hpp"
#include "core/kind/kind_list.hpp"
#include "core/kind/kind_registry.hpp"

namespace streamfilter {
namespace {

using biased_bit_arrays::kArrays;
using biased_model::Scheme;

// Algorithm 2 resets one bit of every array.
struct EveryArray {
  static constexpr Scheme kScheme = Scheme::bsbf;
  static void reset(const BitArrays<>& arrays, std::uint64_t& random) noexcept {
    for (unsigned i = 0; i < arrays.k(); ++i) arrays.clear_random(i, random);
  }
};

// Algorithm 3 resets one bit of one array.
struct OneArray {
  static constexpr Scheme kScheme = Scheme::bsbfsd;
  static void reset(const BitArrays<>& arrays, std::uint64_t& random) noexcept {
    const std::uint64_t i = random_below(random, arrays.k());
    arrays.clear_random(static_cast<unsigned>(i), random);
  }
};

// Algorithm 4 resets one bit of every array, with a probability equal to the array's load.
struct LoadedArrays {
  static constexpr Scheme kScheme = Scheme::rlbsbf;
  static void reset(const BitArrays<>& arrays, std::uint64_t& random) noexcept {
    for (unsigned i = 0; i < arrays.k(); ++i)
      if (random_below(random, arrays.s()) < arrays.ones(i)) arrays.clear_random(i, random);
  }
};

// The balance of FPR and FNR that §6.1 chooses.
constexpr std::uint64_t kDefaultArrays = 2;

constexpr OptionSpec kOptions[] = {biased_bit_arrays::kArraysOption};

template <typename Policy>
biased_model::Setting setting(const Parameters& p) noexcept {
  return {Policy::kScheme, to_real(p.integer(kArrays)),
          to_real(p.integer(biased_bit_arrays::kArrayBits))};
}

template <typename Policy>
using Modelled = biased_bit_arrays::Modelled<setting<Policy>>;

bool cannot_keep_forever(const Definition& definition, double limit, Problem& problem) noexcept {
  const Parameters& p = definition.parameters;
  problem.set(Error::conflict, "kind %s cannot keep fpr %g for ever", find_ops(p.kind)->name,
              definition.wanted_fpr());
  problem.add_detail("On a stream of new keys its false-positive rate tends to %.3g.", limit);
  char forever[200];
  list_kinds([](const FilterOps& ops) { return ops.keeps_fpr_forever; }, forever, sizeof forever);
  return problem.add_hint(
      "Give option keys (how many distinct keys to expect) or k, or use a kind that keeps fpr on "
      "any stream: %s.",
      forever);
}

template <typename Policy>
bool derive(Definition& definition, Problem& problem) noexcept {
  Parameters& p = definition.parameters;
  if (!definition.has(kArrays)) p.set_integer(kArrays, kDefaultArrays);
  if (!biased_bit_arrays::derive_bits(p, problem)) return false;
  if (definition.has(kArrays) || p.keys > 0) return true;
  const double limit = Modelled<Policy>::fpr_bound(p);
  return limit <= definition.wanted_fpr() || definition.break_fpr() ||
         cannot_keep_forever(definition, limit, problem);
}

template <typename Policy>
bool insert(const Parameters& p, Slice slice, const Element& element) noexcept {
  const BitArrays<> arrays = biased_bit_arrays::of(p, slice);
  const KeyBits bits(element.hash, arrays.k(), arrays.s());
  if (bits.all_set(arrays)) return true;
  if (slice.state->insertions == 0) stir(slice.state->random, element.hash);
  Policy::reset(arrays, slice.state->random);
  bits.set(arrays);
  return false;
}

template <typename Policy>
constexpr FilterOps row(Kind kind, const char* name, const char* summary) noexcept {
  return {
      .kind = kind,
      .name = name,
      .summary = summary,
      .options = kOptions,
      .derive = derive<Policy>,
      .test = biased_bit_arrays::test,
      .insert = insert<Policy>,
      .merge = Modelled<Policy>::merge,
      .check = biased_bit_arrays::check,
      .estimate = biased_bit_arrays::estimate,
      .fpr_bound = Modelled<Policy>::fpr_bound,
      .load = biased_bit_arrays::load,
      .rate_at = biased_bit_arrays::rate_at,
      .fnr_at = Modelled<Policy>::fnr_at,
      .predict = Modelled<Policy>::predict,
      .k_beyond_fpr = [](double, double) noexcept -> unsigned { return kDefaultArrays; },
      .resize = biased_bit_arrays::resizing(biased_bit_arrays::fpr_to_come),
  };
}

}  // namespace

const FilterOps bsbf_ops =
    row<EveryArray>(Kind::bsbf, "bsbf",
                    "biased sampling Bloom filter: every new key resets one bit of every array");

const FilterOps bsbfsd_ops =
    row<OneArray>(Kind::bsbfsd, "bsbfsd",
                  "biased sampling, single deletion: few false negatives; on an endless stream of "
                  "new keys it ends by calling everything a repeat");

const FilterOps rlbsbf_ops = row<LoadedArrays>(
    Kind::rlbsbf, "rlbsbf",
    "load-balanced biased sampling: resets more bits the fuller it is; fewest false negatives");

}  // namespace streamfilter
