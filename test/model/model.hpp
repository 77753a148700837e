// What the tables and filters must be: an exact model of rows and keys, kept from what sessions
// send and are told.
//
// Sessions work at once, so at a given moment several states of a key may be right: while a commit
// is on its way, the one before and the one after it. The model knows for every key since when
// which states are possible; an answer is a difference if none of those possible between its
// request and its arrival explains it. Where one transaction must come after another it is exact: a
// key's changes are kept in the order in which locks admit them, and the outcome of a transaction
// decides whether they count.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "filters.hpp"

namespace checker {

using Time = uint64_t;  // counts what is sent and received

enum class Outcome { open, ending, prepared, committed, aborted };

struct Transaction {
  uint64_t number;  // column tx of the rows it inserts
  bool automatic;   // it ends with its only statement: its rows may be seen before its answer
  Outcome outcome = Outcome::open;
  bool exposed =
      false;  // it may end by itself at any moment: a statement runs, or its session was signalled
  std::string xid;  // empty: none yet
  struct Touched {
    int filter, key;
  };
  std::vector<Touched> touched;   // in order; its length is the position of a savepoint
  std::vector<Touched> attempts;  // of an automatic one: keys whose answer is awaited
};
using TransactionPointer = std::shared_ptr<Transaction>;

class Model {
 public:
  Model();

  // ---- what a transaction does, when its answer is there. `sent`: when the request was ----

  // At the request of an automatic one: its keys may be there from now on.
  void attempt(const TransactionPointer& transaction, int filter, const std::set<int>& keys);
  // Around each statement that may add keys: sent; its answer has come; its answer has been taken
  // in.
  void claim_begins(int filter, const std::set<int>& keys);
  void claim_answered(int filter, const std::set<int>& keys);
  void claim_ended(int filter, const std::set<int>& keys);
  // `inserted` are those of `keys` that were new. Not `lasting`: a block that is left may have
  // undone it since.
  void claimed(const TransactionPointer& transaction, int filter, const std::set<int>& keys,
               const std::vector<int>& inserted, Time sent, bool lasting = true);
  // Rows of the transactions `victim` were deleted, and the key was.
  void removed(const TransactionPointer& transaction, int filter, int key, uint64_t victim);
  void truncated(const TransactionPointer& transaction, int filter);
  void roll_back_to(const TransactionPointer& transaction, size_t position);

  // Its end has been requested: from now on it may have happened.
  void ending(const TransactionPointer& transaction);
  void prepared(const TransactionPointer& transaction);
  void ended(const TransactionPointer& transaction, bool committed);

  // ---- what is seen; `transaction` may be null ----

  void tested(const TransactionPointer& transaction, int filter, int key, bool known, Time sent);
  // In one statement of READ COMMITTED: how many rows of the key are visible, and is the key known?
  void looked(const TransactionPointer& transaction, int filter, int key, int rows, bool known,
              Time sent);
  // While nothing runs: all rows of a filter's tables, and all keys it knows.
  void check_all(int filter, const std::map<int, int>& rows, const std::set<int>& known,
                 const char* when);

  // The server has crashed: unlogged tables and filters are empty. No transaction runs, some may be
  // prepared.
  void forget_unlogged();

  // What rows of transaction `number` have others deleted since?
  std::set<int> deleted_rows_of(int filter, uint64_t number) const;

  Time now() const { return now_; }
  Time tick() { return ++now_; }
  bool has_difference() const { return !difference_.empty(); }
  const std::string& difference() const { return difference_; }
  void differ(const std::string& what);

  // For the proof that differences are found: what savepoints undo stays in the model.
  bool ignores_rollback_to = false;

 private:
  struct Change {
    TransactionPointer transaction;
    bool adds;
    uint64_t victim;  // of a removal: whose row
  };
  struct Key {
    int rows = 0;
    uint8_t possible = kAbsent;
    int attempts = 0;
    int claims = 0;                 // statements that may be about to add it
    Time was_possible[2] = {0, 0};  // until when the state was, where it is not now
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
  // (filter, key, transaction): rows of automatic transactions that were deleted before their
  // answer came.
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
