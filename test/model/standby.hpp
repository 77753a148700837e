// A standby beside the primary: created, followed, and promoted after the primary has died.
#pragma once

#include <memory>
#include <string>

#include "server.hpp"
#include "session.hpp"

namespace checker {

class Standby {
 public:
  enum class Phase { none, copying, following, synchronous };

  // Copies `primary` while it works.
  void begin(const Server& primary, std::string bindir, std::string directory, int port);
  // Begins the next phase when it is due.
  void step(Connection& monitor, uint64_t transactions);
  Phase phase() const { return phase_; }
  Server& server() { return *server_; }
  // Waits until the standby has replayed all WAL of the primary; false: it does not.
  bool catch_up(Connection& monitor);
  // Promotes the standby, which then is a server like any other.
  std::unique_ptr<Server> take();
  // The primary no longer waits for the standby.
  void discard(const Server* primary);
  // Synchronous for long enough: every acknowledged commit has arrived.
  bool is_ready(uint64_t transactions) const {
    return phase_ == Phase::synchronous && transactions >= synchronous_at_ + 1000;
  }

 private:
  Phase phase_ = Phase::none;
  std::unique_ptr<Server> server_;
  const Server* primary_ = nullptr;
  pid_t copying_ = 0;
  uint64_t synchronous_at_ = 0;
};

}  // namespace checker
