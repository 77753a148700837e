// The points at which sessions can be stopped or killed, in a library built with FAULTS=1
// (src/pg/server/fault_points.hpp). With another library nothing happens.
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

  // Connects to a new or restarted server. Empty: its library has no such points.
  void connect(const std::string& conninfo);
  bool are_there() const { return connection_.is_open(); }

  // Now and then stops a session somewhere, and lets it go a few milliseconds later.
  void play(std::map<std::string, uint64_t>& counts);
  // Kills the next session that reaches some point.
  std::string arm_kill();
  void pass_all();

 private:
  void set(const std::string& point, const std::string& action);

  using Clock = std::chrono::steady_clock;
  Random random_;
  Connection connection_;  // of its own: sessions that call the functions pass all points
  std::string stopped_;
  std::set<std::string> armed_;  // points where not all sessions pass
  Clock::time_point next_ = Clock::now();
};

}  // namespace checker
