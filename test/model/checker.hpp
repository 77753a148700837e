// The whole run: a server, sessions, events that hit them, and the checks.
#pragma once

#include <list>
#include <string>

#include "faults.hpp"
#include "server.hpp"
#include "standby.hpp"
#include "worker.hpp"

namespace checker {

struct Options {
  std::string bindir, directory;
  double seconds = 60;
  uint64_t seed = 0;
  int sessions = 8;
  std::string defect;
};

class Checker {
 public:
  explicit Checker(Options options);
  bool run();  // false: there was a difference

 private:
  void set_up();
  void try_pairs(int filter);
  void work(bool until_idle);
  void poll_sessions();
  void drain();
  void resolve_unknown();
  bool is_committed(const TransactionPointer& transaction);
  void resolve_automatic(const Unknown& unknown);
  void check_rates(const char* when);
  void check(const char* when);
  void event();
  void crash_whole();
  void crash_at_rest();
  void check_blind(Connection& connection, const char* when);
  void crash_one();
  void restart(const char* mode);
  void recover(const char* when, bool crashed);
  void finish_unlogged_prepared();
  void plant_defect();
  void begin_standby();
  void promote();
  void check_standby();
  void check_filters(Connection& connection, bool on_standby, const char* when);
  void kill_at_point();
  void notice_crash();
  void wait_until_lost();
  void connect();
  bool is_prepared(const TransactionPointer& transaction);
  std::string value(const std::string& query);
  Reply ask(const std::string& query);
  bool has_time() const;
  void report(bool final);
  void explain();
  void check_log();

  Options options_;
  Shared shared_;
  Model& model_;
  Random random_;
  std::unique_ptr<Server> server_;
  Standby standby_;
  Faults faults_;
  int servers_ = 1;  // number of servers made so far
  Connection monitor_;
  std::list<Worker> workers_;
  Clock::time_point started_;
  std::string awaits_;                // the planned crash, by its name in the counts
  std::set<std::string> blind_;       // what the filter without tables knew at the last check
  uint64_t blind_at_ = UINT64_MAX;    // requests when it was checked
  uint64_t unheard_of_ = UINT64_MAX;  // the first transaction id not given out before the crash
  uint64_t next_event_ = 0, next_check_ = 0;
  double next_report_ = 0;
};

}  // namespace checker
