#include <cstdio>

#include "core/advise/advise.hpp"
#include "core/base/math_policy.hpp"

namespace streamfilter {
namespace {

constexpr double kMaxRows = 1e15;

// When filters are compared, lower rates count as zero.
constexpr double kNone = 1e-9;

bool out_of_range(Problem& problem, const char* what, double value) noexcept {
  return problem.set(Error::out_of_range, "%s %.15g is out of range", what, value);
}

bool is_modelled(const Advice& a) noexcept { return !std::isnan(a.predicted.fpr); }

// The groups of advise(), best first.
enum Rank { kKeeps, kDoesNotKeep, kForImportance, kUnknown };

Rank rank_of(const Advice& a) noexcept {
  if (!is_modelled(a)) return kUnknown;
  if (uses_importance(a.parameters)) return kForImportance;
  return a.keeps_fpr ? kKeeps : kDoesNotKeep;
}

// In the order of advise(); without repeats, none is missed.
bool is_better(const Advice& a, const Advice& b, double fpr) noexcept {
  const Rank rank = rank_of(a), other = rank_of(b);
  if (rank != other) return rank < other;
  if (rank == kUnknown) return false;
  if (rank == kDoesNotKeep) {
    const double beyond_a = std::max(a.predicted.fpr, fpr),
                 beyond_b = std::max(b.predicted.fpr, fpr);
    if (beyond_a != beyond_b) return beyond_a < beyond_b;
  }
  const double fnr_a = a.predicted.fnr > kNone ? a.predicted.fnr : 0,
               fnr_b = b.predicted.fnr > kNone ? b.predicted.fnr : 0;
  if (fnr_a != fnr_b) return fnr_a < fnr_b;
  return a.predicted.fpr < b.predicted.fpr;
}

// Tries one kind at a time.
class ParameterSearch {
 public:
  ParameterSearch(const Definition& requested, const Stream& stream, const FilterOps& ops) noexcept
      : requested_(requested), stream_(stream), ops_(ops) {
    requested_.parameters.kind = ops.kind;
  }

  void run() noexcept {
    if (ops_.forgets == Forgets::after_window) return try_windows();
    if (ops_.keeps_fpr_forever) try_all(/*keys=*/0);
    const std::uint64_t keys = static_cast<std::uint64_t>(std::ceil(stream_.distinct()));
    if (!try_all(keys) && !ops_.keeps_fpr_forever) try_hashes(keys);
  }

  // The results, at most two; if there are none, `problem` says why.
  unsigned report(Advice* advice, Problem& problem) const noexcept {
    const double fpr = requested_.wanted_fpr();
    unsigned count = 0;
    if (has_[kForever]) advice[count++] = best_[kForever];
    if (has_[kUpToKeys] && (count == 0 || is_better(best_[kUpToKeys], best_[kForever], fpr)))
      advice[count++] = best_[kUpToKeys];
    if (count == 0 && problem_.error == Error::too_small) problem = problem_;
    return count;
  }

 private:
  enum Promise { kForever, kUpToKeys };

  bool try_all(std::uint64_t keys) noexcept {
    bool any = attempt(keys, nullptr, nullptr);
    for (const OptionToTry& option : ops_.to_try)
      if (option.has_model) any |= attempt(keys, option.name, option.value);
    return any;
  }

  bool attempt(std::uint64_t keys, const char* option, const char* value) noexcept {
    Definition definition = requested_;
    definition.parameters.keys = keys;
    Problem problem;
    if ((option != nullptr && !set_option(definition, option, value, problem)) ||
        !complete(definition, problem)) {
      problem_ = problem;
      return false;
    }
    const Parameters& p = definition.parameters;
    Advice found{p, {NAN, NAN}, ops_.fpr_bound(p), false};
    if (ops_.predict != nullptr) found.predicted = ops_.predict(p, stream_);
    // The bound holds on this stream, while the prediction has integration errors.
    found.predicted.fpr = std::min(found.predicted.fpr, found.fpr_bound);
    found.keeps_fpr = found.fpr_bound <= requested_.wanted_fpr();
    if (!found.keeps_fpr) found.parameters.fpr = 0;  // a prototype promises only what it keeps
    const Promise promise = keys > 0 ? kUpToKeys : kForever;
    if (!has_[promise] || is_better(found, best_[promise], requested_.wanted_fpr()))
      best_[promise] = found;
    return has_[promise] = true;
  }

