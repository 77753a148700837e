// The changes of a transaction, above all those that are taken back, against a list that is read
// from its end.
#include <boost/test/unit_test.hpp>

#include <cstdlib>
#include <map>
#include <optional>
#include <random>
#include <vector>

#include "pg/transaction/own_changes.cpp"

namespace streamfilter::pg {
void* allocate_for_log(Size bytes) { return std::calloc(1, bytes); }
void free_for_log(void* memory, Size) { std::free(memory); }
}  // namespace streamfilter::pg

using namespace streamfilter;
using namespace streamfilter::pg;

namespace {

struct Log : ChangeLog {
  explicit Log(bool with_roles = false) : ChangeLog{} { init_log(this, with_roles); }
  ~Log() {
    for (int i = 0; i < kLevels; ++i) {
      free_for_log(levels[i], 0);
      free_for_log(roles[i], 0);
    }
    free_for_log(index_memory, 0);
  }
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  void add(std::uint64_t hash, ChangeType type) {
    Element element;
    element.hash = hash;
    element.importance = static_cast<double>(hash);
    reserve_change(this);
    append_change(this, type, element);
  }
};

// What the log must be: all of it, and the last change of each key.
struct Model {
  struct Entry {
    std::uint64_t hash;
    ChangeType type;
  };
  std::vector<Entry> entries;

  std::optional<std::uint32_t> last_of(std::uint64_t hash) const {
    for (auto i = static_cast<std::uint32_t>(entries.size()); i-- > 0;)
      if (entries[i].hash == hash && entries[i].type != ChangeType::withdrawn) return i;
    return std::nullopt;
  }

  // Of an addition with nothing but repeats behind it.
  std::optional<std::uint32_t> addition_of(std::uint64_t hash) const {
    for (auto i = static_cast<std::uint32_t>(entries.size()); i-- > 0;) {
      if (entries[i].hash != hash || entries[i].type == ChangeType::withdrawn) continue;
      if (entries[i].type == ChangeType::add) return i;
      if (entries[i].type != ChangeType::repeat) return std::nullopt;
    }
    return std::nullopt;
  }

  void withdraw(std::uint64_t hash, std::uint32_t position) {
    for (std::size_t i = position; i < entries.size(); ++i)
      if (entries[i].hash == hash) entries[i].type = ChangeType::withdrawn;
    while (entries.size() > position && entries.back().type == ChangeType::withdrawn)
      entries.pop_back();
  }
};

void check(const Log& log, const Model& model, std::uint64_t keys) {
  BOOST_TEST_REQUIRE(log.count == model.entries.size());
  ChangeReader reader(&log, 0);
  for (const Model::Entry& entry : model.entries) {
    const Change* change = reader.next();
    BOOST_TEST_REQUIRE(change->hash == entry.hash);
    BOOST_TEST_REQUIRE((change->what() == entry.type));
    BOOST_TEST_REQUIRE(reader.element().hash == entry.hash);
  }
  std::uint32_t indexed = 0;
  for (std::uint64_t hash = 0; hash < keys; ++hash) {
    const auto last = model.last_of(hash);
    indexed += last.has_value();
    BOOST_TEST_REQUIRE(find_key(&log, hash).last == last.value_or(kNoChange));
    // The chain of a key leads over all that still counts.
    std::uint32_t at = last.value_or(kNoChange), left = 0;
    for (; at != kNoChange; at = change_at(&log, at)->previous, ++left) {
      BOOST_TEST_REQUIRE(change_at(&log, at)->hash == hash);
      const std::uint32_t previous = change_at(&log, at)->previous;
      if (previous != kNoChange)
        BOOST_TEST_REQUIRE((change_at(&log, previous)->repeated == 1) ==
                           change_at(&log, at)->is(ChangeType::repeat));
    }
    for (const Model::Entry& entry : model.entries)
      left -= entry.hash == hash && entry.type != ChangeType::withdrawn;
    BOOST_TEST_REQUIRE(left == 0u);
  }
  BOOST_TEST_REQUIRE(log.indexed == indexed);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(own_changes)

BOOST_AUTO_TEST_CASE(the_last_change_goes) {
  Log log;
  log.add(1, ChangeType::add);
  log.add(2, ChangeType::add);
  withdraw_changes(&log, 1);
  BOOST_TEST(log.count == 1u);
  BOOST_TEST(find_key(&log, 2).last == kNoChange);
  BOOST_TEST(find_key(&log, 1).last == 0u);
}

BOOST_AUTO_TEST_CASE(one_in_the_midst_stays_withdrawn_until_the_end_is_taken_back) {
  Log log;
  log.add(1, ChangeType::add);
  log.add(2, ChangeType::add);
  log.add(1, ChangeType::repeat);
  log.add(3, ChangeType::add);
  withdraw_changes(&log, 0);
  BOOST_TEST(log.count == 4u);
  BOOST_TEST(find_key(&log, 1).last == kNoChange);
  BOOST_TEST(change_at(&log, 0)->is(ChangeType::withdrawn));
  BOOST_TEST(change_at(&log, 2)->is(ChangeType::withdrawn));
  // It may come again, and that one may go, too.
  log.add(1, ChangeType::add);
  BOOST_TEST(find_key(&log, 1).last == 4u);
  BOOST_TEST(change_at(&log, 4)->previous == kNoChange);
  withdraw_changes(&log, 4);
  BOOST_TEST(log.count == 4u);
  withdraw_changes(&log, 3);
  BOOST_TEST(log.count == 3u);
  withdraw_changes(&log, 1);
  BOOST_TEST(log.count == 1u);
  BOOST_TEST(log.indexed == 0u);
}

BOOST_AUTO_TEST_CASE(an_erased_key_stays_erased) {
  Log log;
  log.add(1, ChangeType::erase);
  log.add(1, ChangeType::add);
  log.add(2, ChangeType::add);
  withdraw_changes(&log, 1);
  BOOST_TEST(find_key(&log, 1).last == 0u);
  BOOST_TEST(change_at(&log, 0)->is(ChangeType::erase));
}

BOOST_AUTO_TEST_CASE(random_changes_are_those_of_a_list) {
  for (std::uint32_t seed = 1; seed <= 40; ++seed) {
    std::mt19937 random(seed);
    const std::uint64_t keys = 1 + random() % (seed % 4 == 0 ? 300 : 20);
    Log log(seed % 2 == 0);
    Model model;
    for (int step = 0; step < 400; ++step) {
      const std::uint64_t hash = random() % keys;
      const auto last = model.last_of(hash);
      const bool erased = last && model.entries[*last].type == ChangeType::erase;
      const auto append = [&](ChangeType type) {
        log.add(hash, type);
        model.entries.push_back({hash, type});
      };
      switch (random() % 8) {
        case 0:
        case 1: append(last && !erased ? ChangeType::repeat : ChangeType::add); break;
        case 2:
        case 3:
          if (!last || erased) append(ChangeType::add);
          break;
        case 4:
          if (last && !erased) append(ChangeType::erase);
          break;
        case 5:
          if (model.entries.empty()) break;
          undo_change(&log);
          model.entries.pop_back();
          break;
        default:
          if (const auto added = model.addition_of(hash)) {
            withdraw_changes(&log, *added);
            model.withdraw(hash, *added);
          }
      }
      if (step % 20 == 19) check(log, model, keys);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
