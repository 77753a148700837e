#include "standby.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace checker {

void Standby::begin(const Server& primary, std::string bindir, std::string directory, int port) {
  server_ = std::make_unique<Server>(std::move(bindir), std::move(directory), port);
  primary_ = &primary;
  copying_ = server_->begin_copy_of(primary);
  phase_ = Phase::copying;
}

void Standby::step(Connection& monitor, uint64_t transactions) {
  const char* const follows =
      "SELECT count(*) FROM pg_stat_replication WHERE application_name = 'walreceiver'";
  int status = 0;
  if (phase_ == Phase::copying && waitpid(copying_, &status, WNOHANG) == copying_) {
    copying_ = 0;
    if (status != 0) {
      discard(primary_);
      return;
    }
    server_->start();
    phase_ = Phase::following;
    primary_->append_setting("synchronous_standby_names = '*'");
    primary_->reload();
  }
  if (phase_ == Phase::following) {
    const Reply reply = monitor.ask(std::string(follows) + " AND sync_state = 'sync'");
    if (reply.rows.empty() || reply.rows[0][0] != "1") return;
    phase_ = Phase::synchronous;
    synchronous_at_ = transactions;
  }
}

bool Standby::catch_up(Connection& monitor) {
  const Reply position = monitor.ask("SELECT pg_current_wal_flush_lsn()");
  Connection reader;
  if (position.rows.empty() || !reader.open(server_->conninfo())) return false;
  for (int tries = 0; tries < 15000; ++tries) {
    const Reply reply =
        reader.ask("SELECT pg_last_wal_replay_lsn() >= '" + position.rows[0][0] + "'");
    if (!reply.rows.empty() && reply.rows[0][0] == "t") return true;
    usleep(2000);
  }
  return false;
}

std::unique_ptr<Server> Standby::take() {
  phase_ = Phase::none;
  server_->promote();
  return std::move(server_);
}

void Standby::discard(const Server* primary) {
  if (copying_ != 0) {
    kill(copying_, SIGKILL);
    waitpid(copying_, nullptr, 0);
    copying_ = 0;
  }
  if (primary != nullptr) primary->append_setting("synchronous_standby_names = ''");
  if (primary != nullptr && primary->is_running()) primary->reload();
  server_.reset();
  phase_ = Phase::none;
}

}  // namespace checker
