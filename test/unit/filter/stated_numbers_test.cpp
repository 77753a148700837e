// What a filter states of itself is true: random definitions on random streams, which get other
// sizes, merges, deletions, and go through text and binary in between, against exact counts.
#include <boost/test/unit_test.hpp>
#include <cstdio>
#include <cstdlib>
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
  double scale(double low, double high) {
    return std::exp(real(std::log(low), std::log(high)));
  }
  bool chance(double p) { return real(0, 1) < p; }
  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  template <typename T>
  const T& of(const std::vector<T>& all) { return all[below(all.size())]; }

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
    const FilterOps* ops = dice.of(std::vector<const FilterOps*>(all_ops().begin(), all_ops().end()));
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
      add(dice.chance(.5) ? "window='1 hour'" : "window='" + print("%.0f", dice.scale(100, 1e5)) + " rows'");
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
      : seed_(seed), dice_(seed), made_(random_definition(dice_, only)),
        filter_(made_.parameters), text_(made_.text(made_.memory)) {
    fpr_ = promised_fpr(definition_for(text_));
  }

  void go() {
    const Parameters& p = filter_.parameters();
    const FilterOps& ops = *find_ops(p.kind);
    const double keys = p.keys > 0 ? static_cast<double>(p.keys)
                        : std::min(static_cast<double>(p.memory) * 8 / (3 - std::log2(p.fpr)) * 1.3, 4e5);
    const double all = std::min(keys * dice_.real(.1, p.keys > 0 ? 2.2 : 3), 6e5);
    const unsigned steps = 3 + static_cast<unsigned>(dice_.below(5));
    story_ = "";
    for (unsigned i = 0; i < steps; ++i) {
      fill(all / steps);
      if (dice_.chance(.3)) check();
      switch (dice_.below(6)) {
        case 0: resize_it(); break;
        case 1: merge_it(all / steps); break;
        case 2: if (ops.erase != nullptr) erase_some(); break;
        case 3: travel(); break;
        default: break;
      }
      check();
    }
    check_window(filter_, "after");
    check_window(Filter(filter_.parameters()), "from empty");
  }

 private:
  // Keys that came at most so many others ago are missed by 1 % at most: those just within.
  void check_window(Filter filter, const char* when) {
    const double keys = window_keys(filter.parameters(), .01);
    if (!(keys >= 20 && keys < 2e5) || find_ops(filter.parameters().kind)->forgets == Forgets::after_window) return;
    const std::uint64_t first = next_, n = static_cast<std::uint64_t>(keys) + 1, tested = n / 5 + 1;
    for (std::uint64_t i = 0; i < n; ++i) filter.insert(element(next_++));
    double missed = 0;
    for (std::uint64_t i = 0; i < tested; ++i) missed += !filter.test(element(first + i));
    const double trials = static_cast<double>(tested);
    if (missed > most(trials, .01, 1e-9) + 2) say(when, keys, missed / trials, missed);
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
    const std::uint64_t memory = static_cast<std::uint64_t>(static_cast<double>(filter_.parameters().memory) *
                                 (dice_.chance(.3) ? dice_.of<double>({.5, 2, 4, 3}) : dice_.scale(.3, 6)));
    if (memory > 4e6) return;
    Parameters parameters{};
    Problem problem;
    if (!resized_parameters(filter_.parameters(), definition_for(made_.text(memory)), &parameters, problem) ||
        !can_take_over(filter_.header(), {0, filter_.parameters().slices}, parameters, problem))
      return;
    filter_ = copy_in(parameters, filter_);
    story_ += " size " + std::to_string(memory);
  }

  void merge_it(double keys) {
    Filter other(filter_.parameters());
    const std::uint64_t n = static_cast<std::uint64_t>(keys);
    // some of its keys are known
    next_ -= std::min(next_, n / 4);
    for (std::uint64_t i = 0; i < n; ++i) other.insert(element(next_ + i));
    if (filter_.merge(other)) story_ += " merge " + std::to_string(n);
    next_ += n;
  }

  void erase_some() {
    story_ += " erase";
    const double share = dice_.real(.05, .6);
    for (std::uint64_t i = 0; i < next_; ++i)
      if (dice_.chance(share)) erase(filter_.header(), element(i));
  }

  void travel() {
    const std::uint64_t size = binary_size(filter_.parameters());
    (void)size;
    std::string text(kMaxTextStart + BodyText(filter_.parameters().memory).length() + 1, '\0');
    std::size_t length = write_text_start(filter_.header(), true, text.data(), kMaxTextStart);
    BodyWriter writer(filter_.header(), text.data() + length);
    while (writer.step()) {}
    length += BodyText(filter_.parameters().memory).length();
    TextStart start;
    Problem problem;
    BOOST_REQUIRE_MESSAGE(read_text_start(text.data(), length, Reading::request, start, problem), problem.message);
    Filter other(start.definition.parameters);
    BodyReader reader(other.header(), start.body);
    while (reader.step()) {}
    BOOST_REQUIRE_MESSAGE(reader.finish(problem), problem.message << text_ << story_);
    filter_ = other;
    story_ += " text";
  }

  void say(const char* what, double stated, double found, double n) {
    std::printf("WRONG %s seed %llu %s:%s | %s: stated %.3g, found %.3g (%.0f) fpr %.3g\n",
                find_ops(filter_.parameters().kind)->name,
                static_cast<unsigned long long>(seed_), text_.c_str(), story_.c_str(), what, stated, found, n,
                fpr_);
  }

  void check() {
    const double kOddsOfRun = 1e-9;
    const Filter& f = filter_;
    const double now = f.estimate().fpr;
    const OverfullLimit limit = overfull_limit(f.parameters(), fpr_);
    const bool overfull = is_overfull(f.header(), limit);
    const double bound = fpr_bound(f.header(), limit);
    double n = 0, c = 0;
    const double most_probes = static_cast<double>(number_of("STREAMFILTER_PROBES", 100000)) * (dice_.chance(.2) ? 4 : 1);
    while (n < most_probes && (n < 4000 || c < 150)) {
      const double more = std::max(2000.0, n);
      for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(more); ++i)
        c += f.test(element((std::uint64_t{1} << 40) + probes_++));
      n += more;
    }
    const double low = std::min(now / 1.2, 1.0), high = std::min(now / .8, 1.0);
    if (c > (high >= 1 ? n : high > 0 ? most(n, high, kOddsOfRun) : 0)) say("fpr_now too low", now, c / n, c);
    if (low > 0 && c < least(n, low, kOddsOfRun)) say("fpr_now too high", now, c / n, c);
    if (bound < 1 && c > most(n, bound, kOddsOfRun) && !overfull) say("fpr_bound", bound, c / n, c);
    if (!overfull && now > bound * (1 + 1e-9)) say("now > bound", now, bound, 0);
    if (fpr_ > 0 && !overfull && bound > 1.1 * fpr_ * (1 + 1e-9)) say("bound > 1.1 fpr", bound, c / n, c);
    if (fpr_ > 0 && !overfull && c > most(n, std::min(1.0, 1.1 * fpr_), kOddsOfRun)) say("not overfull", now, c / n, c);
  }

  std::uint64_t seed_;
  Dice dice_;
  Made made_;
  Filter filter_;
  std::string text_, story_;
  double fpr_ = 0;
  std::uint64_t next_ = 0, probes_ = 0;
};

}  // namespace

BOOST_AUTO_TEST_CASE(random_streams) {
  const std::uint64_t first = number_of("STREAMFILTER_SEED", 1), cases = number_of("STREAMFILTER_CASES", 200);
  for (std::uint64_t i = 0; i < cases; ++i) {
    Run run(first * 1000000 + i, std::getenv("STREAMFILTER_KIND"));
    run.go();
  }
}

BOOST_AUTO_TEST_SUITE_END()
