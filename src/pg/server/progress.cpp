#include "pg/server/postgres.hpp"

extern "C" {
#include "catalog/pg_authid.h"
#include "storage/spin.h"
}

#include "pg/server/monotonic.hpp"
#include "pg/server/progress.hpp"

namespace streamfilter::pg {

// Current work of a session.
struct SessionWork {
  Command command;  // none: no work
  int pid;
  Oid database, role, filter;
  uint64 done, total;
  int64 phase_start;
  char phase[32], unit[16];
};

// Only its owner writes it.
struct ProgressPlace {
  slock_t lock;
  SessionWork work;
};

namespace {

constexpr const char* kCommands[] = {nullptr,  "distinct", "evaluate", "profile", "restore",
                                     "resize", "warm",     "advise",   "settle"};
constexpr int64 kQuiet = 2 * USECS_PER_SEC;     // before the first notice
constexpr int64 kInterval = 5 * USECS_PER_SEC;  // between notices

ProgressPlace* places = nullptr;

Size bytes_of_places() { return mul_size(sizeof(ProgressPlace), static_cast<Size>(MaxBackends)); }

// nullptr: the library is not preloaded, or this process has no place.
ProgressPlace* own_place() {
  if (places == nullptr || SF_MY_BACKEND < 0 || SF_MY_BACKEND >= MaxBackends) return nullptr;
  return &places[SF_MY_BACKEND];
}

void show(const SessionWork& work) {
  ProgressPlace* place = own_place();
  if (place == nullptr) return;
  SpinLockAcquire(&place->lock);
  place->work = work;
  SpinLockRelease(&place->lock);
}

SessionWork work_at(ProgressPlace* place) {
  SpinLockAcquire(&place->lock);
  const SessionWork copy = place->work;
  SpinLockRelease(&place->lock);
  return copy;
}

}  // namespace

// Work to show again when the inner work ends.
struct Outer {
  MemoryContextCallback callback;
  bool ended;
  SessionWork work;
};

static void show_outer(void* arg) {
  auto* outer = static_cast<Outer*>(arg);
  if (!outer->ended) show(outer->work);
  outer->ended = true;
}

Progress::Progress(Command command, Oid filter, const char* title)
    : title_(title), start_(monotonic_us()), next_(start_ + kQuiet) {
  ProgressPlace* place = own_place();
  if (place == nullptr) return;
  auto* outer = allocate_zeros<Outer>();
  outer->callback.func = show_outer;
  outer->callback.arg = outer;
  outer->work = work_at(place);
  if (outer->work.pid != MyProcPid) outer->work.command = Command::none;
  MemoryContextRegisterResetCallback(CurrentMemoryContext, &outer->callback);
  outer_ = outer;
  SessionWork own{};
  own.command = command;
  own.pid = MyProcPid;
  own.database = MyDatabaseId;
  own.role = GetUserId();
  own.filter = filter;
  show(own);
}

void Progress::begin(const char* phase, uint64 total, const char* unit) {
  total_ = total;
  done_ = 0;
  phase_start_ = monotonic_us();
  ProgressPlace* place = own_place();
  if (place == nullptr) return;
  SpinLockAcquire(&place->lock);
  SessionWork& work = place->work;
  work.done = 0;
  work.total = total;
  work.phase_start = phase_start_;
  strlcpy(work.phase, phase, sizeof work.phase);
  strlcpy(work.unit, unit, sizeof work.unit);
  SpinLockRelease(&place->lock);
}

void Progress::advance(uint64 count) {
  CHECK_FOR_INTERRUPTS();
  ProgressPlace* place = own_place();
  if (place == nullptr) return;
  SpinLockAcquire(&place->lock);
  place->work.done += count;
  SpinLockRelease(&place->lock);
}

void Progress::end() {
  if (outer_ != nullptr) show_outer(outer_);
}

bool Progress::is_notice_due(int64 now) {
  if (now < next_) return false;
  next_ = now + kInterval;
  return true;
}

static double left_of(uint64 done, uint64 total, int64 start, int64 now) {
  const double each = static_cast<double>(now - start) / static_cast<double>(done);
  return static_cast<double>(total - done) * each / USECS_PER_SEC;
}

double Progress::left(int64 now) const { return left_of(done_, total_, phase_start_, now); }

void Progress::add(uint64 count) {
  advance(count);
  rows_ += count;
  done_ += count;
  const int64 now = monotonic_us();
  if (!is_notice_due(now)) return;
  const double seconds = static_cast<double>(now - start_) / USECS_PER_SEC;
  if (total_ <= done_) {
    ereport(NOTICE, (errmsg("%s: " UINT64_FORMAT " rows read in %.0f s", title_, rows_, seconds)));
    return;
  }
  ereport(NOTICE, (errmsg("%s: " UINT64_FORMAT " rows read in %.0f s, about %.0f s left", title_,
                          rows_, seconds, left(now))));
}

void Progress::add_bytes(uint64 count) {
  constexpr uint64 kMegabyte = 1024 * 1024;
  advance(count);
  done_ += count;
  const int64 now = monotonic_us();
  if (total_ <= done_ || !is_notice_due(now)) return;
  ereport(NOTICE, (errmsg("%s: " UINT64_FORMAT " of " UINT64_FORMAT " MB copied, about %.0f s left",
                          title_, done_ / kMegabyte, total_ / kMegabyte, left(now))));
}

double seconds_left(Command command, Oid filter) {
  for (int i = 0; places != nullptr && i < MaxBackends; ++i) {
    const SessionWork work = work_at(&places[i]);
    if (work.command == command && work.filter == filter && work.database == MyDatabaseId &&
        work.done > 0 && work.done <= work.total && BackendPidGetProc(work.pid) != nullptr)
      return left_of(work.done, work.total, work.phase_start, monotonic_us());
  }
  return -1;
}

void request_progress() { RequestAddinShmemSpace(bytes_of_places()); }

void start_progress() {
  if (!attach_shared(places, "streamfilter progress", bytes_of_places())) return;
  memset(static_cast<void*>(places), 0, bytes_of_places());
  for (int i = 0; i < MaxBackends; ++i) SpinLockInit(&places[i].lock);
}

// streamfilter_show_progress(): the rows of view streamfilter_progress. As in pg_stat_activity,
// other roles see only that a session is at work.
SF_FUNCTION(streamfilter_show_progress) {
  ReturnSetInfo* set = begin_rows(fcinfo);
  for (int i = 0; places != nullptr && i < MaxBackends; ++i) {
    const SessionWork work = work_at(&places[i]);
    if (work.command == Command::none || work.database != MyDatabaseId ||
        BackendPidGetProc(work.pid) == nullptr)
      continue;
    NamedRow row(set->setDesc);
    row.put("pid", Int32GetDatum(work.pid));
    if (has_privs_of_role(GetUserId(), work.role) ||
        has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS)) {
      row.put("command", kCommands[static_cast<int>(work.command)]);
      if (OidIsValid(work.filter)) row.put("filter", ObjectIdGetDatum(work.filter));
      row.put("phase", work.phase);
      row.put_count("done", work.done);
      if (work.total > 0) row.put_count("total", work.total);
      row.put("unit", work.unit);
    }
    row.add_to(set);
  }
  return static_cast<Datum>(0);
}

}  // namespace streamfilter::pg
