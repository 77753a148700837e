#include "model.hpp"

#include <algorithm>

namespace checker {

Model::Model() {
  for (const FilterSpec& filter : kFilters) keys_.emplace_back(static_cast<size_t>(filter.keys));
}

// ---- what is possible ---------------------------------------------------------------------------

// For the transaction itself, its own changes come first.
const Model::Change* Model::own(const Key& key, const TransactionPointer& transaction) const {
  for (auto change = key.changes.rbegin(); change != key.changes.rend(); ++change)
    if (change->transaction == transaction) return &*change;
  return nullptr;
}

bool Model::is_possible(const Key& key, bool present, Time since) const {
  return (key.possible & (present ? kPresent : kAbsent)) || key.was_possible[present] >= since ||
         (present && key.attempts > 0);
}

bool Model::is_in_flight(const Key& key, const TransactionPointer& but, Time since) const {
  return key.attempts > 0 || key.claims > 0 || key.addition_ended >= since ||
         std::any_of(key.changes.begin(), key.changes.end(), [&](const Change& change) {
           return change.adds && change.transaction != but;
         });
}

bool Model::removal_possible(const Key& key, Time since) const {
  return key.removal_ended >= since ||
         std::any_of(key.changes.begin(), key.changes.end(), [](const Change& change) {
           return !change.adds && change.transaction->outcome >= Outcome::ending &&
                  change.transaction->outcome != Outcome::prepared;
         });
}

// A transaction that has certainly added the key and has not ended.
const Transaction* Model::holder(const Key& key, const TransactionPointer& but) const {
  for (const Change& change : key.changes) {
    const Transaction* other = change.transaction.get();
    const bool runs = other->outcome == Outcome::open || other->outcome == Outcome::prepared;
    if (change.adds && change.transaction != but && runs && !other->exposed) return other;
  }
  return nullptr;
}

// Committed changes can be behind undecided ones.
int Model::committed_rows(const Key& key) {
  int rows = key.rows;
  for (const Change& change : key.changes)
    if (change.transaction->outcome == Outcome::committed) rows = change.adds ? rows + 1 : 0;
  return rows;
}

void Model::refresh(Key& key) {
  uint8_t possible = key.rows > 0 ? kPresent : kAbsent;
  for (const Change& change : key.changes) {
    const uint8_t state = change.adds ? kPresent : kAbsent;
    if (change.transaction->outcome == Outcome::committed) possible = state;
    if (change.transaction->outcome == Outcome::ending) possible |= state;
  }
  for (const bool present : {false, true})
    if (key.possible & ~possible & (present ? kPresent : kAbsent)) key.was_possible[present] = now_;
  key.possible = possible;
}

// Removes changes that are decided.
void Model::settle(Key& key) {
  const auto ended = [](const Change& change) {
    return change.transaction->outcome == Outcome::committed ||
           change.transaction->outcome == Outcome::aborted;
  };
  refresh(key);
  for (const Change& change : key.changes)
    if (ended(change)) (change.adds ? key.addition_ended : key.removal_ended) = now_;
  std::erase_if(key.changes, [](const Change& change) {
    return change.transaction->outcome == Outcome::aborted;
  });
  while (!key.changes.empty() && ended(key.changes.front())) {
    key.rows = key.changes.front().adds ? key.rows + 1 : 0;
    key.changes.erase(key.changes.begin());
  }
}

// ---- what transactions do -----------------------------------------------------------------------

void Model::attempt(const TransactionPointer& transaction, int filter, const std::set<int>& keys) {
  for (const int key : keys) {
    ++key_of(filter, key).attempts;
    transaction->attempts.push_back({filter, key});
  }
}

void Model::claim_begins(int filter, const std::set<int>& keys) {
  for (const int key : keys) ++key_of(filter, key).claims;
}

void Model::claim_answered(int filter, const std::set<int>& keys) {
  for (const int key : keys) --key_of(filter, key).claims;
}

void Model::claim_ended(int filter, const std::set<int>& keys) {
  for (const int key : keys) key_of(filter, key).addition_ended = now_;
}

void Model::claimed(const TransactionPointer& transaction, int filter, const std::set<int>& keys,
                    const std::vector<int>& inserted, Time sent, bool lasting) {
  if (transaction->automatic) {
    for (const int key : keys) --key_of(filter, key).attempts;
    std::erase_if(transaction->attempts, [&](const Transaction::Touched& touched) {
      return touched.filter == filter && keys.contains(touched.key);
    });
  }
  std::set<int> unique;
  for (const int key : inserted) {
    if (!keys.contains(key)) differ(std::to_string(key) + " came back and was not tried");
    if (!unique.insert(key).second)
      differ("accepted twice by one statement: " + describe(filter, key));
  }
  for (const int key : keys)
    claim_one(transaction, filter, key, unique.contains(key), sent, lasting);
}

void Model::claim_one(const TransactionPointer& transaction, int filter, int number, bool was_new,
                      Time sent, bool lasting) {
  Key& key = key_of(filter, number);
  const Conflict conflict = kFilters[static_cast<size_t>(filter)].conflict;
  if (const Change* change = own(key, transaction)) {
    if (was_new == change->adds)
      differ(std::string(was_new ? "accepted though the transaction has added it: "
                                 : "refused though the transaction has removed it: ") +
             describe(filter, number));
  } else if (was_new) {
    if (!is_possible(key, false, sent))
      differ("accepted though known: " + describe(filter, number));
    const bool alone = conflict == Conflict::wait && lasting && !transaction->automatic;
    const Transaction* other = alone ? holder(key, transaction) : nullptr;
    if (other != nullptr)
      differ("accepted though transaction " + std::to_string(other->number) +
             " has added it and not ended: " + describe(filter, number));
  } else if (!is_possible(key, true, sent) &&
             !(conflict == Conflict::discard && is_in_flight(key, transaction, sent))) {
    differ("refused though new, a lost row: " + describe(filter, number));
  }
  if (was_new) add(transaction, filter, number);
}

// Other transactions may have seen and deleted the row of an automatic one before it was answered.
void Model::add(const TransactionPointer& transaction, int filter, int number) {
  if (victims_.erase({filter, number, transaction->number}) > 0) return;
  Key& key = key_of(filter, number);
  const auto remover = std::find_if(
      key.changes.begin(), key.changes.end(),
      [&](const Change& change) { return !change.adds && change.victim == transaction->number; });
  const bool before = transaction->automatic && remover != key.changes.end();
  key.changes.insert(before ? remover : key.changes.end(), Change{transaction, true, 0});
  transaction->touched.push_back({filter, number});
  refresh(key);
}

void Model::removed(const TransactionPointer& transaction, int filter, int number,
                    uint64_t victim) {
  key_of(filter, number).changes.push_back({transaction, false, victim});
  transaction->touched.push_back({filter, number});
}

void Model::truncated(const TransactionPointer& transaction, int filter) {
  for (int number = 0; number < kFilters[static_cast<size_t>(filter)].keys; ++number) {
    const Key& key = key_of(filter, number);
    if (key.rows > 0 || !key.changes.empty()) removed(transaction, filter, number, 0);
  }
}

void Model::drop_change(Key& key, const TransactionPointer& transaction) {
  const auto last =
      std::find_if(key.changes.rbegin(), key.changes.rend(),
                   [&](const Change& change) { return change.transaction == transaction; });
  if (last == key.changes.rend()) return;
  if (last->adds) key.addition_ended = now_;
  key.changes.erase(std::next(last).base());
  settle(key);  // the change may have been in front of a decided one
}

void Model::roll_back_to(const TransactionPointer& transaction, size_t position) {
  if (ignores_rollback_to) return;
  auto& touched = transaction->touched;
  for (; touched.size() > position; touched.pop_back())
    drop_change(key_of(touched.back().filter, touched.back().key), transaction);
}

void Model::ending(const TransactionPointer& transaction) {
  transaction->outcome = Outcome::ending;
  for (const auto& touched : transaction->touched) refresh(key_of(touched.filter, touched.key));
}

void Model::prepared(const TransactionPointer& transaction) {
  transaction->outcome = Outcome::prepared;
  for (const auto& touched : transaction->touched) refresh(key_of(touched.filter, touched.key));
}

void Model::ended(const TransactionPointer& transaction, bool committed) {
  transaction->outcome = committed ? Outcome::committed : Outcome::aborted;
  for (const auto& attempt : transaction->attempts) {
    Key& key = key_of(attempt.filter, attempt.key);
    --key.attempts;
    key.was_possible[true] = key.addition_ended = now_;
  }
  transaction->attempts.clear();
  for (const auto& touched : transaction->touched) {
    Key& key = key_of(touched.filter, touched.key);
    if (committed && key.attempts > 0)
      for (const Change& change : key.changes)
        if (change.transaction == transaction && change.victim != 0)
          victims_.insert({touched.filter, touched.key, change.victim});
    settle(key);
    const bool decided = std::none_of(
        key.changes.begin(), key.changes.end(),
        [](const Change& change) { return change.transaction->outcome == Outcome::ending; });
    if (decided && committed_rows(key) > 1 &&
        kFilters[static_cast<size_t>(touched.filter)].conflict == Conflict::wait)
      differ("added twice: " + describe(touched.filter, touched.key));
  }
  transaction->touched.clear();
}

void Model::forget_unlogged() {
  for (size_t filter = 0; filter < kFilters.size(); ++filter) {
    if (kFilters[filter].logged) continue;
    for (Key& key : keys_[filter]) {
      key.rows = 0;
      for (const Change& change : key.changes)
        std::erase_if(change.transaction->touched, [&](const Transaction::Touched& touched) {
          return touched.filter == static_cast<int>(filter);
        });
      key.changes.clear();
      refresh(key);
    }
  }
}

std::set<int> Model::deleted_rows_of(int filter, uint64_t number) const {
  std::set<int> keys;
  for (const Victim& victim : victims_)
    if (victim.filter == filter && victim.number == number) keys.insert(victim.key);
  return keys;
}

// ---- what is seen -------------------------------------------------------------------------------

void Model::tested(const TransactionPointer& transaction, int filter, int number, bool known,
                   Time sent) {
  const Key& key = key_of(filter, number);
  if (const Change* change = own(key, transaction)) {
    if (known != change->adds)
      differ(std::string(known ? "known though the transaction has removed it: "
                               : "unknown though the transaction has added it: ") +
             describe(filter, number));
  } else if (!is_possible(key, known, sent)) {
    differ(std::string(known ? "known without a row: " : "unknown with a row: ") +
           describe(filter, number));
  }
}

void Model::looked(const TransactionPointer& transaction, int filter, int number, int rows,
                   bool known, Time sent) {
  const Key& key = key_of(filter, number);
  if (rows > 1 && kFilters[static_cast<size_t>(filter)].conflict == Conflict::wait)
    differ(std::to_string(rows) + " rows: " + describe(filter, number));
  if (const Change* change = own(key, transaction)) {
    if ((rows > 0) != change->adds)
      differ("own rows are not as changed: " + describe(filter, number));
    return;
  }
  if (!is_possible(key, rows > 0, sent))
    differ(std::string(rows > 0 ? "a row too many: " : "a row is missing: ") +
           describe(filter, number));
  if (rows > 0 && !known && !removal_possible(key, sent))
    differ("its row is visible and its key unknown: " + describe(filter, number));
}

void Model::check_all(int filter, const std::map<int, int>& rows, const std::set<int>& known,
                      const char* when) {
  const FilterSpec& spec = kFilters[static_cast<size_t>(filter)];
  for (int number = 0; number < spec.keys; ++number) {
    const int expected = committed_rows(key_of(filter, number));
    const auto found = rows.find(number);
    const int there = found == rows.end() ? 0 : found->second;
    if (there != expected)
      differ(std::to_string(there) + " rows instead of " + std::to_string(expected) + ", " + when +
             ": " + describe(filter, number));
    if (known.contains(number) != (expected > 0))
      differ(std::string(expected > 0 ? "unknown with a row, " : "known without a row, ") + when +
             ": " + describe(filter, number));
  }
}

void Model::differ(const std::string& what) {
  if (difference_.empty()) difference_ = what;
}

std::string Model::describe(int filter, int number) {
  const Key& key = key_of(filter, number);
  static const char* const kOutcomes[] = {"open", "ending", "prepared", "committed", "aborted"};
  std::string text = std::string("filter ") + kFilters[static_cast<size_t>(filter)].name + " key " +
                     std::to_string(number) + " (rows " + std::to_string(key.rows);
  for (const Change& change : key.changes)
    text += std::string(change.adds ? "; added by " : "; removed by ") +
            std::to_string(change.transaction->number) + ", " +
            kOutcomes[static_cast<int>(change.transaction->outcome)];
  return text + ")";
}

}  // namespace checker
