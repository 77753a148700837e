// What sessions wait for, as pg_stat_activity.wait_event shows it: by name since PostgreSQL 17, as
// `Extension` before.
#pragma once

namespace streamfilter::pg {

enum class Wait : uint8 {
  load,      // StreamfilterLoad: another session reads the filter's state back
  commits,   // StreamfilterCommits: transactions end before an image is taken
  connect,   // StreamfilterConnect: another server is tried again
  remote,    // StreamfilterRemote: another server is to answer
  grow,      // StreamfilterGrow: another session takes memory for keys in flight
  arrivals,  // StreamfilterArrivals: COMMIT waits for one of the same keys that came first
  resize,    // StreamfilterResize: transactions that use the filter end before it is another size
  memory,    // StreamfilterMemory: the system takes back what filters had, and room is needed
};

// For WaitLatch and its like. Never raises.
uint32 wait_event(Wait what);

// By every process that attaches shared memory.
void start_wait_events();

}  // namespace streamfilter::pg
