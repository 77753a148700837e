// A standby beside the primary: copied, followed, waited for, and promoted when the primary has
// died.
#pragma once

#include <memory>
#include <string>

#include "server.hpp"
#include "session.hpp"

namespace checker {

class Standby {
 public:
  enum class Phase { none, copying, following, synchronous };

  // From `primary`, while it works.
  void begin(const Server& primary, std::string bindir, std::string directory, int port);
  // Goes on to the next phase if it is time.
  void step(Connection& monitor, uint64_t transactions);
  Phase phase() const { return phase_; }
  Server& server() { return *server_; }
  // Waits until all is replayed that the primary has; false: it does not come.
  bool catch_up(Connection& monitor);
  // The standby becomes a server like any other.
  std::unique_ptr<Server> take();
  // The primary no longer waits for it.
  void discard(const Server* primary);
  // Synchronous for so long that all acknowledged commits have arrived.
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
