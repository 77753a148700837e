#include <cstdio>
#include <initializer_list>

#include "core/filter/common_options.hpp"
#include "core/filter/derivation.hpp"
#include "core/filter/option_values.hpp"
#include "core/filter/options.hpp"
#include "core/filter/promise.hpp"

namespace streamfilter {
namespace {

constexpr double kRounding = 1e-9;  // other math libraries may round differently

const OptionSpec* find_given(const Definition& definition, const char* name) noexcept {
  const OptionSpec* option = find_option(*find_ops(definition.parameters.kind), name);
  return option != nullptr && definition.has(option->word) ? option : nullptr;
}

void leave_out(Definition& definition, const OptionSpec& option) noexcept {
  Parameters& p = definition.parameters;
  std::memset(&p.word[option.word], 0, words_of(p, option) * sizeof *p.word);
  definition.given &= ~(WordSet{1} << option.word);
}

// A list of options with values.
class OptionList {
 public:
  explicit OptionList(const char* between) noexcept : between_(between) {}

  TextWriter& begin(const char* name) noexcept {
    out_.add(out_.length() > 0 ? between_ : "");
    out_.add(name);
    out_.add(" ");
    return out_;
  }

  void add(const Parameters& parameters, const OptionSpec& option) noexcept {
    if (in_use(parameters, option))
      write_option(begin(option.name), parameters, option);
    else
      begin("no").add(option.name);
  }

  const char* text() const noexcept { return text_; }
  bool is_empty() const noexcept { return out_.length() == 0; }

