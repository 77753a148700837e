#include "core/kind/biased_bit_arrays.hpp"

#include "core/format/spread.hpp"

namespace streamfilter::biased_bit_arrays {
namespace {

std::uint64_t word_at(const unsigned char* body, std::uint64_t index) noexcept {
  std::uint64_t word;
  std::memcpy(&word, body + 8 * index, 8);
  return word;
}

std::uint64_t count_ones(const Parameters& p, ConstSlice slice, unsigned i) noexcept {
  const std::uint64_t words = p.integer(kArrayBits) / 64, first = p.integer(kArrays) + i * words;
  std::uint64_t count = 0;
  for (std::uint64_t w = first; w < first + words; ++w)
    count += static_cast<std::uint64_t>(__builtin_popcountll(word_at(slice.body(), w)));
  return count;
}

double all_ones(const Parameters& p, ConstSlice slice) noexcept {
  const BitArrays<const unsigned char> arrays = of(p, slice);
  double sum = 0;
  for (unsigned i = 0; i < arrays.k(); ++i) sum += to_real(arrays.ones(i));
  return sum;
}

// True if one of the two filters has no key that the other lacks.
bool parts_are_one_sided(double into, double from, double both) noexcept {
  return both == into || both == from;
}

// Returns s for k arrays in a slice of this size; 0: there is no room.
std::uint64_t bits_per_array(std::uint64_t slice_bytes, std::uint64_t k) noexcept {
  const std::uint64_t words = (slice_bytes - sizeof(SliceState)) / 8;
  return words < 2 * k ? 0 : (words - k) / k * 64;
}

}  // namespace

double promised_keys(const Parameters& p) noexcept {
  return p.keys > 0 ? keys_of_fullest(to_real(p.keys), p.slices)
                    : std::numeric_limits<double>::infinity();
}

bool derive_bits(Parameters& p, Problem& problem) noexcept {
  const std::uint64_t k = p.integer(kArrays);
  p.set_integer(kArrayBits, bits_per_array(p.slice_bytes, k));
  if (p.integer(kArrayBits) > 0) return true;
  problem.set(Error::too_small, "a slice of %llu bytes has no room for k = %u arrays of bits",
              llu(p.slice_bytes), static_cast<unsigned>(k));
  return problem.add_hint("Use more memory, fewer slices or a smaller k.");
}

bool test(const Parameters& p, ConstSlice slice, const Element& element) noexcept {
  const BitArrays<const unsigned char> arrays = of(p, slice);
  for (unsigned i = 0; i < arrays.k(); ++i)
    if (!arrays.get(i, position(element.hash, i, arrays.s()))) return false;
  return true;
}

void merge(const Parameters& p, Slice into, ConstSlice from, double limit_load) noexcept {
  const double k = to_real(p.integer(kArrays)), bits = k * to_real(p.integer(kArrayBits));
  const double before = all_ones(p, as_const(into)),
               parts = counted_keys(before, bits, k) + counted_keys(all_ones(p, from), bits, k);
  for (std::uint64_t i = 8 * p.integer(kArrays); i < into.bytes; ++i)
    into.body()[i] |= from.body()[i];
  const BitArrays<> arrays = of(p, into);
  for (unsigned i = 0; i < arrays.k(); ++i) arrays.set_ones(i, count_ones(p, as_const(into), i));
  into.state->inserted_new =
      merged_new_by_cells(into.state->inserted_new, from.state->inserted_new, parts,
                          counted_keys(all_ones(p, as_const(into)), bits, k));
  if (parts_are_one_sided(before, all_ones(p, from), all_ones(p, as_const(into)))) return;
  for (unsigned i = 0; i < arrays.k(); ++i)
    while (to_real(arrays.ones(i)) > limit_load * to_real(arrays.s()))
      arrays.clear_random(i, into.state->random);
}

void spread(const Parameters& old, ConstSlice from, const Parameters& p, Slice into,
            std::uint64_t layer) noexcept {
  const BitArrays<const unsigned char> source = of(old, from);
  const BitArrays<> arrays = of(p, into);
  for (unsigned i = 0; i < arrays.k(); ++i)
    for_each_place(source.s(), arrays.s(), layer, [&](std::uint64_t to, std::uint64_t at) {
      if (source.get(i, at)) arrays.set(i, to);
    });
}

bool check(const Parameters& p, ConstSlice slice) noexcept {
  if (p.integer(kArrayBits) != bits_per_array(p.slice_bytes, p.integer(kArrays))) return false;
  const BitArrays<const unsigned char> arrays = of(p, slice);
  for (unsigned i = 0; i < arrays.k(); ++i)
    if (arrays.ones(i) != count_ones(p, slice, i)) return false;
  // The words behind the last array stay zero.
  const std::uint64_t used = arrays.k() * (1 + arrays.s() / 64);
  for (std::uint64_t w = used; w < slice.bytes / 8; ++w)
    if (word_at(slice.body(), w) != 0) return false;
  return true;
}

std::uint64_t load(const Parameters& p, ConstSlice slice) noexcept {
  const BitArrays<const unsigned char> arrays = of(p, slice);
  std::uint64_t sum = 0;
  for (unsigned i = 0; i < arrays.k(); ++i) sum += arrays.ones(i);
  return sum;
}

double rate_at(const Parameters& p, double load) noexcept {
  const double k = to_real(p.integer(kArrays));
  return std::pow(std::min(load / k / to_real(p.integer(kArrayBits)), 1.0), k);
}

// The bound for `keys` supposes that nothing is reset, so this does, too.
double fpr_to_come(const Parameters& p, ConstSlice slice) noexcept {
  if (p.keys == 0) return 0;
  const BitArrays<const unsigned char> arrays = of(p, slice);
  const double s = to_real(arrays.s()),
               more = std::max(0.0, promised_keys(p) - to_real(slice.state->inserted_new)),
               unset = std::exp(more * std::log1p(-1 / s));
  double fpr = 1;
  for (unsigned i = 0; i < arrays.k(); ++i) fpr *= 1 - (1 - to_real(arrays.ones(i)) / s) * unset;
  return fpr;
}

Estimate estimate(const Parameters& p, ConstSlice slice) noexcept {
  const BitArrays<const unsigned char> arrays = of(p, slice);
  const double s = to_real(arrays.s());
  double fill = 0, fpr = 1;
  for (unsigned i = 0; i < arrays.k(); ++i) {
    const double load = to_real(arrays.ones(i)) / s;
    fill += load / arrays.k();
    fpr *= load;
  }
  return {fill, fpr, to_real(slice.state->inserted_new)};
}

}  // namespace streamfilter::biased_bit_arrays
