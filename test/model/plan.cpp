#include "plan.hpp"

#include <algorithm>
#include <csignal>
#include <iterator>

namespace checker {
namespace {

// Half of the keys are near a place that moves slowly, so that sessions meet.
int draw_key(Random& random, const FilterSpec& filter, uint64_t progress) {
  if (random.chance(0.5)) return random.below(filter.keys);
  const uint64_t place = progress / 40 + static_cast<uint64_t>(random.below(24));
  return static_cast<int>(place * 7 % static_cast<uint64_t>(filter.keys));
}

std::vector<int> draw_keys(Random& random, const FilterSpec& filter, uint64_t progress, int most) {
  std::vector<int> keys(static_cast<size_t>(random.between(1, most)));
  for (int& key : keys) key = draw_key(random, filter, progress);
  return keys;
}

// More keys than the table of keys in flight has room for.
std::vector<int> draw_bulk(Random& random, const FilterSpec& filter) {
  const int first = random.below(filter.keys), count = random.between(200, 1500);
  std::vector<int> keys;
  for (int i = 0; i < count && i < filter.keys; ++i) keys.push_back((first + i) % filter.keys);
  return keys;
}

// Uses a trigger more often than other ways.
Action draw_way(Random& random) {
  constexpr Action kWays[] = {Action::insert, Action::insert, Action::seen,
                              Action::claim,  Action::copy,   Action::block};
  return kWays[random.below(6)];
}

struct Drawer {
  Random& random;
  uint64_t progress;
  Plan plan = {};
  int depth = 0;  // of savepoints

  void put(Action action, int filter = 0, int variant = 0) {
    plan.steps.push_back({action, filter, {}, variant});
  }

  void claim(int filter, Action way) {
    const FilterSpec& spec = kFilters[static_cast<size_t>(filter)];
    const bool bulk = way != Action::block && random.chance(0.002);
    plan.steps.push_back({way, filter,
                          bulk ? draw_bulk(random, spec) : draw_keys(random, spec, progress, 4),
                          random.below(4)});
  }

  void use(int filter) {
    const FilterSpec& spec = kFilters[static_cast<size_t>(filter)];
    const int dice = random.below(100);
    if (dice < 62) {
      claim(filter, draw_way(random));
    } else if (dice < 70) {
      plan.steps.push_back({Action::test, filter, draw_keys(random, spec, progress, 8)});
    } else if (dice < 78) {
      plan.steps.push_back({Action::look, filter, draw_keys(random, spec, progress, 8)});
    } else if (dice < 96) {
      if (spec.deletes)
        plan.steps.push_back({Action::remove, filter, draw_keys(random, spec, progress, 4)});
      else
        claim(filter, Action::insert);
    } else {
      put(Action::sleep, 0, random.between(100, 5000));
    }
  }

  void savepoints() {
    if (depth < 4 && random.chance(0.3)) {
      put(Action::savepoint);
      ++depth;
    } else if (depth > 0 && random.chance(0.5)) {
      const bool back = random.chance(0.5);
      put(back ? Action::roll_back_to : Action::release);
      if (!back) --depth;
    }
  }

  void rare(int filter) {
    if (random.chance(0.1)) {
      std::vector<int> keys(static_cast<size_t>(random.between(1, 6)));
      for (int& key : keys) key = random.below(64);
      plan.steps.push_back({Action::blind, 0, keys, random.below(40)});
    }
    if (random.chance(0.08)) rate();
    if (random.chance(0.003)) put(Action::truncate, filter);
    if (random.chance(0.004)) put(Action::alter, filter, random.below(6));
    if (random.chance(0.002)) change(filter);
    if (random.chance(0.002)) put(Action::save, filter, random.below(4));
    if (random.chance(0.01)) put(Action::violate);
  }

  // Variant 0 is TRUNCATE, then each of the sizes, then removals; else keys come.
  void rate() {
    const int which = random.below(static_cast<int>(kRateFilters.size()));
    const int first = random.below(20'000), count = random.between(1, 400);
    plan.steps.push_back({Action::rate, which, {first, first + count}, random.below(30)});
  }

  // ALTERs the filter to another definition and back, variants 0 to 2. Keys removed in between must
  // stay removed. A filter that starts empty in another size knows its keys again only if that is
  // rolled back.
  void change(int filter) {
    const int variant = random.below(3);
    const bool is_undone =
        variant != 0 && !kFilters[static_cast<size_t>(filter)].is_kept_in_other_sizes();
    if (is_undone) {
      put(Action::savepoint);
      ++depth;
    }
    put(Action::change, filter, variant);
    if (is_undone) {
      put(Action::roll_back_to);
    } else if (variant != 0) {
      for (int left = random.between(0, 3); left > 0; --left) use(filter);
      put(Action::change, filter, 3);
    }
  }

  // Not for a transaction to be prepared: it would lock the filter, and so delay every check.
  bool locks_a_filter() const {
    return std::any_of(plan.steps.begin(), plan.steps.end(), [](const Step& step) {
      return step.action == Action::truncate || step.action == Action::change ||
             (step.action == Action::blind && step.variant == 0) ||
             (step.action == Action::rate &&
              step.variant <= static_cast<int>(std::size(kRateSizes)));
    });
  }

  void end() {
    const int dice = random.below(100);
    if (dice < 68 || (dice >= 84 && locks_a_filter())) {
      put(Action::commit);
    } else if (dice < 84) {
      put(Action::rollback);
    } else if (dice < 99 || random.chance(0.7)) {
      put(Action::prepare);
      if (random.chance(0.7)) put(Action::finish, 0, random.below(3));
    } else {
      put(Action::disconnect);
    }
  }

  void draw_block() {
    const int isolation = random.below(20);
    plan.strict = isolation < 2;
    put(Action::begin, 0, isolation < 2 ? isolation + 1 : 0);
    int filter = random.below(static_cast<int>(kFilters.size()));
    for (int left = random.between(1, 4); left > 0; --left) {
      if (random.chance(0.3)) filter = random.below(static_cast<int>(kFilters.size()));
      savepoints();
      use(filter);
      rare(filter);
    }
    savepoints();
    end();
  }

  void draw_single() {
    const int filter = random.below(static_cast<int>(kFilters.size()));
    const int dice = random.below(1000);
    if (dice < 4)
      put(Action::vacuum, filter, random.below(8));
    else if (dice < 12 && kFilters[static_cast<size_t>(filter)].is_resized_meanwhile())
      put(Action::resize, filter, random.below(2));
    else if (dice < 60)
      claim(filter, Action::procedure);
    else if (dice < 150)
      put(Action::finish, 0, random.below(3));
    else if (const Action way = draw_way(random); way == Action::copy || way == Action::block)
      claim(filter, Action::insert);
    else
      claim(filter, way);
  }
};

}  // namespace

Plan draw_plan(Random& random, uint64_t progress) {
  Drawer drawer{random, progress};
  if (random.chance(0.45))
    drawer.draw_single();
  else
    drawer.draw_block();
  Plan plan = std::move(drawer.plan);
  plan.recovers = random.chance(0.7);
  if (random.chance(0.02)) {
    plan.disturb_signal = random.chance(0.85) ? SIGINT : SIGTERM;
    plan.disturb_step = random.below(static_cast<int>(plan.steps.size()));
    plan.disturb_after = random.between(1, 2000);
  }
  return plan;
}

}  // namespace checker
