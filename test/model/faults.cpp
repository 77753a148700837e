#include "faults.hpp"

#include <utility>

namespace checker {
namespace {

constexpr const char* kPoints[] = {"pre_commit",    "marking",      "committed",    "applied",
                                   "resolve",       "load",         "restore",      "replay",
                                   "restore_range", "save",         "resize_slice", "resize_copied",
                                   "resize_saved",  "resize_locked"};
// An error at these points only fails the statement of the session.
constexpr const char* kMayFail[] = {
    "pre_commit", "load",         "restore",       "replay",       "restore_range",
    "save",       "resize_slice", "resize_copied", "resize_saved", "resize_locked"};

template <size_t kCount>
const char* draw(Random& random, const char* const (&names)[kCount]) {
  return names[random.below(static_cast<int>(kCount))];
}

}  // namespace

void Faults::connect(const std::string& conninfo) {
  connection_.close();
  stopped_.clear();
  armed_.clear();
  if (!connection_.open(conninfo)) return;
  const Reply reply = connection_.ask(R"(
    CREATE OR REPLACE FUNCTION pg_temp.streamfilter_fault(point text, action text) RETURNS void
      AS '$libdir/streamfilter' LANGUAGE C STRICT VOLATILE)");
  if (!reply.state.empty()) connection_.close();
}

void Faults::set(const std::string& point, const std::string& action) {
  if (action == "pass")
    armed_.erase(point);
  else
    armed_.insert(point);
  connection_.ask("SELECT pg_temp.streamfilter_fault('" + point + "', '" + action + "')");
}

void Faults::play(std::map<std::string, uint64_t>& counts) {
  if (!are_there() || Clock::now() < next_) return;
  if (!stopped_.empty()) {
    set(std::exchange(stopped_, ""), "pass");
    next_ = Clock::now() + std::chrono::microseconds(random_.between(0, 40'000));
  } else if (random_.chance(0.05)) {
    set(draw(random_, kMayFail), "fail");
    ++counts["fault points that failed"];
  } else {
    stopped_ = draw(random_, kPoints);
    set(stopped_, "stop");
    ++counts["stops at fault points"];
    next_ = Clock::now() + std::chrono::microseconds(random_.between(100, 20'000));
  }
}

std::string Faults::arm_kill() {
  const std::string point = draw(random_, kPoints);
  pass_all();
  set(point, "kill");
  return point;
}

void Faults::pass_all() {
  stopped_.clear();
  for (const std::string& point : std::exchange(armed_, {})) set(point, "pass");
}

}  // namespace checker
