#include "core/filter/auto_kind.hpp"

#include <cstdio>

#include "core/filter/derivation.hpp"
#include "core/filter/options.hpp"
#include "core/kind/cache_line_queue.hpp"
#include "core/model/capped_model.hpp"

#include "core/base/layer_wall.hpp"

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

// Chooses a Bloom filter if it keeps fpr up to the number of keys: no other kind misses no repeat.
bool choose_bloom(Definition& definition) noexcept {
  Definition attempt = definition;
  attempt.parameters.kind = Kind::bloom;
  if (definition.parameters.keys == 0 || !is_possible(attempt)) return false;
  if (!definition.is_given(Common::layout) && definition.is_given(Common::memory) &&
      definition.parameters.memory >= kBeyondCache) {
    attempt.parameters.layout = Layout::blocked;
    if (is_possible(attempt)) definition.parameters.layout = Layout::blocked;
  }
  return choose(definition, Kind::bloom, "it keeps fpr up to that many keys and misses no repeat");
}

}  // namespace

CappedLines roomiest_lines(double fpr) noexcept {
  CappedLines best;
  for (unsigned k = 1; k <= capped_model::kMaxHashes; ++k) {
    const unsigned ones = std::min(capped_model::most_ones(fpr, k), 511u);
    if (ones <= k) continue;
    const double filling =
        capped_model::filling({static_cast<double>(k), static_cast<double>(ones)});
    if (filling > best.filling) best = {k, ones, filling};
  }
  return best;
}

namespace {

bool choose_capped(Definition& definition) noexcept {
  const Parameters& p = definition.parameters;
  const CappedLines lines = roomiest_lines(definition.wanted_fpr());
  if (lines.k >= sizeof kMaxKeysToFilling / sizeof *kMaxKeysToFilling) return false;
  const double keys = static_cast<double>(p.keys) * 64 / static_cast<double>(p.memory);
  if (!(keys <= kMaxKeysToFilling[lines.k] * lines.filling)) return false;
  Definition attempt = definition;
  attempt.parameters.kind = Kind::capped;
  attempt.parameters.layout = Layout::scattered;
  char k[8], cap[32];
  std::snprintf(k, sizeof k, "%u", lines.k);
  std::snprintf(cap, sizeof cap, "%.10g", lines.ones / 512.0);
  Problem ignored;
  if (!set_option(attempt, "k", k, ignored) || !set_option(attempt, "cap", cap, ignored) ||
      !is_possible(attempt))
    return false;
  definition = attempt;
  return choose(definition, Kind::capped,
                "it keeps fpr for ever, and forgets few of that many keys");
}

// Number of 64-byte lines, as a double.
double keys_to_line(const Parameters& p) noexcept {
  return static_cast<double>(p.keys) * kLineBytes / static_cast<double>(p.memory);
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
  if (choose_bloom(definition) || (p.keys > 0 && choose_capped(definition))) return;
  // A key of this kind lies in one line anyway.
  p.layout = Layout::scattered;
  choose(definition, Kind::clq,
         p.keys > 0 ? "it keeps fpr for ever, and forgets the fewest of that many keys"
                    : "it keeps fpr for ever, and remembers the longest of the kinds that do");
  choose_lines(definition);
}

}  // namespace streamfilter
