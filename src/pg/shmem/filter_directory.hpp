// Filters in shared memory: the directory of slots, and where their bytes lie.
#pragma once

extern "C" {
#include "access/xlogdefs.h"
#include "datatype/timestamp.h"
#include "port/atomics.h"
#include "storage/condition_variable.h"
#include "storage/lwlock.h"
}

#include <bit>

#include "core/filter/filter.hpp"
#include "pg/server/hooks.hpp"
#include "pg/shmem/memory_region.hpp"
#include "pg/shmem/state_copy.hpp"
#include "pg/shmem/statistics.hpp"

namespace streamfilter::pg {

enum class SlotState : uint8 {
  free,
  building,  // its bytes are being written by `owner`; others wait
  pending,   // belongs to a definition that transaction of `owner` has not committed
  live,
  retired,  // of another geometry than the primary's: some may be reading it, nobody finds it
  emptied,  // nobody's, but the system has still to get its dynamic memory back
  copying,  // becomes the state of a live one in another size; nobody but `owner` finds it
  // Has the statistics of a filter that nobody has used since the start, and no block. It can be
  // taken, but after those that are free.
  counted,
};

// How the state of a filter is saved. The plain fields belong to the session that builds the slot
// or follows the log.
struct SavedState {
  // What ran at some time: the latest ids one by one, those of long transactions as ranges without
  // gaps.
  struct RunningXids {
    static constexpr uint32 kLatest = 32768, kRanges = 512;
    struct Range {
      TransactionId first, last;
    };
    TransactionId xmin, xmax;  // what is older than the one is done, from the other on not begun
    int count;                 // of ranges; -1: they did not fit
    Range ranges[kRanges];
    uint64 latest[kLatest / 64];  // by the distance from xmax - 1
  };

  bool logged;                  // as the definition was when the slot was last used
  int64 identity;               // of the rows of this state (identity_of); 0: not known yet
  char set_aside[160];          // why what is saved is not used; empty: it is, or there is nothing
  bool follows;                 // was filled on a standby: what is replayed must be played on it
  TimestampTz last_saved;       // 0: never
  TimestampTz restored;         // 0: it was not
  pg_atomic_uint32 has_header;  // a committed row of the log, or an image, tells the seed
  pg_atomic_uint32 epoch;       // changes when an image is taken
  pg_atomic_uint32 committing[2];  // transactions about to commit, by parity of the epoch
  pg_atomic_uint32 following;      // somebody follows the log
  pg_atomic_uint64 next_number;    // of a row of the log
  // Of the rows in the log, as tuples (StateScan, write_row): what committed transactions have
  // written since the last image, which takes off what it has found here. So neither a rollback
  // nor a crash in between leaves an error that grows.
  pg_atomic_uint64 log_bytes;
  pg_atomic_uint64 next_worker;  // when a worker may be started again, in monotonic_us()
  // On a standby: image and snapshot at the last look.
  TimestampTz image;
  XLogRecPtr replayed;
  RunningXids ran;
};

// What loss_estimate.hpp accumulates.
struct LossEstimate {
  static constexpr uint64 kUnknownOdds = std::bit_cast<uint64>(-1.0);

