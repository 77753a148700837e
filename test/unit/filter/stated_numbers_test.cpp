// What a filter states of itself is true: random definitions on random streams, which get other
// sizes, merges and deletions, and go through text and binary in between, against exact counts. At
// each step:
//
//   fpr_now       within 20 % of the measured rate
//   fpr_bound     not below fpr_now or the measured rate, nor above 1.1 fpr, unless overfull
//   overfull      if the measured rate is above 1.1 fpr
//   window_keys   1 % of the keys within are missed at most
//   distinct      within 5 %, where the kind forgets nothing
//
// A correct implementation fails one such comparison with a probability of 1e-9 (window_keys: so
// that keys of one bucket go together is not in it), which is 1e-5 for all fixed seeds together,
// and only if seeds or hashes change. STREAMFILTER_SEED tries another one, STREAMFILTER_CASES as
// many definitions, STREAMFILTER_KIND only one kind. The day's seed is only reported.
#include <boost/test/unit_test.hpp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <random>
#include <string>
#include <vector>

#include "core/filter/promise.hpp"
#include "core/filter/value_form.hpp"
#include "unit/support/rates.hpp"
#include "unit/support/resizing.hpp"
#include "unit/support/statistics.hpp"
#include "unit/support/streams.hpp"

using namespace streamfilter;
using namespace unit;

BOOST_AUTO_TEST_SUITE(stated_numbers, *boost::unit_test::label("long"))

namespace {

constexpr double kOdds = 1e-9;

std::uint64_t number_of(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr && *text != '\0' ? std::strtoull(text, nullptr, 10) : otherwise;
}

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : random_(seed) {}
  double real(double low, double high) {
    return low + (high - low) * static_cast<double>(random_() >> 11) / 0x1p53;
  }
  double scale(double low, double high) { return std::exp(real(std::log(low), std::log(high))); }
  bool chance(double p) { return real(0, 1) < p; }
  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  template <typename T>
  const T& of(const std::vector<T>& all) {
    return all[below(all.size())];
  }

 private:
  std::mt19937_64 random_;
};

