#include "pg/server/postgres.hpp"

#ifdef STREAMFILTER_FAULTS
extern "C" {
#include <signal.h>
}

#include "pg/server/fault_points.hpp"
#include "pg/server/no_raise.hpp"

namespace streamfilter::pg {
namespace {

constexpr const char* kPoints[] = {
    "pre_commit", "commit_wait",      "marking",       "logged",         "committed",
    "applied",    "resolve",          "resolving",     "load",           "restore",
    "replay",     "restore_range",    "save",          "judge",          "grow",
    "lookup",     "resize_slice",     "resize_copied", "resize_saved",   "resize_locked",
    "diverted",   "settle_confirmed", "settle_taken",  "settle_restored"};
constexpr const char* kActions[] = {"pass", "stop", "fail", "kill", "skip"};
enum class Action : uint32 { pass, stop, fail, kill, skip };
constexpr int kLongestStop = 60'000;  // ms

struct Point {
  pg_atomic_uint32 action;
  pg_atomic_uint32 skipped;   // so many times more it is passed before the action
  pg_atomic_uint32 standing;  // pid of the session that has stopped; 0: none
};
Point* points = nullptr;
bool directs = false;  // this session has called a function below, and passes all points

bool is_point_skipped(Point* point) {
  uint32 times = pg_atomic_read_u32(&point->skipped);
  while (times > 0)
    if (pg_atomic_compare_exchange_u32(&point->skipped, &times, times - 1)) return true;
  return false;
}

Action action_at(Point* point) { return static_cast<Action>(pg_atomic_read_u32(&point->action)); }

void stop(Point* point) {
  uint32 nobody = 0;
  if (!pg_atomic_compare_exchange_u32(&point->standing, &nobody, static_cast<uint32>(MyProcPid)))
    return;
  for (int i = 0; i < kLongestStop && action_at(point) == Action::stop; ++i) {
    pg_usleep(1000);
    if (!NoRaise::is_marked()) CHECK_FOR_INTERRUPTS();
  }
  pg_atomic_write_u32(&point->standing, 0);
  // Takes invalidations, like every lock does: an object dropped meanwhile leaves the caches.
  if (point == &points[static_cast<int>(FaultPoint::lookup)]) AcceptInvalidationMessages();
}

template <size_t kCount>
int index_of_name(const char* const (&names)[kCount], const text* name) {
  const char* wanted = text_to_cstring(name);
  for (size_t i = 0; i < kCount; ++i)
    if (strcmp(names[i], wanted) == 0) return static_cast<int>(i);
  ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("unknown: \"%s\"", wanted));
}

Point* point_named(const text* name) {
  if (points == nullptr) elog(ERROR, "streamfilter is not preloaded");
  directs = true;
  return &points[index_of_name(kPoints, name)];
}

}  // namespace

void stop_at(FaultPoint point) {
  if (points == nullptr || directs) return;
  Point* at = &points[static_cast<int>(point)];
  const Action action = action_at(at);
  if (action == Action::pass || is_point_skipped(at)) return;
  switch (action) {
    case Action::pass:
    case Action::skip: break;
    case Action::stop:
      stop(at);
      if (action_at(at) != Action::fail) break;
      [[fallthrough]];
    case Action::fail:
      pg_atomic_write_u32(&at->action, static_cast<uint32>(Action::pass));
      ereport(ERROR, errmsg("fault injected at %s", kPoints[static_cast<int>(point)]));
      break;
    case Action::kill: kill(MyProcPid, SIGKILL); break;
  }
}

void request_fault_points() { RequestAddinShmemSpace(sizeof(Point) * lengthof(kPoints)); }

void start_fault_points() {
  if (!attach_shared(points, "streamfilter fault points", sizeof(Point) * lengthof(kPoints)))
    return;
  for (size_t i = 0; i < lengthof(kPoints); ++i) {
    pg_atomic_init_u32(&points[i].action, static_cast<uint32>(Action::pass));
    pg_atomic_init_u32(&points[i].skipped, 0);
    pg_atomic_init_u32(&points[i].standing, 0);
  }
}

}  // namespace streamfilter::pg

using namespace streamfilter::pg;

SF_FUNCTION(streamfilter_fault) {
  Point* point = point_named(PG_GETARG_TEXT_PP(0));
  const int action = index_of_name(kActions, PG_GETARG_TEXT_PP(1));
  if (static_cast<Action>(action) == Action::skip) {
    pg_atomic_fetch_add_u32(&point->skipped, 1);
    PG_RETURN_VOID();
  }
  if (static_cast<Action>(action) == Action::pass) pg_atomic_write_u32(&point->skipped, 0);
  pg_atomic_write_u32(&point->action, static_cast<uint32>(action));
  PG_RETURN_VOID();
}

SF_FUNCTION(streamfilter_fault_reached) {
  Point* point = point_named(PG_GETARG_TEXT_PP(0));
  const double most = Min(PG_GETARG_FLOAT8(1) * 1000, kLongestStop);
  for (int i = 0; i < most && pg_atomic_read_u32(&point->standing) == 0; ++i) {
    pg_usleep(1000);
    CHECK_FOR_INTERRUPTS();
  }
  PG_RETURN_BOOL(pg_atomic_read_u32(&point->standing) != 0);
}
#endif