  // Kinds that refuse parameters beyond fpr do what they are told.
  void try_hashes(std::uint64_t keys) noexcept {
    if (ops_.k_beyond_fpr == nullptr) return;
    const double bits = to_real(requested_.parameters.memory) * 8;
    char k[8];
    std::snprintf(k, sizeof k, "%u", ops_.k_beyond_fpr(bits, stream_.distinct()));
    attempt(keys, "k", k);
  }

  // The longest window of rows that keeps fpr even if all of its keys fall into one slice.
  void try_windows() noexcept {
    std::uint64_t low = 0, high = static_cast<std::uint64_t>(
                               stream_.distinct() + 6 * std::sqrt(64 * stream_.distinct()) + 64);
    if (!keeps_window(high)) {
      while (high - low > std::max<std::uint64_t>(1, high / 1024)) {
        const std::uint64_t middle = low + (high - low) / 2;
        (keeps_window(middle) ? low : high) = middle;
      }
      if (low == 0) return;
      high = low;
    }
    attempt(/*keys=*/0, "window", window_of(high));
  }

  bool keeps_window(std::uint64_t rows) noexcept {
    Definition definition = requested_;
    problem_ = Problem{};
    return set_option(definition, "window", window_of(rows), problem_) &&
           complete(definition, problem_);
  }

  const char* window_of(std::uint64_t rows) noexcept {
    std::snprintf(window_, sizeof window_, "%llu rows", llu(rows));
    return window_;
  }

  Definition requested_;
  const Stream& stream_;
  const FilterOps& ops_;
  Advice best_[2] = {};
  bool has_[2] = {};
  Problem problem_;
  char window_[32] = "";
};

}  // namespace

bool describe_stream(double rows, double distinct, const double* gap, Stream& stream,
                     Problem& problem) noexcept {
  if (!(rows >= 1 && rows <= kMaxRows)) {
    out_of_range(problem, "number of rows", rows);
    return problem.add_detail("It must be between 1 and %.15g.", kMaxRows);
  }
  if (!(distinct >= 1 && distinct <= rows)) {
    out_of_range(problem, "number of distinct rows", distinct);
    return problem.add_detail("It must be between 1 and the number of rows, %.15g.", rows);
  }
  if (gap != nullptr && !(*gap >= 1 && *gap <= distinct)) {
    out_of_range(problem, "gap", *gap);
    problem.add_detail("It must be between 1 and the number of distinct rows, %.15g.", distinct);
    return problem.add_hint(
        "Repeats that come at a typical gap have as many other keys between them. Leave gap out "
        "if repeats come after any time.");
  }
  stream = gap != nullptr ? Stream::at_gap(rows, distinct, *gap) : Stream::uniform(rows, distinct);
  return true;
}

unsigned advise(const Definition& requested, const Stream& stream, Advice* advice,
                Problem& problem) noexcept {
  unsigned count = 0;
  for (const FilterOps* ops : all_ops()) {
    if (ops->counts_only || count + 2 > kMaxAdvice) continue;
    ParameterSearch search(requested, stream, *ops);
    search.run();
    count += search.report(advice + count, problem);
  }
  // Insertion sort is stable, so equal ones stay in the order of the table of kinds.
  const double fpr = requested.wanted_fpr();
  for (unsigned i = 1; i < count; ++i) {
    const Advice moved = advice[i];
    unsigned at = i;
    for (; at > 0 && is_better(moved, advice[at - 1], fpr); --at) advice[at] = advice[at - 1];
    advice[at] = moved;
  }
  return count;
}

void explain(const Advice& advice, char* buffer, std::size_t size) noexcept {
  const Parameters& p = advice.parameters;
  const auto keys = llu(p.keys);
  int length;
  if (advice.keeps_fpr && keys == 0)
    length = std::snprintf(buffer, size, "keeps fpr for ever");
  else if (advice.keeps_fpr)
    length = std::snprintf(buffer, size, "keeps fpr up to %llu distinct keys", keys);
  else if (keys == 0)
    length = std::snprintf(buffer, size, "does not keep fpr");
  else
    length = std::snprintf(buffer, size,
                           "does not keep fpr: the rate may reach %.3g at %llu distinct keys",
                           advice.fpr_bound, keys);
  const auto add = [&](const char* remark) {
    const std::size_t used = std::min(static_cast<std::size_t>(length), size - 1);
    length += std::snprintf(buffer + used, size - used, "; %s", remark);
  };
  if (find_ops(p.kind)->forgets == Forgets::after_window) add("the window counts accepted rows");
  if (uses_importance(p)) add("predicted for keys that are all of the least importance");
  if (!is_modelled(advice)) add("no model of its errors on such a stream");
}

// ---- forecasts ----------------------------------------------------------------------------------

static bool can_be_tried(const FilterOps& ops) noexcept {
  return !ops.counts_only && ops.forgets != Forgets::after_window && ops.uses_importance != always;
}

// The rate of `wrong` among `all`, with an error estimated from the differences between parts of
// the keys; at least the error of that many independent draws.
template <typename Part, typename Wrong, typename All>
static Measured measure(const Part* parts, unsigned count, Wrong wrong, All all) noexcept {
  double errors = 0, rows = 0, squares = 0;
  for (unsigned i = 0; i < count; ++i) {
    errors += wrong(parts[i]);
    rows += all(parts[i]);
  }
  if (!(rows > 0)) {
    constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
    return {kUnknown, kUnknown};
  }
  const double rate = errors / rows, share = (errors + 0.5) / (rows + 1);
  for (unsigned i = 0; i < count; ++i) {
    const double more = wrong(parts[i]) - rate * all(parts[i]);
    squares += more * more;
  }
  const double between = std::sqrt(squares * count / (count - 1)) / rows;
  return {rate, std::max(between, std::sqrt(share * (1 - share) / rows))};
}

std::size_t find_repeats(const std::uint64_t* hashes, std::size_t count, std::uint64_t* table,
                         std::size_t size, bool* repeated) noexcept {
  std::fill_n(table, size, 0);
  std::size_t repeats = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t hash = std::max<std::uint64_t>(hashes[i], 1);
    std::size_t at = static_cast<std::size_t>(mix64(hash)) & (size - 1);
    while (table[at] != 0 && table[at] != hash) at = (at + 1) & (size - 1);
    repeated[i] = table[at] == hash;
    repeats += repeated[i];
    table[at] = hash;
  }
  return repeats;
}