std::string print(const char* format, double value) {
  char text[40];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

struct Made {
  std::string options;  // all but memory
  std::uint64_t memory;
  Parameters parameters;
  std::string text(std::uint64_t bytes) const {
    return options.substr(0, options.find('(') + 1) + "memory=" + std::to_string(bytes) + "B" +
           options.substr(options.find('(') + 1);
  }
};

// A definition that is accepted, with a promise.
Made random_definition(Dice& dice, const char* only) {
  for (;;) {
    const FilterOps* ops =
        dice.of(std::vector<const FilterOps*>(all_ops().begin(), all_ops().end()));
    if (only != nullptr && std::string(only) != ops->name) continue;
    if (ops->counts_only) continue;
    Made made;
    std::string more;
    const auto add = [&](const std::string& option) { more += ", " + option; };
    made.memory = static_cast<std::uint64_t>(dice.scale(1500, 1.5e5));
    const double fpr = dice.scale(1e-6, .1);
    add("fpr=" + print("%.3g", fpr));
    const std::string name = ops->name;
    if (dice.chance(.5)) add("slices=" + std::to_string(1u << dice.below(5)));
    if (ops->has_blocked_layout && dice.chance(.5)) add("layout=blocked");
    if (ops->has_probes && dice.chance(.3))
      add(dice.of<std::string>({"slicing=vertical", "slices='4,2', slicing=diced",
                                "slices='2,4', slicing=diced, dice=vh", "k1=2, k2=3"}));
    if ((name == "bloom" || name == "timer") && dice.chance(.25))
      add(dice.chance(.5) ? "grow=density" : "grow=cardinality");
    if (name == "clq") {
      if (dice.chance(.6))
        add(dice.of<std::string>({"policy=fifo", "policy=second", "lines=2", "window='1 hour'"}));
    }
    if (name == "vqf") {
      if (dice.chance(.3)) add("window='" + print("%.0f", dice.scale(100, 1e5)) + " rows'");
      if (dice.chance(.3)) add("growth=" + print("%.3g", dice.scale(1, 20)));
    }
    if (name == "rsbf" && dice.chance(.4)) add("variant=measured");
    if (name == "sbf" && dice.chance(.5)) add(dice.of<std::string>({"max=3", "max=7"}));
    if (name == "lru" && dice.chance(.5)) add("policy=clock");
    if (ops->forgets == Forgets::after_window)
      add(dice.chance(.5) ? "window='1 hour'"
                          : "window='" + print("%.0f", dice.scale(100, 1e5)) + " rows'");
    std::string head = name + "(";
    made.options = head + more + ")";
    Problem problem;
    Definition definition = definition_for(made.text(made.memory));
    if (!ops->keeps_fpr_forever || dice.chance(.4)) {
      const double bits = std::max(2.0, -std::log2(fpr) * 1.5 + 2);
      double keys = static_cast<double>(made.memory) * 8 / bits * dice.scale(.02, 1.5);
      if (const std::uint64_t most = keys_for_memory(definition); most > 0 && dice.chance(.6))
        keys = static_cast<double>(most) * dice.real(.5, 1);
      made.options = head + more + ", keys=" + print("%.0f", std::max(1.0, keys)) + ")";
    }
    definition = definition_for(made.text(made.memory));
    const Definition asked = definition;
    if (!complete(definition, problem) || !check_request(asked, definition, problem)) continue;
    made.parameters = definition.parameters;
    return made;
  }
}

class Run {
 public:
  Run(std::uint64_t seed, const char* only)
      : seed_(seed),
        dice_(seed),
        made_(random_definition(dice_, only)),
        filter_(made_.parameters),
        text_(made_.text(made_.memory)) {
    fpr_ = promised_fpr(definition_for(text_));
  }

  // What was wrong first; nothing: "".
  const std::string& go() {
    const Parameters& p = filter_.parameters();
    const FilterOps& ops = *find_ops(p.kind);
    const double keys =
        p.keys > 0
            ? static_cast<double>(p.keys)
            : std::min(static_cast<double>(p.memory) * 8 / (3 - std::log2(p.fpr)) * 1.3, 4e5);
    const double all = std::min(keys * dice_.real(.1, p.keys > 0 ? 2.2 : 3), 6e5);
    const unsigned steps = 3 + static_cast<unsigned>(dice_.below(5));
    for (unsigned i = 0; i < steps; ++i) {
      fill(all / steps);
      if (dice_.chance(.3)) check();
      switch (dice_.below(6)) {
        case 0: resize_it(); break;
        case 1: merge_it(all / steps); break;
        case 2:
          if (ops.erase != nullptr) erase_some();
          break;
        case 3: travel(); break;
        default: break;
      }
      check();
    }
    check_window();
    return problem_;
  }

 private:
  // Keys that came at most so many others ago are missed by 1 % at most: those just within, in an
  // empty filter or one that has long been full.
  void check_window() {
    const FilterOps& ops = *find_ops(made_.parameters.kind);
    const double keys = window_keys(made_.parameters, .01);
    if (!(keys >= 20 && keys < 5e4) || ops.forgets != Forgets::in_its_own_time) return;
    story_ = " new";
    filter_ = Filter(made_.parameters);
    if (dice_.chance(.6)) fill(keys * dice_.real(.2, 3));
    const std::uint64_t first = next_, n = static_cast<std::uint64_t>(keys) + 1, tested = n / 5 + 1;
    for (std::uint64_t i = 0; i < n; ++i) filter_.insert(element(next_++));
    double missed = 0;
    for (std::uint64_t i = 0; i < tested; ++i) missed += !filter_.test(element(first + i));
    const double trials = static_cast<double>(tested);
    if (missed > most(trials, .01, kOdds) + 2) wrong("window_keys", keys, missed / trials);
  }

  Element element(std::uint64_t number) const {
    return {hash_word(number, seed_), static_cast<double>(number % 8), 1000000};
  }

  void fill(double keys) {
    story_ += " +" + print("%.0f", keys);
    for (std::uint64_t n = static_cast<std::uint64_t>(keys); n > 0; --n) {
      filter_.insert(element(next_++));
      if (dice_.chance(.1)) filter_.insert(element(dice_.below(next_)));
    }
  }

  void resize_it() {
    const std::uint64_t memory = static_cast<std::uint64_t>(
        static_cast<double>(filter_.parameters().memory) *
        (dice_.chance(.3) ? dice_.of<double>({.5, 2, 4, 3}) : dice_.scale(.3, 6)));
    if (memory > 4e6) return;
    Parameters parameters{};
    Problem problem;
    if (!resized_parameters(filter_.parameters(), definition_for(made_.text(memory)), &parameters,
                            problem) ||
        !can_take_over(filter_.header(), {0, filter_.parameters().slices}, parameters, problem))
      return;
    filter_ = copy_in(parameters, filter_);
    story_ += " size " + std::to_string(memory);
  }

  void merge_it(double keys) {
    Filter other(filter_.parameters());
    const std::uint64_t n = static_cast<std::uint64_t>(keys);
    const std::uint64_t known = std::min(next_, n / 4);
    for (std::uint64_t i = 0; i < n; ++i) other.insert(element(next_ - known + i));
    if (!filter_.merge(other)) return;
    story_ += " merge " + std::to_string(n);
    next_ += n - known;
  }

  void erase_some() {
    story_ += " erase";
    erased_ = true;
    const double share = dice_.real(.05, .6);
    for (std::uint64_t i = 0; i < next_; ++i)
      if (dice_.chance(share)) erase(filter_.header(), element(i));
  }

  void travel() {
    if (dice_.chance(.5)) return travel_in_binary();
    std::string text(kMaxTextStart + BodyText(filter_.parameters()).length() + 1, '\0');
    std::size_t length = write_text_start(filter_.header(), true, text.data(), kMaxTextStart);
    BodyWriter writer(filter_.header(), text.data() + length);
    while (writer.step()) {
    }
    length += BodyText(filter_.parameters()).length();
    TextStart start;
    Problem problem;
    BOOST_REQUIRE_MESSAGE(read_text_start(text.data(), length, Reading::request, start, problem),
                          problem.message);
    Filter other(start.definition.parameters);
    BodyReader reader(other.header(), start.body);
    while (reader.step()) {
    }
    BOOST_REQUIRE_MESSAGE(reader.finish(problem), problem.message << text_ << story_);
    filter_ = other;
    story_ += " text";
  }

  void travel_in_binary() {
    std::vector<unsigned char> bytes(binary_size(filter_.parameters()));
    write_binary(filter_.header(), bytes.data());
    Filter other(filter_.parameters());
    Problem problem;
    BOOST_TEST_REQUIRE(read_binary(bytes.data(), bytes.size(), other.header(), problem),
                       problem.message);
    filter_ = other;
    story_ += " binary";
  }

  void wrong(const char* what, double stated, double found) {
    if (!problem_.empty()) return;
    problem_ = "seed " + std::to_string(seed_) + ", " + text_ + ":" + story_ + ": " + what + " " +
               print("%.3g", stated) + ", but ";
    problem_ += print("%.3g", found);
  }

  // False positives among keys that never came, until there are enough to tell by.
  double measure(double& tried) {
    const double most_tried = dice_.chance(.2) ? 100000 : 25000;
    double found = 0;
    for (tried = 0; tried < most_tried && found < 150; ++tried)
      found += filter_.test(element((std::uint64_t{1} << 40) + probes_++));
    return found;
  }

  static bool is_more(double found, double tried, double rate) {
    return rate < 1 && found > (rate > 0 ? most(tried, rate, kOdds) : 0);
  }
  static bool is_less(double found, double tried, double rate) {
    return rate > 0 && found < least(tried, std::min(rate, 1.0), kOdds);
  }

  void check() {
    const Header* header = filter_.header();
    const double now = filter_.estimate().fpr;
    const OverfullLimit limit = overfull_limit(filter_.parameters(), fpr_);
    const bool overfull = is_overfull(header, limit);
    const double bound = fpr_bound(header, limit);
    double tried;
    const double found = measure(tried), rate = found / tried;
    if (is_more(found, tried, now / .8)) wrong("fpr_now is too low:", now, rate);
    if (is_less(found, tried, now / 1.2)) wrong("fpr_now is too high:", now, rate);
    check_distinct(now);
    if (overfull) return;
    if (now > bound * (1 + 1e-9)) wrong("fpr_bound is below fpr_now:", bound, now);
    if (is_more(found, tried, bound)) wrong("fpr_bound is too low:", bound, rate);
    if (bound > 1.1 * fpr_ * (1 + 1e-9)) wrong("not overfull, with fpr_bound", bound, 1.1 * fpr_);
    if (is_more(found, tried, 1.1 * fpr_)) wrong("not overfull, with fpr", fpr_, rate);
  }

  void check_distinct(double now) {
    const FilterOps& ops = *find_ops(made_.parameters.kind);
    bool full;
    const double stated = distinct_keys(filter_.header(), full), exact = static_cast<double>(next_);
    if (ops.forgets != Forgets::never || now > .3 || full || erased_) return;
    if (std::fabs(stated - exact) > .05 * exact + 6 * std::sqrt(exact) + 6)
      wrong("distinct_estimate", stated, exact);
  }

  std::uint64_t seed_;
  Dice dice_;
  Made made_;
  Filter filter_;
  std::string text_, story_, problem_;
  double fpr_ = 0;
  bool erased_ = false;
  std::uint64_t next_ = 0, probes_ = 0;
};

}  // namespace

BOOST_AUTO_TEST_CASE(fixed_seeds) {
  const std::uint64_t first = number_of("STREAMFILTER_SEED", 1),
                      cases = number_of("STREAMFILTER_CASES", 250);
  for (std::uint64_t i = 0; i < cases; ++i) {
    const std::string problem = Run(first * 1000000 + i, std::getenv("STREAMFILTER_KIND")).go();
    BOOST_TEST(problem.empty(), problem);
  }
}

BOOST_AUTO_TEST_CASE(seed_of_the_day) {
  const std::uint64_t day = static_cast<std::uint64_t>(std::time(nullptr)) / 86400;
  unsigned wrong = 0;
  for (std::uint64_t i = 0; i < 80; ++i) {
    const std::string problem = Run(day * 1000000 + i, nullptr).go();
    if (!problem.empty() && ++wrong <= 5)
      std::printf("stated_numbers, only reported: %s\n", problem.c_str());
  }
}

BOOST_AUTO_TEST_SUITE_END()
