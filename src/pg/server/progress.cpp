#include "pg/server/postgres.hpp"

extern "C" {
#include "catalog/pg_authid.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/procarray.h"
#include "storage/shmem.h"
#include "storage/spin.h"
#include "utils/acl.h"
#include "utils/timestamp.h"
}

#include "pg/server/monotonic.hpp"
#include "pg/server/named_row.hpp"
#include "pg/server/progress.hpp"

namespace streamfilter::pg {

// Current work of a session. Only its owner writes it.
struct ProgressPlace {
  slock_t lock;
  Command command;  // none: no work
  int pid;
  Oid database, role, filter;
  uint64 done, total;
  int64 phase_start;
  char phase[32], unit[16];
};

namespace {

constexpr const char* kCommands[] = {nullptr,  "distinct", "evaluate", "profile", "restore",
                                     "resize", "warm",     "advise",   "settle"};
constexpr int64 kQuiet = 2 * USECS_PER_SEC;     // before the first notice
constexpr int64 kInterval = 5 * USECS_PER_SEC;  // between notices

ProgressPlace* places = nullptr;

// nullptr: the library is not preloaded, or this process has no place.
ProgressPlace* own_place() {
  if (places == nullptr || SF_MY_BACKEND < 0 || SF_MY_BACKEND >= MaxBackends) return nullptr;
  return &places[SF_MY_BACKEND];
}

void show(const ProgressPlace& what) {
  ProgressPlace* place = own_place();
  if (place == nullptr) return;
  SpinLockAcquire(&place->lock);
  place->command = what.command;
  place->pid = what.pid;
  place->database = what.database;
  place->role = what.role;
  place->filter = what.filter;
  place->done = what.done;
  place->total = what.total;
  place->phase_start = what.phase_start;
  memcpy(place->phase, what.phase, sizeof place->phase);
  memcpy(place->unit, what.unit, sizeof place->unit);
  SpinLockRelease(&place->lock);
}

ProgressPlace read_place(ProgressPlace* place) {
  SpinLockAcquire(&place->lock);
  const ProgressPlace copy = *place;
  SpinLockRelease(&place->lock);
  return copy;
}

}  // namespace

// Work to show again when the inner work ends.
struct Outer {
  MemoryContextCallback callback;
  bool ended;
  ProgressPlace place;
};

namespace {

void show_outer(void* arg) {
  auto* outer = static_cast<Outer*>(arg);
  if (!outer->ended) show(outer->place);
  outer->ended = true;
}

}  // namespace

Progress::Progress(Command command, Oid filter, const char* title)
    : title_(title), start_(monotonic_us()), next_(start_ + kQuiet) {
  ProgressPlace* place = own_place();
  if (place == nullptr) return;
  auto* outer = static_cast<Outer*>(palloc0(sizeof(Outer)));
  outer->callback.func = show_outer;
  outer->callback.arg = outer;
  outer->place = read_place(place);
  if (outer->place.pid != MyProcPid) outer->place.command = Command::none;
  MemoryContextRegisterResetCallback(CurrentMemoryContext, &outer->callback);
  outer_ = outer;
  ProgressPlace own{};
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
  place->done = 0;
  place->total = total;
  place->phase_start = phase_start_;
  strlcpy(place->phase, phase, sizeof place->phase);
  strlcpy(place->unit, unit, sizeof place->unit);
  SpinLockRelease(&place->lock);
}

void Progress::advance(uint64 count) {
  CHECK_FOR_INTERRUPTS();
  ProgressPlace* place = own_place();
  if (place == nullptr) return;
  SpinLockAcquire(&place->lock);
  place->done += count;
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

namespace {

double left_of(uint64 done, uint64 total, int64 start, int64 now) {
  const double each = static_cast<double>(now - start) / static_cast<double>(done);
  return static_cast<double>(total - done) * each / USECS_PER_SEC;
}

}  // namespace

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
    const ProgressPlace place = read_place(&places[i]);
    if (place.command == command && place.filter == filter && place.database == MyDatabaseId &&
        place.done > 0 && place.done <= place.total && BackendPidGetProc(place.pid) != nullptr)
      return left_of(place.done, place.total, place.phase_start, monotonic_us());
  }
  return -1;
}

void request_progress() {
  RequestAddinShmemSpace(mul_size(sizeof(ProgressPlace), static_cast<Size>(MaxBackends)));
}

void start_progress() {
  bool found;
  places = static_cast<ProgressPlace*>(
      ShmemInitStruct("streamfilter progress",
                      mul_size(sizeof(ProgressPlace), static_cast<Size>(MaxBackends)), &found));
  if (found) return;
  memset(static_cast<void*>(places), 0, sizeof(ProgressPlace) * MaxBackends);
  for (int i = 0; i < MaxBackends; ++i) SpinLockInit(&places[i].lock);
}

}  // namespace streamfilter::pg

using namespace streamfilter::pg;

// streamfilter_show_progress(): the rows of view streamfilter_progress. As in pg_stat_activity,
// other roles see only that a session is at work.
SF_FUNCTION(streamfilter_show_progress) {
  ReturnSetInfo* set = begin_rows(fcinfo);
  for (int i = 0; places != nullptr && i < MaxBackends; ++i) {
    const ProgressPlace place = read_place(&places[i]);
    if (place.command == Command::none || place.database != MyDatabaseId ||
        BackendPidGetProc(place.pid) == nullptr)
      continue;
    NamedRow row(set->setDesc);
    row.put("pid", Int32GetDatum(place.pid));
    if (has_privs_of_role(GetUserId(), place.role) ||
        has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS)) {
      row.put("command", kCommands[static_cast<int>(place.command)]);
      if (OidIsValid(place.filter)) row.put("filter", ObjectIdGetDatum(place.filter));
      row.put("phase", place.phase);
      row.put_count("done", place.done);
      if (place.total > 0) row.put_count("total", place.total);
      row.put("unit", place.unit);
    }
    row.add_to(set);
  }
  return static_cast<Datum>(0);
}
