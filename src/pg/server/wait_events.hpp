// Wait events for pg_stat_activity.wait_event: by name since PostgreSQL 17, as `Extension` before.
#pragma once

namespace streamfilter::pg {

enum class Wait : uint8 {
  load,      // StreamfilterLoad: another session restores the filter's state
  commits,   // StreamfilterCommits: transactions that must end before an image is written
  connect,   // StreamfilterConnect: the next attempt to reach a server
  remote,    // StreamfilterRemote: another server's answer
  grow,      // StreamfilterGrow: another session takes memory for keys in flight
  arrivals,  // StreamfilterArrivals: COMMIT waits for an earlier transaction with the same keys
  resize,    // StreamfilterResize: transactions that must end before a filter changes its size
  prepared,  // StreamfilterPrepared: another session ends a prepared transaction
  memory,    // StreamfilterMemory: the system takes memory back before it is needed again
};

// For WaitLatch and the like. Never raises.
uint32 wait_event(Wait what);

// Gives way to interrupts after so many ms, or when the latch is set. May raise.
void pause(long ms, uint32 event);

// Called by every process that attaches to shared memory.
void start_wait_events();

}  // namespace streamfilter::pg
