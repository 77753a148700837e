// A session: runs the transactions drawn for it, and tells the model the answers.
#pragma once

#include <chrono>
#include <deque>
#include <list>
#include <map>
#include <optional>
#include <utility>

#include "model.hpp"
#include "plan.hpp"
#include "session.hpp"

namespace checker {

using Clock = std::chrono::steady_clock;

// A transaction whose session was lost after it had sent the end and before it had the answer.
struct Unknown {
  enum class Kind { commit, automatic, prepare, finish } kind;
  TransactionPointer transaction;
  bool commits = true;  // of finish
  int filter = 0;       // of automatic
};

// Shared by all sessions.
struct Shared {
  Model model;
  uint64_t seed = 0;
  std::string conninfo;
  std::vector<TransactionPointer> prepared;
  std::vector<Unknown> unknown;
  uint64_t transactions = 0;               // number of transactions that have ended
  std::map<std::string, uint64_t> counts;  // how often each event has happened, by name
  uint64_t requests = 0;
  uint64_t numbers = 0;                    // the last transaction number given
  std::vector<int> automatic, truncating;  // for each filter: how many such transactions run now
  uint64_t defect_at = UINT64_MAX;         // the transaction with which one bypasses its filter
  std::deque<std::string> trace;           // the latest requests and answers
  bool calm = false;                       // no session is signalled
  bool drains = false;                     // no new transaction begins
  std::function<void()> let_go;            // releases sessions at a fault point
  void note(int session, const std::string& text);
};

class Worker {
 public:
  Worker(Shared& shared, int number);

  bool is_connected() const { return connection_.is_open(); }
  bool is_idle() const {
    return !transaction_ && !connection_.is_busy() && next_ >= plan_.steps.size();
  }
  bool is_waiting() const { return connection_.is_busy(); }
  int socket() const { return connection_.socket(); }
  int process() const { return connection_.process(); }
  double seconds_waiting() const;
  const std::string& request() const { return request_; }

  bool connect();
  // Sends the next request, if one may be sent now.
  void advance();
  // Reads what has arrived.
  void receive();
  void disturb_if_due();
  // The server is gone, and the session with it.
  void lose();

 private:
  const Step& step() const { return plan_.steps[next_]; }
  std::string statement();
  std::string disable_once();
  std::string rate_statement() const;
  std::string rates_to_check() const;
  void send(const std::string& statements, const std::string& data = "");
  bool may_send();
  void give_up();
  void begin_automatic();
  void handle(const Reply& reply);
  void handle_failure(const Reply& reply);
  void claimed(const Reply& reply);
  void replay_blocks(const Reply& reply);
  void on_notice(const std::string& text);
  void finish_procedure(const Reply& reply);
  void end(bool committed);
  void abandon_plan();
  void next_step();
  void check_state(const Reply& reply);
  TransactionPointer new_transaction(bool automatic);

  Shared& shared_;
  Model& model_;
  int number_;
  Connection connection_;
  uint64_t plans_ = 0;
  Plan plan_;
  size_t next_ = 0;  // index of the step
  int phase_ = 0;    // of a step with several requests
  enum class Repair { none, roll_back_to, rollback } repair_ = Repair::none;
  TransactionPointer transaction_;
  TransactionPointer finishing_;  // a prepared one
  bool finish_commits_ = false;
  std::vector<size_t> savepoints_;
  std::vector<TransactionPointer> inner_;  // of a procedure, in order; null: reported
  size_t told_ = 0;
  std::map<int, uint64_t> deleted_;  // key → the transaction that inserted the deleted row
  std::set<int> keys_;               // of the step
  bool truncates_[16] = {};
  bool counted_automatic_ = false;
  bool claiming_ = false;  // the model knows that a statement is adding keys
  Time sent_ = 0;
  Clock::time_point sent_at_;
  std::optional<Clock::time_point> disturb_at_;
  std::string request_;
  std::string begin_;  // is sent with the next statement
};

}  // namespace checker
