// The content that tables and filters must have: an exact model of rows and keys, made from the
// requests of sessions and the answers to them.
//
// Sessions work at the same time, so several states of a key can be right at a given moment: during
// a commit, the state before it and the one after it. For every key, the model knows since when
// each state is possible. An answer is a difference if no state explains it that was possible
// between request and answer. Where locks order transactions, the model is exact: it keeps a key's
// changes in that order, and the outcome of a transaction decides whether they count.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "filters.hpp"

namespace checker {

using Time = uint64_t;  // counts requests and answers

enum class Outcome { open, ending, prepared, committed, aborted };

struct Transaction {
  uint64_t number;  // column tx of the rows it inserts
  bool automatic;   // a single statement: others may see its rows before it is answered
  Outcome outcome = Outcome::open;
  bool exposed = false;  // it can end at any moment: a statement runs, or its session was signalled
  std::string xid;       // empty: none yet
  struct Touched {
    int filter, key;
  };
  std::vector<Touched> touched;   // in order; a savepoint is a position in it
  std::vector<Touched> attempts;  // of an automatic transaction: keys still to be answered
};
using TransactionPointer = std::shared_ptr<Transaction>;

class Model {
 public:
  Model();

  // ---- actions of a transaction, once answered; `sent`: the time of the request ----

  // At the request of an automatic transaction: its keys can be known from now on.
  void attempt(const TransactionPointer& transaction, int filter, const std::set<int>& keys);
  // Around each statement that may add keys: it was sent; its answer has come; the model has the
  // answer.
  void claim_begins(int filter, const std::set<int>& keys);
  void claim_answered(int filter, const std::set<int>& keys);
  void claim_ended(int filter, const std::set<int>& keys);
  // `inserted`: those of `keys` that were new. Not `lasting`: a block may have been undone since.
  void claimed(const TransactionPointer& transaction, int filter, const std::set<int>& keys,
               const std::vector<int>& inserted, Time sent, bool lasting = true);
  // Deletes the key, and the rows that the transaction `victim` inserted.
  void removed(const TransactionPointer& transaction, int filter, int key, uint64_t victim);
  void truncated(const TransactionPointer& transaction, int filter);
  void roll_back_to(const TransactionPointer& transaction, size_t position);

  // The end was requested: from now on it may have happened.
  void ending(const TransactionPointer& transaction);
  void prepared(const TransactionPointer& transaction);
  void ended(const TransactionPointer& transaction, bool committed);

  // ---- observations; `transaction` may be null ----

  void tested(const TransactionPointer& transaction, int filter, int key, bool known, Time sent);
  // In one statement of READ COMMITTED: the number of visible rows of the key, and if it is known.
  void looked(const TransactionPointer& transaction, int filter, int key, int rows, bool known,
              Time sent);
  // While nothing runs: all rows of a filter's tables, and all keys that the filter knows.
  void check_all(int filter, const std::map<int, int>& rows, const std::set<int>& known,
                 const char* when);

  // After a crash unlogged tables and filters are empty. No transaction runs, some may be prepared.
  void forget_unlogged();

  // Rows of transaction `number` that other transactions have deleted since.
  std::set<int> deleted_rows_of(int filter, uint64_t number) const;

  Time now() const { return now_; }
  Time tick() { return ++now_; }
  bool has_difference() const { return !difference_.empty(); }
  const std::string& difference() const { return difference_; }
  void differ(const std::string& what);

  // A planted defect: the model keeps changes that ROLLBACK TO undoes.
  bool ignores_rollback_to = false;

 private:
  struct Change {
    TransactionPointer transaction;
    bool adds;
    uint64_t victim;  // of a removal: the transaction whose row it was
  };
  struct Key {
    int rows = 0;
    uint8_t possible = kAbsent;
    int attempts = 0;
    int claims = 0;                 // statements that may be adding the key
    Time was_possible[2] = {0, 0};  // the last time a state was possible that is not now
    Time removal_ended = 0;
    Time addition_ended = 0;
    std::vector<Change> changes;
  };
  static constexpr uint8_t kAbsent = 1, kPresent = 2;

  Key& key_of(int filter, int key) {
    return keys_[static_cast<size_t>(filter)][static_cast<size_t>(key)];
  }
  const Change* own(const Key& key, const TransactionPointer& transaction) const;
  bool is_possible(const Key& key, bool present, Time since) const;
  bool is_in_flight(const Key& key, const TransactionPointer& but, Time since) const;
  bool removal_possible(const Key& key, Time since) const;
  const Transaction* holder(const Key& key, const TransactionPointer& but) const;
  static int committed_rows(const Key& key);
  void refresh(Key& key);
  void settle(Key& key);
  void add(const TransactionPointer& transaction, int filter, int key);
  void claim_one(const TransactionPointer& transaction, int filter, int key, bool was_new,
                 Time sent, bool lasting);
  void drop_change(Key& key, const TransactionPointer& transaction);
  std::string describe(int filter, int key);

  std::vector<std::vector<Key>> keys_;
  // (filter, key, transaction): rows of automatic transactions that were deleted before these were
  // answered.
  struct Victim {
    int filter, key;
    uint64_t number;
    auto operator<=>(const Victim&) const = default;
  };
  std::set<Victim> victims_;
  Time now_ = 1;
  std::string difference_;
};

}  // namespace checker