 private:
  const char* between_;
  char text_[200];
  TextWriter out_{text_, sizeof text_};
};

// For each option of the kind, the value that would fit the others.
void add_fitting_options(const Definition& asked, OptionList& fitting) noexcept {
  const FilterOps& ops = *find_ops(asked.parameters.kind);
  for (const OptionSpec& option : ops.options) {
    if (!asked.has(option.word)) continue;
    Definition attempt = asked;
    Problem ignored;
    leave_out(attempt, option);
    if (derive_parameters(attempt, ignored) && keeps_promise(attempt.parameters) &&
        attempt.parameters.keys == asked.parameters.keys)
      fitting.add(attempt.parameters, option);
  }
}

void add_fitting_size(const Definition& completed, OptionList& fitting) noexcept {
  const Parameters& p = completed.parameters;
  if (find_ops(p.kind)->keeps_fpr_forever) return;
  if (const std::uint64_t keys = keys_for_memory(completed);
      keys > 0 && (p.keys == 0 || keys < p.keys))
    fitting.begin("keys").add(keys);
  if (p.keys == 0) return;
  if (const std::uint64_t memory = memory_for_keys(completed)) {
    char size[32];
    print_size(memory, size, sizeof size);
    fitting.begin("memory").add(size);
  }
}

// The bound with three digits, rounded up. Parameters derived for another fpr can have another
// bound.
void add_fitting_fpr(const Definition& asked, double bound, OptionList& fitting) noexcept {
  for (unsigned rounds = 0; rounds < 8 && bound < 0.99; ++rounds) {
    const double unit = std::pow(10, std::floor(std::log10(bound)) - 2);
    char text[32];
    std::snprintf(text, sizeof text, "%.3g", std::ceil(bound / unit) * unit);
    Definition attempt = asked;
    Problem ignored;
    if (!parse_real(text, attempt.parameters.fpr) || !derive_parameters(attempt, ignored)) return;
    if (keeps_promise(attempt.parameters)) {
      fitting.begin("fpr").add(text);
      return;
    }
    bound = find_ops(asked.parameters.kind)->fpr_bound(attempt.parameters);
  }
}

bool contradiction(const Definition& asked, const Definition& completed,
                   Problem& problem) noexcept {
  const Parameters& p = completed.parameters;
  const FilterOps& ops = *find_ops(p.kind);
  const double bound = ops.fpr_bound(p);
  OptionList given(", "), fitting(", or ");
  for (const OptionSpec& option : ops.options)
    if (asked.has(option.word)) given.add(asked.parameters, option);
  if (asked.has_probes()) {
    given.begin("k1").add(std::uint64_t{asked.parameters.k1});
    given.begin("k2").add(std::uint64_t{asked.parameters.k2});
  }
  add_fitting_options(asked, fitting);
  add_fitting_size(completed, fitting);
  add_fitting_fpr(asked, bound, fitting);
  if (p.keys > 0)
    problem.set(Error::conflict, "kind %s cannot keep fpr %g for %llu keys with %s", ops.name,
                p.fpr, llu(p.keys), given.text());
  else
    problem.set(Error::conflict, "kind %s cannot keep fpr %g with %s", ops.name, p.fpr,
                given.text());
  problem.add_detail("With these options its false-positive rate would reach %.3g.", bound);
  if (fitting.is_empty()) return problem.add_hint("Leave out fpr, or the others of these options.");
  return problem.add_hint("This would do: %s. Without fpr, nothing is promised.", fitting.text());
}

// In kind sbf, gap chooses max, and so means nothing beside another max, or cells for one.
bool check_gap(const Definition& asked, Problem& problem) noexcept {
  const OptionSpec* gap = find_given(asked, "gap");
  if (gap == nullptr) return true;
  const OptionSpec *max = find_given(asked, "max"), *cells = find_given(asked, "cell_bits");
  const OptionSpec* other = max != nullptr ? max : cells;
  if (other == nullptr) return true;
  Definition attempt = asked;
  Problem ignored;
  if (max != nullptr) leave_out(attempt, *max);
  if (cells != nullptr) leave_out(attempt, *cells);
  if (!derive_parameters(attempt, ignored) ||
      attempt.parameters.integer(other->word) == asked.parameters.integer(other->word))
    return true;
  OptionList fitting("");
  fitting.add(attempt.parameters, *other);
  problem.set(Error::conflict, "options gap and %s contradict each other", other->name);
  problem.add_detail("With gap %llu it would be %s.", llu(asked.parameters.integer(gap->word)),
                     fitting.text());
  return problem.add_hint("Leave out one of them, or use %s.", fitting.text());
}

// Options that no formula derives.
bool is_wish(const OptionSpec& option) noexcept {
  constexpr const char* kWishes[] = {"gap", "size", "equal_timers", "lines", nullptr};
  return find_word(kWishes, option.name) >= 0;
}

// The request, as far as parameters show it: words and lists say what a filter should do, while
// most numbers could have been derived.
Definition request_of(const Parameters& parameters) noexcept {
  Definition request = definition_of(parameters);
  const FilterOps& ops = *find_ops(parameters.kind);
  for (const OptionSpec& option : ops.options)
    if (request.has(option.word) && !is_wish(option) &&
        (option.type == OptionType::integer || option.type == OptionType::real))
      leave_out(request, option);
  if (parameters.slices == default_slices(parameters.memory)) request.leave_out(Common::slices);
  return request;
}

}  // namespace

bool keeps_promise(const Parameters& p) noexcept {
  return !(p.fpr > 0) || find_ops(p.kind)->fpr_bound(p) <= p.fpr * (1 + kRounding);
}

double promised_fpr(const Definition& asked) noexcept {
  if (asked.parameters.fpr > 0) return asked.parameters.fpr;
  if (asked.has_probes()) return 0;
  for (const OptionSpec& option : options_of(kind_of_options(asked)))
    if (asked.has(option.word) && !is_wish(option) &&
        (option.type == OptionType::integer || option.type == OptionType::real))
      return 0;
  return asked.wanted_fpr();
}

bool check_request(const Definition& asked, const Definition& completed,
                   Problem& problem) noexcept {
  Definition named = asked;
  named.parameters.kind = completed.parameters.kind;
  if (!check_gap(named, problem)) return false;
  if (completed.breaks_fpr || keeps_promise(completed.parameters)) return true;
  return contradiction(named, completed, problem);
}

bool derive_again(const Parameters& parameters, Parameters& derived) noexcept {
  if (parameters.keys == 0 && !(parameters.fpr > 0)) return false;
  Definition request = request_of(parameters);
  Problem ignored;
  request.may_break_fpr = true;
  if (!derive_parameters(request, ignored)) return false;
  derived = request.parameters;
  return true;
}

bool check_promise(const Parameters& parameters, Problem& problem) noexcept {
  if (keeps_promise(parameters)) return true;
  Definition request = request_of(parameters), attempt = request;
  Problem found;
  attempt.may_break_fpr = true;
  if (!derive_parameters(attempt, found) ||
      std::memcmp(&attempt.parameters, &parameters, sizeof parameters) != 0 ||
      derive_parameters(request, found))
    return true;
  problem = found;
  return false;
}

// ---- overfull filters ---------------------------------------------------------------------------

// Upper bound for the rate of all probes of a key with this load together: the logarithm of a rate
// is concave in the load, so the geometric mean of their rates is at most the rate of their mean
// load.
static double rate_at(const Parameters& p, std::uint64_t load) noexcept {
  const double k1 = probes(p);
  return std::pow(find_ops(p.kind)->rate_at(p, to_real(load) / k1), k1);
}

static double rate_of(const Parameters& p, ConstSlice slice) noexcept {
  return find_ops(p.kind)->estimate(p, slice).fpr;
}

// Beyond the load of any slice; below it, the load of quotient filters is more than their bits.
constexpr std::uint64_t kMostLoad = std::uint64_t{1} << 60;

OverfullLimit overfull_limit(const Parameters& p, double fpr) noexcept {
  const FilterOps* ops = find_ops(p.kind);
  OverfullLimit limit;
  if (!(fpr > 0) || ops->load == nullptr) return limit;
  limit.rate = kOverfullRate * fpr;
  std::uint64_t low = 0, high = p.slice_bytes * 8 * probes(p);
  while (high < kMostLoad && rate_at(p, high) <= limit.rate) high *= 2;
  if (rate_at(p, high) <= limit.rate) return limit;
  while (high - low > low / 4096 + 1) {
    const std::uint64_t middle = low + (high - low) / 2;
    (rate_at(p, middle) <= limit.rate ? low : high) = middle;
  }
  limit.load = low;
  return limit;
}

std::uint64_t load_of(const Header* header, std::uint64_t hash) noexcept {
  const Parameters& p = header->parameters;
  const auto load = find_ops(p.kind)->load;
  std::uint64_t sum = 0;
  for (unsigned i = 0; i < probes(p); ++i)
    sum += load(p, slice_at(header, probe_of(p, hash, i).slice));
  return sum;
}

bool exceeds_rate(const Header* header, std::uint64_t hash, const OverfullLimit& limit) noexcept {
  const Parameters& p = header->parameters;
  double rate = 1;
  for (unsigned i = 0; i < probes(p); ++i)
    rate *= rate_of(p, slice_at(header, probe_of(p, hash, i).slice));
  return rate > limit.rate;
}

bool is_overfull(const Header* header, const OverfullLimit& limit) noexcept {
  if (limit.is_none()) return false;
  const Parameters& p = header->parameters;
  const std::uint32_t group = slices_of_group(p);
  for (std::uint32_t first = 0; first < p.slices; first += group) {
    double probe_rate = 0;
    for (std::uint32_t i = first; i < first + group; ++i)
      probe_rate += rate_of(p, slice_at(header, i)) / group;
    if (std::pow(probe_rate, probes(p)) > limit.rate) return true;
  }
  return false;
}

}  // namespace streamfilter
