#include "core/filter/auto_kind.hpp"

#include <cmath>
#include <limits>

#include "core/filter/derivation.hpp"
#include "core/filter/options.hpp"
#include "core/kind/cache_line_queue.hpp"

namespace streamfilter {
namespace {

// In a filter larger than the processor's cache, keeping a key in one line pays.
constexpr std::uint64_t kBeyondCache = 4u << 20;

bool choose(Definition& definition, Kind kind, const char* reason) noexcept {
  definition.parameters.kind = kind;
  definition.reason = reason;
  return true;
}

bool is_possible(Definition attempt) noexcept {
  Problem ignored;
  return derive_parameters(attempt, ignored);
}

// The memory in which a kind keeps fpr for the keys and misses none of them; infinity: none, or it
// is more than was given and the kind cannot do with less.
double memory_of(Definition attempt, Kind kind) noexcept {
  attempt.parameters.kind = kind;
  const std::uint64_t memory = is_possible(attempt) ? memory_for_keys(attempt) : 0;
  return memory > 0 ? to_real(memory) : std::numeric_limits<double>::infinity();
}

// Of two kinds that miss no repeat up to the number of keys, the one that needs less memory: vqf
// below an fpr of about .7 %. Where both fit, that one leaves the rate lower, too. A key takes as
// long in either of them, or less in vqf: it reads two lines, a Bloom filter of fpr .7 % seven, or
// one where it is blocked (docs/benchmarks.md).
bool choose_known(Definition& definition) noexcept {
  if (definition.parameters.keys == 0) return false;
  constexpr double kMemoryToVqf = 1;  // of bloom
  Definition blocked = definition;
  blocked.parameters.kind = Kind::bloom;
  blocked.parameters.layout = Layout::blocked;
  const double bloom = memory_of(definition, Kind::bloom), vqf = memory_of(definition, Kind::vqf),
               given = definition.is_given(Common::memory) ? to_real(definition.parameters.memory)
                                                           : std::numeric_limits<double>::max();
  if (vqf <= given && vqf <= bloom * kMemoryToVqf)
    return choose(definition, Kind::vqf,
                  "it keeps fpr for ever, and misses none of that many keys");
  if (std::isfinite(bloom)) {
    if (!definition.is_given(Common::layout) && definition.is_given(Common::memory) &&
        definition.parameters.memory >= kBeyondCache && is_possible(blocked))
      definition.parameters.layout = Layout::blocked;
    return choose(definition, Kind::bloom,
                  "it keeps fpr up to that many keys and misses no repeat");
  }
  // Beyond, vqf misses fewer until there are twice as many keys as it holds; then it is better to
  // remember those that were seen last.
  return vqf <= 2 * given &&
         choose(definition, Kind::vqf, "it keeps fpr for ever, and forgets few of that many keys");
}

// Number of 64-byte lines, as a double.
double keys_to_line(const Parameters& p) noexcept {
  return to_real(p.keys) * kLineBytes / to_real(p.memory);
}

// Does a choice of two lines remember more? It makes the window longer but leaves room for fewer
// fingerprints, since each has a bit more. If the stream ends, the number of keys held counts;
// otherwise the window, unless more room is lost than it gains.
bool remembers_more(const Parameters& two, const Parameters& one) noexcept {
  const clq_model::LineShape shape = clq::shape_of(two), other = clq::shape_of(one);
  if (two.keys > 0)
    return clq_model::mean_held(shape, keys_to_line(two)) >
           clq_model::mean_held(other, keys_to_line(one));
  constexpr double kForgettable = 0.01;
  return window_keys(two, kForgettable) * shape.length >
         window_keys(one, kForgettable) * other.length * other.buckets();
}

void choose_lines(Definition& definition) noexcept {
  Definition one = definition, two = definition;
  Problem ignored;
  if (set_option(two, "lines", "2", ignored) && derive_parameters(two, ignored) &&
      derive_parameters(one, ignored) && remembers_more(two.parameters, one.parameters))
    set_option(definition, "lines", "2", ignored);
}

}  // namespace

void choose_kind(Definition& definition) noexcept {
  Parameters& p = definition.parameters;
  if (const FilterOps* ops = kind_of_options(definition)) {
    choose(definition, ops->kind, "repeats count within a window only");
    return;
  }
  if (choose_known(definition)) return;
  // A key of this kind lies in one line anyway.
  p.layout = Layout::scattered;
  choose(definition, Kind::clq,
         p.keys > 0 ? "it keeps fpr for ever, and forgets the fewest of that many keys"
                    : "it keeps fpr for ever, and remembers the longest of the kinds that do");
  choose_lines(definition);
}

}  // namespace streamfilter
