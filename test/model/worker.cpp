#include "worker.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "server.hpp"

namespace checker {
namespace {

constexpr size_t kTraceLines = 400'000;

// The errors that are expected when sessions meet, are cancelled or terminated.
bool is_expected(const std::string& state, Action action) {
  for (const char* usual : {"55P03", "57014", "40P01", "40001", "57P01", "57P02", "57P03", "08006",
                            "08003", "25P02", "55006"})
    if (state == usual) return true;
  if (state == "23505") return action == Action::commit || action == Action::prepare;
  if (state == "55000") return action == Action::alter;  // forget_saved() after save()
  if (state == "0A000" || state == "53400") return action == Action::prepare;
  if (state == "54000" || state == "53200") return action == Action::resize;
  return false;
}

std::string list(const std::vector<int>& keys) {
  std::string text;
  for (const int key : keys) text += (text.empty() ? "" : ",") + std::to_string(key);
  return text;
}

const FilterSpec& spec_of(int filter) { return kFilters[static_cast<size_t>(filter)]; }

bool is_claim(Action action) {
  return action == Action::insert || action == Action::seen || action == Action::claim;
}

}  // namespace

void Shared::note(int session, const std::string& text) {
  trace.push_back(std::to_string(model.now()) + " s" + std::to_string(session) + " " +
                  text.substr(0, 400));
  if (trace.size() > kTraceLines) trace.pop_front();
}

Worker::Worker(Shared& shared, int number)
    : shared_(shared), model_(shared.model), number_(number) {
  connection_.on_notice = [this](const std::string& text) { on_notice(text); };
}

bool Worker::connect() {
  if (!connection_.open(shared_.conninfo)) return false;
  Random random(shared_.seed, 1000 + static_cast<uint64_t>(number_), plans_);
  connection_.ask("SET lock_timeout = " + std::to_string(random.between(30, 250)));
  return connection_.is_open();
}

double Worker::seconds_waiting() const {
  return connection_.is_busy() ? std::chrono::duration<double>(Clock::now() - sent_at_).count() : 0;
}

TransactionPointer Worker::new_transaction(bool automatic) {
  auto transaction = std::make_shared<Transaction>();
  transaction->number = ++shared_.numbers;
  transaction->automatic = automatic;
  transaction->exposed = automatic;
  return transaction;
}

// ---- requests -----------------------------------------------------------------------------------

// While a TRUNCATE runs, no automatic statement begins on the filter, and vice versa: the model
// could not tell which of the two ended first.
bool Worker::may_send() {
  const size_t filter = static_cast<size_t>(step().filter);
  const bool automatic =
      !transaction_ && (is_claim(step().action) || step().action == Action::procedure);
  if (automatic) return shared_.truncating[filter] == 0;
  if (step().action != Action::truncate) return true;
  if (!std::exchange(truncates_[filter], true)) ++shared_.truncating[filter];
  return shared_.automatic[filter] == 0;
}

void Worker::advance() {
  if (connection_.is_busy() || !connection_.is_open()) return;
  if (repair_ == Repair::roll_back_to) {
    send("ROLLBACK TO s" + std::to_string(savepoints_.size()));
    return;
  }
  if (repair_ == Repair::rollback) {
    // The same step when the transaction has failed.
    send(number_ % 2 == 0 && connection_.in_failed_transaction() ? "COMMIT" : "ROLLBACK");
    return;
  }
  if (next_ >= plan_.steps.size()) {
    if (shared_.drains) return;
    Random random(shared_.seed, static_cast<uint64_t>(number_), plans_++);
    plan_ = draw_plan(random, shared_.transactions);
    next_ = 0;
    phase_ = 0;
  }
  if (!may_send()) {
    if (shared_.drains) give_up();
    return;
  }
  std::string text = statement();
  if (text.empty()) {
    if (next_ < plan_.steps.size()) ++next_;
    if (!begin_.empty()) advance();  // BEGIN is sent with the next statement
    return;
  }
  const std::string data = step().action == Action::copy && phase_ == 0 ? [this] {
    std::string rows;
    for (const int key : step().keys)
      rows += std::to_string(key) + "\t" + std::to_string(transaction_->number) + "\t" + std::to_string(next_) + "\n";
    return rows;
  }() : std::string();
  const Action action = step().action;
  if (phase_ == 0 && (is_claim(action) || action == Action::copy || action == Action::block ||
                      action == Action::procedure)) {
    model_.claim_begins(step().filter, keys_);
    claiming_ = true;
  }
  text += rates_to_check();
  send(std::exchange(begin_, "") + text, data);
  if (plan_.disturb_signal != 0 && static_cast<size_t>(plan_.disturb_step) == next_)
    disturb_at_ = Clock::now() + std::chrono::microseconds(plan_.disturb_after);
}

// Ends a transaction that cannot go on while the run drains.
void Worker::give_up() {
  if (transaction_ && begin_.empty()) {
    repair_ = Repair::rollback;
    return;
  }
  begin_.clear();
  end(false);
  abandon_plan();
}

void Worker::send(const std::string& statements, const std::string& data) {
  model_.tick();
  // Later requests of a step count as part of its first.
  if (phase_ == 0) sent_ = model_.now();
  sent_at_ = Clock::now();
  request_ = statements;
  ++shared_.requests;
  if (transaction_) transaction_->exposed = true;
  shared_.note(number_, "> " + statements);
  connection_.send(statements, data);
}

void Worker::begin_automatic() {
  transaction_ = new_transaction(true);
  keys_ = {step().keys.begin(), step().keys.end()};
  model_.attempt(transaction_, step().filter, keys_);
  ++shared_.automatic[static_cast<size_t>(step().filter)];
  counted_automatic_ = true;
}

// The defect that --defect=disabled plants: one statement bypasses its filter.
std::string Worker::disable_once() {
  if (transaction_->number < shared_.defect_at) return "";
  shared_.defect_at = UINT64_MAX;
  return "SET LOCAL streamfilter.enabled = off; ";
}

// What follows the step's own statements in the same request: no rows, or an error.
std::string Worker::rates_to_check() const {
  const Action action = step().action;
  if (action == Action::rate)
    return std::string("; SELECT FROM model_rates('") +
           kRateFilters[static_cast<size_t>(step().filter)].name + "')";
  const bool changes = is_claim(action) || action == Action::block || action == Action::remove ||
                       action == Action::truncate || action == Action::change ||
                       action == Action::save;
  if (!changes || !transaction_ || transaction_->automatic) return "";
  return std::string("; SELECT FROM model_rates('") + spec_of(step().filter).name + "')";
}

std::string Worker::rate_statement() const {
  const Step& step = this->step();
  const RateSpec& filter = kRateFilters[static_cast<size_t>(step.filter)];
  const std::string name = filter.name, keys = "generate_series(" + std::to_string(step.keys[0]) +
                                               ", " + std::to_string(step.keys[1]) + ")";
  if (step.variant == 0) return "TRUNCATE " + name;
  if (step.variant <= static_cast<int>(std::size(kRateSizes)))
    return "ALTER FOREIGN TABLE " + name + " OPTIONS (SET memory '" + kRateSizes[step.variant - 1] +
           "')";
  if (step.variant < 10 && filter.deletes)
    return "DELETE FROM " + name + " USING " + keys + " k WHERE key = k";
  return "INSERT INTO " + name + " SELECT " + keys;
}

std::string Worker::statement() {
  const Step& step = this->step();
  const FilterSpec& filter = spec_of(step.filter);
  const std::string name = filter.name, keys = "'{" + list(step.keys) + "}'::int[]";
  keys_ = {step.keys.begin(), step.keys.end()};
  if (!transaction_ && is_claim(step.action)) begin_automatic();
  const std::string number = transaction_ ? std::to_string(transaction_->number) : "";
  const std::string row = ", " + number + ", " + std::to_string(next_);
  const std::string returned = " RETURNING key, pg_current_xact_id()";
  switch (step.action) {
    case Action::begin: {
      transaction_ = new_transaction(false);
      const char* const kLevels[] = {"", " ISOLATION LEVEL REPEATABLE READ",
                                     " ISOLATION LEVEL SERIALIZABLE"};
      begin_ = std::string("BEGIN") + kLevels[step.variant] + "; ";
      return "";
    }
    case Action::insert:
      return disable_once() + "INSERT INTO t_" + name + " SELECT k" + row + " FROM unnest(" + keys +
             ") k" + returned;
    case Action::seen:
      return "INSERT INTO p_" + name + " SELECT k" + row + " FROM unnest(" + keys +
             ") k WHERE NOT streamfilter_seen('" + name + "', k)" + returned;
    case Action::claim:
      return "WITH new AS (INSERT INTO " + name + " SELECT unnest(" + keys +
             ") RETURNING key) INSERT INTO p_" + name + " SELECT key" + row + " FROM new" +
             returned;
    case Action::copy:
      if (phase_ == 0) return "COPY t_" + name + " FROM STDIN";
      return "SELECT key, pg_current_xact_id() FROM t_" + name + " WHERE key = ANY (" + keys +
             ") AND tx = " + number + " AND op = " + std::to_string(next_);
    case Action::block:
      return "SELECT * FROM model_block('" + name + "', " + keys + row + ", " +
             std::to_string(step.variant) + ")";
    case Action::procedure: {
      std::vector<int> few(step.keys.begin(),
                           step.keys.begin() + std::min<long>(4, std::ssize(step.keys)));
      inner_.clear();
      told_ = 0;
      for (const int key : few) {
        inner_.push_back(new_transaction(true));
        model_.attempt(inner_.back(), step.filter, {key});
      }
      ++shared_.automatic[static_cast<size_t>(step.filter)];
      counted_automatic_ = true;
      return "CALL model_steps('" + name + "', '{" + list(few) + "}', " +
             std::to_string(inner_.front()->number) + ", " + std::to_string(step.variant) + ")";
    }
    case Action::test:
      return "SELECT k, streamfilter_test('" + name + "', k) FROM unnest(" + keys + ") k";
    case Action::look:
      return "SELECT key, count(*), bool_and(streamfilter_test('" + name +
             "', key)) FROM (SELECT key FROM t_" + name + " WHERE key = ANY (" + keys +
             ") UNION ALL SELECT key FROM p_" + name + " WHERE key = ANY (" + keys +
             ")) r GROUP BY key";
    case Action::remove: {
      if (phase_ == 0) {
        std::string both;
        for (const char* table : {"t_", "p_"})
          both += std::string("DELETE FROM ") + table + name + " WHERE key = ANY (" + keys +
                  ") RETURNING key, pg_current_xact_id(), tx;";
        return both;
      }
      std::string all;
      for (const auto& [key, victim] : deleted_)
        all += "DELETE FROM " + name + " WHERE key = " + std::to_string(key) + ";";
      return all;
    }
    case Action::truncate:
      return "TRUNCATE t_" + name + ", p_" + name + (filter.follows ? "" : "; TRUNCATE " + name) +
             "; SELECT -1, pg_current_xact_id()";
    case Action::blind: {
      if (step.variant == 0) return "TRUNCATE blind";
      if (step.variant < 20) return "INSERT INTO blind SELECT unnest(" + keys + ")";
      std::string all;
      for (const int key : step.keys)
        all += "DELETE FROM blind WHERE key = " + std::to_string(key) + ";";
      return all;
    }
    case Action::rate: return rate_statement();
    case Action::savepoint: return "SAVEPOINT s" + std::to_string(savepoints_.size() + 1);
    case Action::roll_back_to: return "ROLLBACK TO s" + std::to_string(savepoints_.size());
    case Action::release: return "RELEASE s" + std::to_string(savepoints_.size());
    case Action::sleep: return "SELECT pg_sleep(" + std::to_string(step.variant * 1e-6) + ")";
    case Action::violate: return "INSERT INTO deferred VALUES (1), (1)";
    case Action::alter: {
      const std::string insert = "; INSERT INTO " + name + " SELECT generate_series(1, 20)";
      const std::string variants[] = {
          "ALTER FOREIGN TABLE " + name + " OPTIONS (SET memory '8MB')" + insert,
          "ALTER FOREIGN TABLE " + name + " OPTIONS (" + "SET persistence '" +
              (filter.logged ? "un" : "") + "logged')" + insert,
          "DROP FOREIGN TABLE " + name + " CASCADE",
          "ALTER FOREIGN TABLE " + name +
              " RENAME TO renamed; INSERT INTO renamed SELECT generate_series(1, 20)",
          "TRUNCATE " + name + insert,
          "SELECT streamfilter_forget_saved('" + name + "')"};
      return "SAVEPOINT a; " + variants[step.variant] + "; ROLLBACK TO a; RELEASE a";
    }
    case Action::resize:
      return "CALL streamfilter_resize('" + name + "', '" + filter.memory(1 + step.variant) + "')";
    case Action::save: {
      // A filter whose kind forgets no single key does not change by merging its own value.
      const bool merges = step.variant == 0 && !filter.deletes;
      return merges
                 ? "SELECT streamfilter_merge('" + name + "', streamfilter_value('" + name + "'))"
                 : "SELECT streamfilter_save('" + name + "')";
    }
    case Action::change: {  // to the present definition
      const std::string alter = "ALTER FOREIGN TABLE " + name + " OPTIONS (SET ";
      if (step.variant == 0) {
        const bool logged = filter.logged;
        return alter + "persistence '" + (logged ? "unlogged" : "logged") + "'); INSERT INTO " +
               name + " SELECT 1 WHERE false; " + alter + "persistence '" +
               (logged ? "logged" : "unlogged") + "')";
      }
      if (step.variant == 3) return alter + "memory '" + filter.memory() + "')";
      return alter + "memory '" + (step.variant == 1 ? "16MB" : "6MB") +
             "'); SELECT streamfilter_test('" + name + "', 1)";
    }
    case Action::vacuum: {
      const std::string variants[] = {"VACUUM t_" + name,
                                      "VACUUM FULL t_" + name,
                                      "VACUUM (FREEZE) p_" + name,
                                      "VACUUM _streamfilter.streamfilter_log",
                                      "VACUUM FULL _streamfilter.streamfilter_log",
                                      "VACUUM _streamfilter.streamfilter_image",
                                      "VACUUM FULL _streamfilter.streamfilter_image",
                                      "VACUUM (FREEZE, ANALYZE) t_" + name};
      return variants[step.variant];
    }
    case Action::commit:
      model_.tick();
      model_.ending(transaction_);
      return "COMMIT";
    case Action::rollback: return "ROLLBACK";
    case Action::prepare: return "PREPARE TRANSACTION 'm" + number + "'";
    case Action::finish: {
      if (shared_.prepared.empty()) return "";
      const size_t which = step.variant == 0 ? 0 : shared_.prepared.size() - 1;
      finishing_ = shared_.prepared[which];
      shared_.prepared.erase(shared_.prepared.begin() + static_cast<long>(which));
      finish_commits_ = (finishing_->number + static_cast<uint64_t>(step.variant)) % 3 != 0;
      model_.tick();
      finishing_->exposed = true;
      if (finish_commits_) model_.ending(finishing_);
      return std::string(finish_commits_ ? "COMMIT" : "ROLLBACK") + " PREPARED 'm" +
             std::to_string(finishing_->number) + "'";
    }
    case Action::disconnect: lose(); return "";
  }
  return "";
}

void Worker::disturb_if_due() {
  if (!disturb_at_ || Clock::now() < *disturb_at_ || !connection_.is_open()) return;
  disturb_at_.reset();
  if (shared_.calm) return;
  if (transaction_) transaction_->exposed = true;
  ++shared_.counts[plan_.disturb_signal == SIGINT ? "cancels" : "terminations"];
  shared_.note(number_, "! signal " + std::to_string(plan_.disturb_signal));
  kill(process(), plan_.disturb_signal);
}

// ---- answers ------------------------------------------------------------------------------------

void Worker::receive() {
  Reply reply;
  if (!connection_.is_open()) return;
  if (!connection_.receive(reply)) return;
  model_.tick();
  std::string text =
      "< " + (reply.state.empty() ? reply.tag : reply.error.substr(0, reply.error.find('\n')));
  for (size_t i = 0; i < reply.rows.size() && i < 40; ++i) {
    text += i == 0 ? " (" : " | ";
    for (const std::string& value : reply.rows[i]) text += value + " ";
  }
  shared_.note(number_, reply.lost ? text + " (lost)" : text);
  check_state(reply);
  const bool claims =
      claiming_ && !(phase_ == 0 && step().action == Action::copy && reply.state.empty());
  if (claims) model_.claim_answered(step().filter, keys_);
  const int filter = claims ? step().filter : 0;
  const std::set<int> keys = claims ? keys_ : std::set<int>();
  claiming_ = claiming_ && !claims;
  if (reply.lost || reply.state == "57P01" || reply.state == "57P02")
    lose();
  else if (!reply.state.empty())
    handle_failure(reply);
  else
    handle(reply);
  model_.claim_ended(filter, keys);
  if (transaction_ && connection_.is_open())
    transaction_->exposed = transaction_->automatic || connection_.in_failed_transaction();
}

void Worker::check_state(const Reply& reply) {
  if (reply.state.empty()) return;
  ++shared_.counts["errors"];
  if (reply.error.find("fault injected") != std::string::npos) return;
  const Action action = next_ < plan_.steps.size() ? step().action : Action::commit;
  if (!is_expected(reply.state, action))
    model_.differ("an unexpected error, " + reply.state + ": " + reply.error + " of: " + request_);
}

void Worker::next_step() {
  ++next_;
  phase_ = 0;
}

void Worker::abandon_plan() {
  next_ = plan_.steps.size();
  phase_ = 0;
}

// The transaction of the session has ended.
void Worker::end(bool committed) {
  if (transaction_) {
    model_.ended(transaction_, committed);
    ++shared_.transactions;
  }
  transaction_ = nullptr;
  savepoints_.clear();
  repair_ = Repair::none;
  for (size_t filter = 0; filter < kFilters.size(); ++filter)
    if (std::exchange(truncates_[filter], false)) --shared_.truncating[filter];
  if (std::exchange(counted_automatic_, false))
    --shared_.automatic[static_cast<size_t>(step().filter)];
}

void Worker::claimed(const Reply& reply) {
  std::vector<int> inserted;
  for (const auto& row : reply.rows) {
    inserted.push_back(std::stoi(row[0]));
    transaction_->xid = row[1];
  }
  model_.claimed(transaction_, step().filter, keys_, inserted, sent_);
}

// Events of model_block, in order: n5: key 5 was new; r5: it was a repeat; i: the inner block, with
// the last key, is undone; o: the outer block with all before it; e: an error was caught.
void Worker::replay_blocks(const Reply& reply) {
  const std::string& events = reply.rows.at(0).at(0);
  transaction_->xid = reply.rows[0][1];
  const size_t outer = transaction_->touched.size();
  size_t inner = outer;
  for (size_t at = 0; at < events.size();) {
    const char what = events[at++];
    const int key = atoi(events.c_str() + at);
    if (what == 'n' || what == 'r') {
      inner = transaction_->touched.size();
      model_.claimed(transaction_, step().filter, {key},
                     what == 'n' ? std::vector<int>{key} : std::vector<int>{}, sent_, false);
    }
    if (what == 'i') model_.roll_back_to(transaction_, inner);
    if (what == 'o') model_.roll_back_to(transaction_, outer);
    at = std::min(events.find(' ', at), events.size() - 1) + 1;
  }
}

// model_steps: "step I N": the I-th key has inserted N rows and committed; "undone I N": rolled
// back.
void Worker::on_notice(const std::string& text) {
  int index = 0, rows = 0;
  const bool step_done = sscanf(text.c_str(), "step %d %d", &index, &rows) == 2;
  if (!step_done && sscanf(text.c_str(), "undone %d %d", &index, &rows) != 2) return;
  if (static_cast<size_t>(index) > inner_.size()) return;
  model_.tick();
  shared_.note(number_, "< " + text);
  const TransactionPointer inner = inner_[static_cast<size_t>(index) - 1];
  const int key = step().keys[static_cast<size_t>(index) - 1];
  model_.claimed(inner, step().filter, {key}, rows > 0 ? std::vector<int>{key} : std::vector<int>{},
                 sent_);
  model_.ended(inner, step_done);
  told_ = static_cast<size_t>(index);
  ++shared_.transactions;
}

// A procedure that was cancelled or lost may have committed a key without saying so.
void Worker::finish_procedure(const Reply& reply) {
  for (size_t i = told_; i < inner_.size(); ++i) {
    const bool unsure = i == told_ && (reply.lost || reply.state == "57014");
    if (unsure)
      shared_.unknown.push_back({Unknown::Kind::automatic, inner_[i], true, step().filter});
    else
      model_.ended(inner_[i], false);
  }
  inner_.clear();
}

void Worker::handle(const Reply& reply) {
  if (repair_ == Repair::rollback) {
    end(false);
    abandon_plan();
    return;
  }
  if (repair_ == Repair::roll_back_to) {
    repair_ = Repair::none;
    model_.roll_back_to(transaction_, savepoints_.back());
    next_step();
    return;
  }
  switch (step().action) {
    case Action::insert:
    case Action::seen:
    case Action::claim:
      claimed(reply);
      if (transaction_->automatic) end(true);
      break;
    case Action::copy:
      if (phase_++ == 0) return;
      claimed(reply);
      break;
    case Action::block: replay_blocks(reply); break;
    case Action::procedure:
      finish_procedure(reply);
      end(true);
      break;
    case Action::test:
      for (const auto& row : reply.rows)
        model_.tested(transaction_, step().filter, std::stoi(row[0]), row[1] == "t", sent_);
      break;
    case Action::look: {
      if (plan_.strict) break;  // it reads an old snapshot
      std::map<int, std::pair<int, bool>> found;
      for (const auto& row : reply.rows)
        found[std::stoi(row[0])] = {std::stoi(row[1]), row[2] == "t"};
      for (const int key : keys_) {
        const auto [rows, known] = found.contains(key) ? found[key] : std::pair(0, false);
        model_.looked(transaction_, step().filter, key, rows, known, sent_);
      }
      break;
    }
    case Action::remove:
      if (phase_ == 0) {
        deleted_.clear();
        for (const auto& row : reply.rows) {
          deleted_[std::stoi(row[0])] = std::stoull(row[2]);
          transaction_->xid = row[1];
        }
        if (!deleted_.empty() && !spec_of(step().filter).follows) {
          phase_ = 1;
          return;
        }
      }
      for (const auto& [key, victim] : deleted_)
        model_.removed(transaction_, step().filter, key, victim);
      deleted_.clear();
      break;
    case Action::truncate:
      transaction_->xid = reply.rows.back()[1];
      model_.truncated(transaction_, step().filter);
      break;
    case Action::savepoint: savepoints_.push_back(transaction_->touched.size()); break;
    case Action::roll_back_to: model_.roll_back_to(transaction_, savepoints_.back()); break;
    case Action::release: savepoints_.pop_back(); break;
    case Action::resize: ++shared_.counts["resizes"]; break;
    case Action::commit: end(reply.tag == "COMMIT"); break;
    case Action::rollback: end(false); break;
    case Action::prepare:
      if (reply.tag == "PREPARE TRANSACTION") {
        const TransactionPointer transaction = transaction_;
        transaction_ = nullptr;
        end(true);
        transaction->exposed = false;
        model_.prepared(transaction);
        shared_.prepared.push_back(transaction);
        ++shared_.counts["prepared"];
      } else {
        end(false);
      }
      break;
    case Action::finish:
      model_.ended(finishing_, finish_commits_);
      finishing_ = nullptr;
      ++shared_.transactions;
      break;
    default: break;
  }
  next_step();
}

void Worker::handle_failure(const Reply& reply) {
  const Action action = next_ < plan_.steps.size() ? step().action : Action::commit;
  if (finishing_ && reply.state == "57014") {  // it may have ended before the cancel arrived
    shared_.unknown.push_back(
        {Unknown::Kind::finish, std::exchange(finishing_, nullptr), finish_commits_});
    next_step();
    return;
  }
  if (finishing_) {  // still prepared
    model_.prepared(finishing_);
    finishing_->exposed = false;
    shared_.prepared.push_back(std::exchange(finishing_, nullptr));
    next_step();
    return;
  }
  if (action == Action::procedure) {
    finish_procedure(reply);
    end(false);
    next_step();
    return;
  }
  if (!connection_.in_failed_transaction() &&
      !connection_.in_transaction()) {  // the cancel ended it
    end(false);
    abandon_plan();
    return;
  }
  const bool usual = is_claim(action) || (action >= Action::copy && action <= Action::rate) ||
                     action == Action::sleep || (action >= Action::alter && action <= Action::save);
  const bool recovers = plan_.recovers && usual && !savepoints_.empty() &&
                        repair_ == Repair::none && connection_.in_failed_transaction();
  repair_ = recovers ? Repair::roll_back_to : Repair::rollback;
}

void Worker::lose() {
  shared_.note(number_, "connection lost");
  const pid_t backend = process();
  connection_.close();
  begin_.clear();
  // Until the session is gone, its transaction counts for others.
  for (int i = 0; i < 50'000 && !is_gone(backend); ++i) {
    if (i % 100 == 99) shared_.let_go();
    usleep(200);
  }
  const Action action = next_ < plan_.steps.size() ? step().action : Action::begin;
  const bool repairs = repair_ != Repair::none;
  if (finishing_) {
    shared_.unknown.push_back({Unknown::Kind::finish, finishing_, finish_commits_});
    finishing_ = nullptr;
  } else if (!inner_.empty()) {
    Reply reply;
    reply.lost = true;
    finish_procedure(reply);
  } else if (transaction_ && !repairs && (transaction_->automatic || action == Action::commit)) {
    const auto kind = transaction_->automatic ? Unknown::Kind::automatic : Unknown::Kind::commit;
    shared_.unknown.push_back({kind, transaction_, true, step().filter});
    transaction_ = nullptr;
  } else if (transaction_ && !repairs && action == Action::prepare) {
    shared_.unknown.push_back({Unknown::Kind::prepare, transaction_});
    transaction_ = nullptr;
  }
  end(false);
  abandon_plan();
  disturb_at_.reset();
}

}  // namespace checker
