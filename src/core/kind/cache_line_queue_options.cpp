// The options of kind clq, and the parameters that follow from them.
#include "core/kind/cache_line_queue.hpp"

#include "core/base/layer_wall.hpp"

namespace streamfilter::clq {
namespace {

constexpr double kMaxWindow = 1e18;

constexpr const char* kPolicies[] = {"lru", "fifo", "second", nullptr};

bool cannot_keep(const Definition& definition, Problem& problem) noexcept {
  problem.set(Error::conflict, "kind clq cannot keep fpr %g", definition.wanted_fpr());
  if (definition.given == 0)
    return problem.add_hint(
        "The least it can keep is %.3g.",
        clq_model::LineShape{kMaxFingerprintBits, 1, false, shape_of(definition.parameters).lines}
            .fpr());
  return problem.add_hint("Leave out bits and bucket, or use a larger fpr.");
}

// The FNR at which the promised window ends. If memory cannot hold all promised keys anyway, a
// looser limit will do.
bool find_shape(const Definition& definition, clq_model::LineShape& shape) noexcept {
  const Parameters& p = definition.parameters;
  const unsigned bits = definition.has(kBits) ? shape.bits : 0,
                 length = definition.has(kBucket) ? shape.length : 0;
  const double fpr = definition.wanted_fpr(),
               lines = static_cast<double>(body_bytes(p) / kLineBytes) * p.slices,
               keys = static_cast<double>(p.keys) / lines;
  if (!clq_model::best_shape(fpr, bits, length, shape, has_window(p), shape.lines)) return false;
  if (has_choice(p)) return true;
  if (clq_model::fnr(keys, shape.length, shape.buckets()) <= 0.01) return true;
  return clq_model::best_shape_for(keys, fpr, bits, length, shape, has_window(p));
}

// The shortest ticks with which ages fit into their bits. A key accepted at the end of a tick stays
// for exactly the window; one at its beginning, up to a tick longer.
bool derive_ticks(Definition& definition, Problem& problem) noexcept {
  Parameters& p = definition.parameters;
  if (definition.has(kWindow) && p.integer(kWindow + 1) != 0) {
    problem.set(Error::unsupported, "kind clq has no windows of rows");
    problem.add_detail("Its fingerprints have ages in time; rows push the oldest out of a bucket.");
    return problem.add_hint("Use a time, for example window '10 minutes', or kind timer.");
  }
  if (!check_lateness(definition, kWindow, kLateness, problem)) return false;
  if (!definition.has(kWindow)) return true;
  const std::uint64_t rest = kept_for(p, kWindow, kLateness) - 1;
  const std::uint64_t tick = std::max<std::uint64_t>(1, (rest + kAges - 2) / (kAges - 1));
  p.set_integer(kTickLength, tick);
  p.set_integer(kTicks, (rest + tick - 1) / tick + 1);
  return true;
}

bool derive_importance(Definition& definition, Problem& problem) noexcept {
  if (!definition.has(kRange) && !definition.has(kLevels)) return true;
  if (!importance::check(definition, kImportanceWords, problem)) return false;
  Parameters& p = definition.parameters;
  if (definition.has(kPolicy) && p.integer(kPolicy) == second) {
    problem.set(Error::conflict, "policy second and an importance exclude each other");
    return problem.add_detail("Both say at which place a new key enters its bucket.");
  }
  p.set_integer(kParts, definition.has(kLevels) ? p.integer(kLevels) : kPartsOfRange);
  return true;
}

bool check_lines(const Definition& definition, Problem& problem) noexcept {
  const Parameters& p = definition.parameters;
  if (!has_choice(p)) return true;
  const char* other = has_window(p)                ? "a window"
                      : has_importance(p)          ? "an importance"
                      : p.integer(kPolicy) == fifo ? "policy fifo"
                                                   : "policy second";
  if (!has_window(p) && !has_importance(p) && p.integer(kPolicy) == lru) return true;
  problem.set(Error::conflict, "lines 2 and %s exclude each other", other);
  problem.add_detail("Where a key has two lines, the order in them is that of last sight.");
  return problem.add_hint("Leave out one of them.");
}

}  // namespace

const OptionSpec kOptions[] = {
    {.word = kBits,
     .name = "bits",
     .type = OptionType::integer,
     .low = clq_model::kMinBits,
     .high = kMaxFingerprintBits},
    {.word = kBucket,
     .name = "bucket",
     .type = OptionType::integer,
     .low = 1,
     .high = clq_model::kMaxQueue},
    {.word = kPolicy, .name = "policy", .type = OptionType::choice, .choices = kPolicies},
    {.word = kWindow, .name = "window", .type = OptionType::span, .low = 1, .high = kMaxWindow},
    importance::range_option(kRange),
    importance::levels_option(kLevels, 14),
    {.word = kLateness, .name = "lateness", .type = OptionType::span, .low = 1, .high = kMaxWindow},
    {.word = kLines, .name = "lines", .type = OptionType::integer, .low = 1, .high = 2},
};

bool derive(Definition& definition, Problem& problem) noexcept {
  Parameters& p = definition.parameters;
  if (!derive_ticks(definition, problem) || !derive_importance(definition, problem)) return false;
  if (!definition.has(kPolicy)) p.set_integer(kPolicy, lru);
  if (!check_lines(definition, problem)) return false;
  clq_model::LineShape shape = shape_of(p);
  if (!definition.has(kBits) || !definition.has(kBucket)) {
    if (!find_shape(definition, shape)) return cannot_keep(definition, problem);
    p.set_integer(kBits, shape.bits);
    p.set_integer(kBucket, shape.length);
  }
  if (shape.is_possible()) {
    if (!has_choice(p)) p.set_integer(kBuckets, shape.buckets());
    return true;
  }
  problem.set(Error::conflict, "a line has no room for a bucket of %u fingerprints of %u bits",
              shape.length, shape.bits);
  problem.add_detail("A line has %u bits%s, and the fingerprints of a bucket are all different.",
                     kLineBits,
                     has_window(p)   ? ", of which a window takes 32 and 4 per fingerprint"
                     : has_choice(p) ? ", of which a choice of two takes 5"
                                     : "");
  return problem.add_hint("Leave out bucket, or set it to at most %u.",
                          clq_model::longest(shape.bits, has_window(p), shape.lines));
}

}  // namespace streamfilter::clq