unsigned list_recipes(Recipe* recipes) noexcept {
  unsigned count = 0;
  for (const FilterOps* ops : all_ops()) {
    if (!can_be_tried(*ops) || count + 10 > kMaxRecipes) continue;
    for (const bool is_for_keys : {false, true}) {
      if (!is_for_keys && !ops->keeps_fpr_forever) continue;
      recipes[count++] = {ops->kind, is_for_keys, nullptr, nullptr};
      for (const OptionToTry& option : ops->to_try)
        recipes[count++] = {ops->kind, is_for_keys, option.name, option.value};
    }
  }
  return count;
}

bool follow(const Recipe& recipe, const Definition& requested, std::uint64_t memory, double keys,
            Parameters& parameters) noexcept {
  Definition definition = requested;
  Problem problem;
  definition.parameters.kind = recipe.kind;
  definition.parameters.memory = memory;
  definition.parameters.keys =
      recipe.is_for_keys ? saturate<std::uint64_t>(std::ceil(std::max(keys, 1.0))) : 0;
  definition.may_break_fpr = recipe.is_for_keys;
  if ((recipe.option != nullptr && !set_option(definition, recipe.option, recipe.value, problem)) ||
      !complete(definition, problem))
    return false;
  parameters = definition.parameters;
  return true;
}

void Trial::take(const SampledRows& rows, std::size_t from, std::size_t to) noexcept {
  for (std::size_t i = from; i < to; ++i) {
    Element element{};
    element.hash = rows.hashes[i];
    const bool seen = insert(filter_, element);
    Part& part = parts_[mix64(sampling_position(rows.hashes[i])) % kParts];
    if (rows.repeated[i]) {
      ++part.repeats;
      part.false_negatives += !seen;
    } else {
      ++part.new_rows;
      part.false_positives += seen;
    }
  }
}

Forecast Trial::forecast() const noexcept {
  return {measure(
              parts_, kParts, [](const Part& part) { return part.false_positives; },
              [](const Part& part) { return part.new_rows; }),
          measure(
              parts_, kParts, [](const Part& part) { return part.false_negatives; },
              [](const Part& part) { return part.repeats; })};
}

}  // namespace streamfilter
