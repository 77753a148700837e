#include "pg/server/postgres.hpp"

#include "pg/server/wait_events.hpp"

namespace streamfilter::pg {
constexpr const char* kNames[] = {
    "StreamfilterLoad",   "StreamfilterCommits",  "StreamfilterConnect",
    "StreamfilterRemote", "StreamfilterGrow",     "StreamfilterArrivals",
    "StreamfilterResize", "StreamfilterPrepared", "StreamfilterMemory"};
static uint32 events[lengthof(kNames)];  // 0: without a name

uint32 wait_event(Wait what) {
  const uint32 named = events[static_cast<int>(what)];
  return named != 0 ? named : PG_WAIT_EXTENSION;
}

void pause(long ms, uint32 event) {
  const int happened =
      WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, ms, event);
  if (happened & WL_LATCH_SET) ResetLatch(MyLatch);
  CHECK_FOR_INTERRUPTS();
}

void start_wait_events() {
  for (size_t i = 0; i < lengthof(kNames); ++i) events[i] = SF_NEW_WAIT_EVENT(kNames[i]);
}

}  // namespace streamfilter::pg
