#include "streamfilter/core/auto_kind.hpp"

#include "streamfilter/core/no_postgres.hpp"

namespace streamfilter {
namespace {

// A filter that is larger than what the processor caches gains by having a key in one line.
constexpr std::uint64_t kBeyondCache = 4u << 20;

bool choose(Definition& definition, Kind kind, const char* reason) noexcept {
  definition.parameters.kind = kind;
  definition.reason = reason;
  return true;
}

bool is_possible(Definition attempt) noexcept {
  Problem ignored;
  return complete(attempt, ignored);
}

// A Bloom filter that keeps fpr up to the number of keys: nothing else misses no repeat at all.
bool choose_bloom(Definition& definition) noexcept {
  Definition attempt = definition;
  attempt.parameters.kind = Kind::bloom;
  if (definition.parameters.keys == 0 || !is_possible(attempt)) return false;
  if (!definition.layout_given && definition.memory_given &&
      definition.parameters.memory >= kBeyondCache) {
    attempt.parameters.layout = Layout::blocked;
    if (is_possible(attempt)) definition.parameters.layout = Layout::blocked;
  }
  return choose(definition, Kind::bloom, "it keeps fpr up to that many keys and misses no repeat");
}

}  // namespace

const FilterOps* kind_of_auto_option(const char* name) noexcept {
  return std::strcmp(name, "window") == 0 ? find_ops(Kind::timer) : nullptr;
}

void choose_kind(Definition& definition) noexcept {
  Parameters& p = definition.parameters;
  if (definition.given != 0) {
    choose(definition, Kind::timer, "repeats count within a window only");
    return;
  }
  if (choose_bloom(definition)) return;
  // A key of this kind lies in one line whatever the layout is called.
  p.layout = Layout::scattered;
  choose(definition, Kind::clq,
         p.keys > 0 ? "no filter of this memory keeps fpr and all of that many keys; this one "
                      "forgets those not seen for longest"
                    : "it keeps fpr for ever, and of the kinds that do, it remembers the longest");
}

}  // namespace streamfilter
