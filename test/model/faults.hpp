// The points at which sessions can be stopped or killed, in a library built with FAULTS=1
// (src/pg/server/fault_points.hpp); without them it does nothing.
#pragma once

#include <chrono>
#include <map>
#include <set>
#include <string>

#include "random.hpp"
#include "session.hpp"

namespace checker {

class Faults {
 public:
  explicit Faults(uint64_t seed) : random_(seed, 2) {}

  // A new server, or one that was restarted. Empty: the library has no points.
  void connect(const std::string& conninfo);
  bool are_there() const { return connection_.is_open(); }

  // Stops a session somewhere now and then, and lets it go a few milliseconds later.
  void play(std::map<std::string, uint64_t>& counts);
  // The next session that gets to some point is killed by it.
  std::string arm_kill();
  void pass_all();

 private:
  void set(const std::string& point, const std::string& action);

  using Clock = std::chrono::steady_clock;
  Random random_;
  Connection connection_;  // of its own: a session that calls the functions passes everywhere
  std::string stopped_;
  std::set<std::string> armed_;  // where not everybody passes
  Clock::time_point next_ = Clock::now();
};

}  // namespace checker
