#include "checker.hpp"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>

#include "schema.hpp"

namespace checker {
namespace {

std::string name_of(int filter) { return kFilters[static_cast<size_t>(filter)].name; }
std::string both_tables(int filter) {
  return "(TABLE t_" + name_of(filter) + " UNION ALL TABLE p_" + name_of(filter) + ")";
}
int filter_count() { return static_cast<int>(kFilters.size()); }

}  // namespace

Checker::Checker(Options options)
    : options_(std::move(options)),
      model_(shared_.model),
      random_(options_.seed, 1),
      server_(std::make_unique<Server>(options_.bindir, options_.directory + "/s1", 5432)),
      faults_(options_.seed) {
  shared_.seed = options_.seed;
  shared_.let_go = [this] { faults_.pass_all(); };
  shared_.automatic.resize(kFilters.size());
  shared_.truncating.resize(kFilters.size());
  for (int i = 0; i < options_.sessions; ++i) workers_.emplace_back(shared_, i);
}

// ---- asking the server --------------------------------------------------------------------------

Reply Checker::ask(const std::string& query) {
  Reply reply = monitor_.ask(query);
  if (!reply.state.empty())
    model_.differ("an unexpected error, " + reply.state + ": " + reply.error + " of: " + query);
  return reply;
}

std::string Checker::value(const std::string& query) {
  const Reply reply = ask(query);
  return reply.rows.empty() ? "" : reply.rows.back().front();
}

void Checker::connect() {
  shared_.conninfo = server_->conninfo();
  for (int tries = 0; tries < 12000; ++tries) {
    if (monitor_.open(shared_.conninfo)) return;
    usleep(5000);
  }
  model_.differ("the server does not come back");
}

// ---- beginning ----------------------------------------------------------------------------------

void Checker::set_up() {
  server_->init(kSettings);
  server_->start();
  connect();
  ask(kFunctions);
  faults_.connect(shared_.conninfo);
  for (const FilterSpec& filter : kFilters) {
    const std::string name = filter.name, kind = filter.logged ? "TABLE" : "UNLOGGED TABLE";
    ask("CREATE FOREIGN TABLE " + name + " (key int) SERVER streamfilter OPTIONS (" +
        filter.options + ")");
    for (const char* table : {"t_", "p_"})
      ask("CREATE " + kind + " " + table + name +
          " (key int NOT NULL, tx bigint NOT NULL, op int NOT NULL);" + "CREATE INDEX ON " + table +
          name + " (key)");
    for (const char* table : {"t_", "p_"})
      for (const char* event : {"DELETE ON ", "TRUNCATE ON "})
        if (filter.follows)
          ask(std::string("CREATE TRIGGER forget_") + (event[0] == 'D' ? "row" : "all") +
              " AFTER " + event + table + name + (event[0] == 'D' ? " FOR EACH ROW" : "") +
              " EXECUTE FUNCTION streamfilter_forget('" + name + "')");
    ask("CREATE TRIGGER zz BEFORE INSERT ON t_" + name +
        " FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('" + name + "')");
  }
  ask("CREATE FOREIGN TABLE blind (key int) SERVER streamfilter OPTIONS (kind 'clq', memory '1MB', "
      "bits '48')");
  for (const RateSpec& filter : kRateFilters)
    ask(std::string("CREATE FOREIGN TABLE ") + filter.name +
        " (key int) SERVER streamfilter OPTIONS (" + filter.options + ", memory '" + kRateSizes[0] +
        "', persistence 'logged')");
  for (int filter = 0; filter < filter_count(); ++filter)
    if (kFilters[static_cast<size_t>(filter)].deletes) try_pairs(filter);
}

// No two keys may look alike, and all must fit at once. Any two keys differ in some bit of their
// numbers: for each bit, the keys with it are inserted and the others must be unknown, then the
// other way round.
void Checker::try_pairs(int filter) {
  const std::string name = name_of(filter);
  const int keys = kFilters[static_cast<size_t>(filter)].keys;
  const std::string all = " FROM generate_series(0, " + std::to_string(keys - 1) + ") k";
  for (int bit = 1; bit < keys; bit *= 2)
    for (const char* side : {" WHERE k & ", " WHERE ~k & "}) {
      const std::string half = all + side + std::to_string(bit) + " <> 0";
      ask("TRUNCATE " + name);
      ask("INSERT INTO " + name + " SELECT k" + half);
      if (value("SELECT count(*)" + all + " WHERE streamfilter_test('" + name + "', k)") !=
          value("SELECT count(*)" + half))
        model_.differ("filter " + name + " is too small: keys look alike");
    }
  ask("TRUNCATE " + name + "; INSERT INTO " + name + " SELECT k" + all);
  if (value("SELECT count(*)" + all + " WHERE streamfilter_test('" + name + "', k)") !=
      std::to_string(keys))
    model_.differ("filter " + name + " is too small: keys are forgotten");
  ask("TRUNCATE " + name);
}

// ---- the sessions -------------------------------------------------------------------------------

void Checker::poll_sessions() {
  std::vector<pollfd> entries;
  for (Worker& worker : workers_)
    if (worker.is_connected()) entries.push_back({worker.socket(), POLLIN, 0});
  poll(entries.data(), entries.size(), 1);
  for (Worker& worker : workers_) {
    if (worker.is_connected()) worker.receive();
    worker.disturb_if_due();
    if (worker.is_connected()) worker.advance();
    if (worker.seconds_waiting() > 60) model_.differ("no answer for a minute: " + worker.request());
  }
}

// Lets all transactions end and none begin; prepared ones stay.
void Checker::drain() {
  faults_.pass_all();
  shared_.drains = true;
  const auto works = [](const Worker& worker) { return !worker.is_idle(); };
  while (!model_.has_difference() && std::any_of(workers_.begin(), workers_.end(), works))
    poll_sessions();
  shared_.drains = false;
  // A planned crash may have disconnected sessions.
  const auto is_lost = [](const Worker& worker) { return !worker.is_connected(); };
  for (int i = 0;
       i < 500 && !awaits_.empty() && std::any_of(workers_.begin(), workers_.end(), is_lost); ++i) {
    notice_crash();
    usleep(1000);
  }
}

// ---- outcomes that no session was told ----------------------------------------------------------

bool Checker::is_committed(const TransactionPointer& transaction) {
  if (transaction->xid.empty() || std::stoull(transaction->xid) >= unheard_of_) return false;
  for (;;) {
    const Reply reply = monitor_.ask("SELECT pg_xact_status('" + transaction->xid + "')");
    if (reply.state == "22023")
      return false;  // in the future: a promoted standby has never heard of it
    const std::string status = reply.rows.empty() ? "" : reply.rows[0][0];
    if (status != "in progress") return status == "committed";
    usleep(2000);
  }
}

bool Checker::is_prepared(const TransactionPointer& transaction) {
  return value("SELECT count(*) FROM pg_prepared_xacts WHERE gid = 'm" +
               std::to_string(transaction->number) + "'") == "1";
}

void Checker::resolve_automatic(const Unknown& unknown) {
  std::set<int> keys;
  for (const auto& attempt : unknown.transaction->attempts) keys.insert(attempt.key);
  const uint64_t number = unknown.transaction->number;
  std::set<int> inserted = model_.deleted_rows_of(unknown.filter, number);
  for (const auto& row : ask("SELECT key FROM " + both_tables(unknown.filter) +
                             " r WHERE tx = " + std::to_string(number))
                             .rows)
    inserted.insert(std::stoi(row[0]));
  model_.claimed(unknown.transaction, unknown.filter, keys, {inserted.begin(), inserted.end()}, 0);
  model_.ended(unknown.transaction, true);
}

void Checker::resolve_unknown() {
  for (const Unknown& unknown : std::exchange(shared_.unknown, {})) {
    model_.tick();
    const TransactionPointer& transaction = unknown.transaction;
    shared_.note(-1, "resolves " + std::to_string(transaction->number));
    ++shared_.counts["unknown outcomes"];
    ++shared_.transactions;
    using Kind = Unknown::Kind;
    if (unknown.kind == Kind::automatic) {
      resolve_automatic(unknown);
    } else if (unknown.kind != Kind::commit && is_prepared(transaction)) {
      model_.prepared(transaction);
      transaction->exposed = false;
      shared_.prepared.push_back(transaction);
    } else {
      model_.ended(transaction, is_committed(transaction));
    }
  }
}

// ---- what is checked ----------------------------------------------------------------------------

void Checker::check_filters(Connection& connection, bool on_standby, const char* when) {
  const auto ask_there = [&](const std::string& query) {
    Reply reply = connection.ask(query);
    if (!reply.state.empty())
      model_.differ("an unexpected error, " + reply.state + ": " + reply.error + " of: " + query);
    return reply.rows;
  };
  for (int filter = 0; filter < filter_count(); ++filter) {
    const FilterSpec& spec = kFilters[static_cast<size_t>(filter)];
    if (on_standby && !spec.logged) continue;  // a standby cannot read the unlogged table
    std::map<int, int> rows;
    for (const auto& row :
         ask_there("SELECT key, count(*) FROM " + both_tables(filter) + " r GROUP BY key"))
      rows[std::stoi(row[0])] = std::stoi(row[1]);
    std::set<int> known;
    for (const auto& row :
         ask_there("SELECT k FROM generate_series(0, " + std::to_string(spec.keys - 1) +
                   ") k WHERE streamfilter_test('" + spec.name + "', k)"))
      known.insert(std::stoi(row[0]));
    model_.check_all(filter, rows, known, when);
  }
}

// Sessions add and remove keys of the filter without tables in any order, so the model cannot tell
// its keys. But without a request since the last check the filter must know the same keys, on a
// standby as well.
void Checker::check_blind(Connection& connection, const char* when) {
  std::set<std::string> known;
  for (const auto& row :
       connection.ask("SELECT k FROM generate_series(0, 63) k WHERE streamfilter_test('blind', k)")
           .rows)
    known.insert(row[0]);
  if (blind_at_ == shared_.requests && known != blind_)
    for (int key = 0; key < 64; ++key)
      if (known.contains(std::to_string(key)) != blind_.contains(std::to_string(key)))
        model_.differ("filter blind, key " + std::to_string(key) + " is " +
                      (known.contains(std::to_string(key)) ? "" : "not ") + "known now, " + when);
  blind_ = known;
  blind_at_ = shared_.requests;
}

void Checker::check_standby() {
  if (!standby_.catch_up(monitor_)) {
    model_.differ("the standby does not catch up");
    return;
  }
  Connection reader;
  if (!reader.open(standby_.server().conninfo())) model_.differ("the standby does not answer");
  if (reader.is_open()) {
    check_filters(reader, true, "on a standby");
    check_blind(reader, "on a standby");
  }
  ++shared_.counts["checks of a standby"];
}

// What model_rates() asks after each step; and keys that never came are known no more often than is
// said. A random excess is six standard deviations.
void Checker::check_rates(const char* when) {
  for (const FilterSpec& filter : kFilters)
    ask(std::string("SELECT FROM model_rates('") + filter.name + "')");
  for (const RateSpec& filter : kRateFilters) {
    const std::string name = filter.name;
    // Of a filter that nobody has used since a start, the server says what its definition is for.
    const std::string found = value(
        "SELECT count(*) FROM generate_series(1, 4000) k "
        "WHERE streamfilter_test('" +
        name + "', -k)");
    ask("SELECT FROM model_rates('" + name + "')");
    const Reply reply =
        ask("SELECT CASE WHEN overfull THEN fpr_now ELSE fpr_bound END, overfull "
            "FROM _streamfilter.streamfilter_stat('" +
            name + "'::regclass)");
    if (found.empty() || reply.rows.empty()) return;
    const auto& row = reply.rows[0];
    const double said = 4000 * std::stod(row[0]);
    shared_.counts["rates above what was asked"] += row[1] == "t";
    if (std::stod(found) > 1.1 * said + 6 * std::sqrt(said) + 3)
      model_.differ(name + " takes " + found + " of 4000 keys for repeats, and says " + row[0] +
                    ", " + when);
  }
}

void Checker::check(const char* when) {
  faults_.pass_all();
  resolve_unknown();
  check_filters(monitor_, false, when);
  check_blind(monitor_, when);
  if (shared_.prepared.empty()) {
    const std::string left = value("SELECT coalesce(sum(in_flight), 0) FROM streamfilter_stats");
    if (left != "0") model_.differ(left + " keys are in flight and no transaction is");
  }
  check_rates(when);
  if (standby_.phase() >= Standby::Phase::following) check_standby();
  ++shared_.counts["checks"];
  next_check_ = shared_.transactions + 3000;
}

// ---- what happens -------------------------------------------------------------------------------

void Checker::wait_until_lost() {
  const auto is_there = [](const Worker& worker) { return worker.is_connected(); };
  for (int i = 0; i < 20000 && std::any_of(workers_.begin(), workers_.end(), is_there); ++i)
    for (Worker& worker : workers_) {
      if (!worker.is_connected()) continue;
      worker.receive();
      if (worker.is_connected() && i > 10) usleep(1000);
    }
  if (std::any_of(workers_.begin(), workers_.end(), is_there))
    model_.differ("a session outlives the server");
}

// Every session has lost the server.
void Checker::recover(const char* when, bool crashed) {
  monitor_.close();
  awaits_.clear();
  wait_until_lost();
  if (!server_->is_running()) server_->start();
  connect();
  // A crash forgets transactions that wrote nothing; others get their numbers.
  unheard_of_ = std::stoull(value("SELECT pg_snapshot_xmax(pg_current_snapshot())"));
  resolve_unknown();
  unheard_of_ = UINT64_MAX;
  faults_.connect(shared_.conninfo);
  if (crashed) model_.forget_unlogged();
  check(when);
}

void Checker::crash_whole() {
  ++shared_.counts["kills of the server"];
  server_->kill_all();
  recover("after kill -9 of the server", true);
}

// Keys known while nothing ran must be known afterwards.
void Checker::crash_at_rest() {
  ++shared_.counts["kills of the server at rest"];
  drain();
  if (model_.has_difference()) return;
  check("before a kill");
  server_->kill_all();
  recover("after kill -9 of the server at rest", true);
}

void Checker::crash_one() {
  std::vector<pid_t> victims = server_->processes();  // the checkpointer, the writer of WAL, …
  if (random_.chance(0.7)) victims.clear();
  for (const Worker& worker : workers_)
    if (worker.is_waiting()) victims.push_back(worker.process());
  if (victims.empty()) return;
  awaits_ = "kills of a process";
  kill(victims[static_cast<size_t>(random_.below(static_cast<int>(victims.size())))], SIGKILL);
}

// The first session to reach the point crashes; perhaps none does.
void Checker::kill_at_point() {
  awaits_ = "kills at a fault point";
  shared_.note(-1, "kill at " + faults_.arm_kill());
}

// The server disconnects all sessions when one of its processes was killed. That can take a moment,
// or not happen: the process had ended, or no session has reached the point.
void Checker::notice_crash() {
  Reply nothing;
  if (!monitor_.is_open() || !monitor_.receive(nothing)) return;
  if (awaits_.empty()) {
    model_.differ("the server has crashed");
    return;
  }
  ++shared_.counts[std::exchange(awaits_, "")];
  recover("after kill -9 of a process", true);
}

// Rows of unlogged tables survive a clean restart; prepared keys of unlogged filters do not.
void Checker::finish_unlogged_prepared() {
  drain();
  resolve_unknown();
  for (const TransactionPointer& transaction : std::exchange(shared_.prepared, {})) {
    ask("ROLLBACK PREPARED 'm" + std::to_string(transaction->number) + "'");
    model_.ended(transaction, false);
  }
}

void Checker::restart(const char* mode) {
  const bool clean = std::string(mode) == "fast";
  ++shared_.counts[clean ? "clean restarts" : "immediate restarts"];
  if (clean) {
    finish_unlogged_prepared();
  }
  server_->stop(mode);
  recover(clean ? "after a restart" : "after an immediate stop", !clean);
}

void Checker::begin_standby() {
  const std::string number = std::to_string(++servers_);
  standby_.begin(*server_, options_.bindir, options_.directory + "/s" + number, 5431 + servers_);
}

// The primary dies or is stopped while sessions work. Every commit that a session was told of must
// be on the standby.
void Checker::promote() {
  ++shared_.counts["promotions"];
  if (random_.chance(0.7))
    server_->kill_all();
  else
    server_->stop("fast");
  monitor_.close();
  wait_until_lost();
  server_ = standby_.take();
  recover("after a promotion", true);
}

void Checker::event() {
  next_event_ = shared_.transactions + static_cast<uint64_t>(random_.between(2000, 12'000));
  shared_.note(-1, "event");
  awaits_.clear();
  if (standby_.is_ready(shared_.transactions)) return promote();
  const int dice = random_.below(100);
  if (dice < 15 && standby_.phase() == Standby::Phase::none)
    begin_standby();
  else if (dice < 30 && faults_.are_there())
    kill_at_point();
  else if (dice < 52)
    crash_at_rest();
  else if (dice < 70)
    crash_whole();
  else if (dice < 84)
    crash_one();
  else if (dice < 93)
    restart("immediate");
  else
    restart("fast");
}

// Plants a defect that the model does not know of, to prove that differences are found.
void Checker::plant_defect() {
  if (options_.defect == "disabled") shared_.defect_at = 2000;
  if (options_.defect == "savepoint") model_.ignores_rollback_to = true;
  if (shared_.transactions < 2000) return;
  if (options_.defect == "key") ask("DELETE FROM sqf WHERE key = (SELECT key FROM t_sqf LIMIT 1)");
  if (options_.defect == "row")
    ask("DELETE FROM t_bloom WHERE key = (SELECT key FROM t_bloom LIMIT 1)");
  options_.defect.clear();
}

// ---- the run ------------------------------------------------------------------------------------

bool Checker::has_time() const {
  return std::chrono::duration<double>(Clock::now() - started_).count() < options_.seconds;
}

void Checker::report(bool final) {
  const double seconds = std::chrono::duration<double>(Clock::now() - started_).count();
  if (!final && seconds < next_report_) return;
  next_report_ = seconds + 10;
  printf("model: %s%.0f s, %lu transactions", final ? "in all " : "", seconds,
         shared_.transactions);
  for (const auto& [name, count] : shared_.counts) printf(", %lu %s", count, name.c_str());
  printf("\n");
  fflush(stdout);
}

// Prints the trace of the key first: it tells most about a difference.
void Checker::explain() {
  const std::string file = options_.directory + "/trace";
  std::ofstream out(file);
  for (const std::string& line : shared_.trace) out << line << "\n";
  printf(
      "model: DIFFERENCE %s\nmodel: what was sent and received is in %s, the server's log in %s\n",
      model_.difference().c_str(), file.c_str(), server_->log_file().c_str());
  printf("model: run again with seed %lu\n", options_.seed);
}

// Looks for internal errors, unplanned crashes and damage.
void Checker::check_log() {
  const auto has = [](const std::string& line, const char* text) {
    return line.find(text) != std::string::npos;
  };
  for (int server = 1; server <= servers_; ++server) {
    std::ifstream log(options_.directory + "/s" + std::to_string(server) + ".log");
    for (std::string line; std::getline(log, line);) {
      const bool is_internal =
          has(line, "] XX") && !has(line, "fault injected") &&
          (has(line, " ERROR: ") || has(line, " FATAL: ") || has(line, " WARNING: "));
      const bool is_bad = has(line, "PANIC") || has(line, "TRAP:") || has(line, "is damaged") ||
                          has(line, "by signal 11") || has(line, "by signal 6");
      if (is_internal || is_bad) model_.differ("the server's log: " + line);
    }
  }
}

bool Checker::run() {
  set_up();
  if (getenv("STREAMFILTER_FAULTS") != nullptr && !faults_.are_there())
    model_.differ("there are no fault points");
  started_ = Clock::now();
  next_event_ = 2000;
  while (has_time() && !model_.has_difference()) {
    for (Worker& worker : workers_)
      if (!worker.is_connected() && shared_.unknown.empty()) worker.connect();
    poll_sessions();
    notice_crash();
    faults_.play(shared_.counts);
    standby_.step(monitor_, shared_.transactions);
    shared_.calm = standby_.phase() == Standby::Phase::synchronous;
    const bool is_due = shared_.transactions >= next_check_;
    if (is_due || !shared_.unknown.empty()) drain();
    if (is_due)
      check("with no transaction running");
    else
      resolve_unknown();
    if (!options_.defect.empty()) plant_defect();
    if (shared_.transactions >= next_event_) event();
    report(false);
  }
  if (!model_.has_difference()) {
    drain();
    finish_unlogged_prepared();
    check("at the end");
    check_log();
  }
  standby_.discard(nullptr);
  report(true);
  if (model_.has_difference()) explain();
  printf("model: %d differences, seed %lu\n", model_.has_difference() ? 1 : 0, options_.seed);
  monitor_.close();
  return !model_.has_difference();
}

}  // namespace checker