  pg_atomic_uint64 odds;       // a double: that a new row is discarded, not accepted
  pg_atomic_uint64 fill;       // a double: of the filter then
  pg_atomic_uint64 applied;    // FilterSlot::applied, and
  pg_atomic_uint64 accepted;   // RowCount::accepted, when that was looked up, and
  pg_atomic_uint64 looked_at;  // the time
  // Of the latest rows, how many there were, by the odds that a new one was accepted, and how many
  // were; both in units of 2^-16.
  pg_atomic_uint64 weight, fresh;
  pg_atomic_uint64 passing;  // a double: slices above this rate discard nothing; 0: all do
};

// No two of them share a cache line, nor do what every row reads and what is counted.
struct alignas(PG_CACHE_LINE_SIZE) FilterSlot {
  SlotState state;
  Oid database;  // this and `relation`: set by enter_slot
  Oid relation;
  Oid server;
  bool is_moved;     // it holds a slice that has come from another server (note_moved)
  int owner;         // pid, for building, pending and copying
  uint64 signature;  // FilterRelation::signature it was built for
  uint32 asked;  // 32 bits of asked_signature, which outlive a change of derivations; 0: unknown
  uint64 key_signature;  // of the columns its keys are hashed of; 0: not known yet
  uint64 generation;     // differs for every use of a slot
  Header* block;         // its bytes, at the same address in every process
  uint64 size;
  Place place;  // of the block
  bool zeroes;  // when the place was taken, it was of zeroes
  FilterSlot* next_in_bucket;
  FilterSlot *before_free, *after_free;
  FilterSlot* next_emptied;
  alignas(PG_CACHE_LINE_SIZE) Statistics stats;
  LossEstimate loss;
  pg_atomic_uint64 overfull_logged;  // the time when the log was last told of that
  pg_atomic_uint64 ahead_of_clock;   // the filter's time, in microseconds: that has gone back
  pg_atomic_uint64 unregistered;     // keys of unfinished transactions that are not in that table
  pg_atomic_uint64 applied;          // how often transactions have brought their changes in
  // Of a live one that is being restored: ranges of slices that are not there yet, as bits, those
  // that somebody waits for, and the pid of who restores it (missing_ranges.hpp).
  pg_atomic_uint64 missing, wanted;
  pg_atomic_uint32 restorer;
  // Transactions marked as arriving (arrivals.hpp) that add keys which the table in flight does not
  // have; that forget keys.
  pg_atomic_uint32 arriving_keys;
  pg_atomic_uint32 arriving_erasures;
  // Prepared transactions that have emptied, replaced or dropped it (prepared_transactions.hpp).
  pg_atomic_uint32 prepared_removals;
  pg_atomic_uint64
      exclusive_xact;  // full id of a transaction to wait for before adding any key, or 0
  pg_atomic_uint32 exclusive_wanted;  // others wait for it: it is asked to hand over
  SavedState saved;
  StateCopy copy;
};

constexpr int kMaxSegments = 32;

// Lies at the start of the shared memory; slots, buckets, then the arena, follow.
struct SharedState {
  LWLock* directory_lock;
  LWLockPadded* slice_locks;
  ConditionVariable built;  // some slot has left the state `building`
  uint64 next_generation;
  Region arena;
  Region dynamic;                      // nothing, where there is no dynamic memory
  Place segments[kMaxSegments];        // of dynamic memory, that are no filter's (take_segment)
  uint64 segments_in_use;              // bytes
  FilterSlot* first_emptied;           // whose memory no process is giving back yet
  uint64 emptied_bytes;                // of all that are emptied
  FilterSlot *first_free, *last_free;  // free, then counted
  int free_count;
  int moved_count;  // of those in use
  // Slots by database and relation, all but those that are free or emptied: chains, the older
  // first.
  FilterSlot** buckets;
  uint32 bucket_mask;
  int slot_count;  // of all_slots()
  FilterSlot slots[FLEXIBLE_ARRAY_MEMBER];
};

// streamfilter.max_filters, and those for moved slices.
int all_slots();

// nullptr until the library is preloaded and shared memory is there.
extern SharedState* shared_state;

// What else of the extension lies in shared memory, or starts with it. `request` is called by the
// postmaster, `start` by every process that attaches, under AddinShmemInitLock, and `ready` after
// all have started. nullptr: nothing.
struct SharedSection {
  void (*request)();
  void (*start)();
  void (*ready)();
};

// Called by _PG_init; the sections stay where they are.
void init_shared_state(const SharedSection* others, int count);

// Steps of hooks.
void request_shared_state(MemoryCall* call);
void start_shared_state(MemoryCall* call);

// Raises 55000 with a HINT if the library was not preloaded.
void require_shared_state();

inline Header* block_of(const FilterSlot* slot) { return slot->block; }

// The lock of one slice of a filter. A pool serves all filters, so two slices may share a lock:
// nobody may hold two at a time.
LWLock* slice_lock(const FilterSlot* slot, uint32 slice);

// Sets the counters of a slot, and what is known of its saved state, to those of a new one.
void reset_counters(FilterSlot* slot, TimestampTz now);

// Those down to free_slot need directory_lock. All slots of a relation, whatever their states:
FilterSlot* first_slot_of(Oid database, Oid relation);
FilterSlot* next_slot_of(const FilterSlot* slot);
FilterSlot* find_slot(Oid database, Oid relation, SlotState state);

inline bool is_in_use(const FilterSlot* slot) {
  return slot->state != SlotState::free && slot->state != SlotState::counted;
}

// A slot that is free, at need one that is `counted`; it stays so until enter_slot. nullptr: there
// is none.
FilterSlot* find_free_slot(bool for_moved);

// A slot in use holds a moved slice, which is no filter of this server: it does not count for
// streamfilter.max_filters.
void note_moved(FilterSlot* slot);

// Finds a place for its block: in the arena, else in dynamic memory, where back_slot sees to the
// pages. False: there is no room.
bool take_space(FilterSlot* slot, uint64 size);

// A place in dynamic memory, of whole pages, within its limit.
bool take_dynamic(Place* place, uint64 size);

// Makes a slot that is free or counted one of a relation.
void enter_slot(FilterSlot* slot, Oid database, Oid relation, SlotState state);

void free_slot(FilterSlot* slot);

// The state of its filter from now on, in place of the one before.
void make_live(FilterSlot* slot);

inline bool is_dynamic(const FilterSlot* slot) {
  return is_within(shared_state->dynamic, slot->place.start);
}

// Of a slot of this process: what is beyond so many bytes is free again. Takes directory_lock.
void shrink_slot(FilterSlot* slot, uint64 size);

// Makes sure that a block which was just found can be used, if it is in dynamic memory. Returns 0
// or an errno; `between` may raise.
int back_slot(const FilterSlot* slot, void (*between)());

// Bytes that the system has left for dynamic memory. Takes directory_lock.
uint64 dynamic_left();

// After free_slot: lets the system have the dynamic memory of slots that are emptied, through a
// worker if that takes long. Takes directory_lock. Cannot fail.
void give_back_slots();

// Helps, and waits until that is done. Takes directory_lock; may raise.
void wait_for_emptied();

// Its memory is the system's again. Needs directory_lock.
void free_emptied(FilterSlot* slot);

// Empties a large filter, which nobody else uses, by a block of dynamic memory in place of its own.
// Takes directory_lock. False: that is not cheaper, or cannot be done.
bool renew_block(FilterSlot* slot);

// Dynamic memory for what overflows, up to half of streamfilter.dynamic_memory for all together:
// `wanted` bytes, else half of that and so on, but not below `least`; of zeros, and *size is what
// it got. nullptr: there is no room. Takes directory_lock, and allocates: no other lock may be
// held. Raises nothing.
char* take_segment(uint64 wanted, uint64 least, uint64* size);

// Lets the system have it. Takes directory_lock. Cannot fail.
void give_back_segment(char* start);

// What filters may take, all databases together, in bytes.
struct MemoryUse {
  uint64 total;         // streamfilter.shared_memory and _dynamic_memory
  uint64 free;          // of both
  uint64 largest_free;  // in one piece
  uint64 dynamic;       // dynamic memory in use
  int slots_in_use;
};

// Takes directory_lock.
MemoryUse memory_use();

// For ereport: what to do where a filter does not fit.
int errhint_more_memory();

}  // namespace streamfilter::pg
