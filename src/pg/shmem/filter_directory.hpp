// Filters in shared memory: the directory of slots, and the places of their bytes.
#pragma once

extern "C" {
#include "access/xlogdefs.h"
#include "postmaster/bgworker.h"
#include "storage/condition_variable.h"
#include "storage/lwlock.h"
}

#include <bit>

#include "core/filter/filter.hpp"
#include "pg/server/hooks.hpp"
#include "pg/shmem/dynamic_memory.hpp"
#include "pg/shmem/trigger_counts.hpp"

namespace streamfilter::pg {

// docs/internals/architecture.md says which event leads from which state to which.
enum class SlotState : uint8 {
  free,
  // Has only statistics, of a filter that nobody has used since the start, and no block. It can be
  // taken when no slot is free.
  counted,
  building,  // `owner` is writing its bytes; others wait
  pending,   // its definition belongs to the uncommitted transaction of `owner`
  copying,   // becomes the state of a live one in another size; only `owner` finds it
  live,
  retired,  // has another geometry than the primary's: some sessions may read it, none finds it
  going,    // freed, but pinned, or the system does not yet have its dynamic memory back
};

// What is saved of a filter's state. Plain fields here and below belong to the session that builds
// the slot or follows the log.
struct SavedState {
  bool logged;                          // by the definition at the slot's last use
  mutable pg_atomic_uint32 has_header;  // a committed row of the log, or an image, has the seed
  int64 identity;                       // of this life (saved_definition.hpp)
  TimestampTz last_saved;               // 0: never
  TimestampTz restored;                 // 0: not restored
  int64 header;                         // number of the log's newest one at the last look
  pg_atomic_uint64 next_worker;         // when a worker may be started again, in monotonic_us()
};

// Sessions in the midst of something, by parity of a phase. Who must see the end of all that have
// begun waits for those of the phase before, whom a cancelled wait has left, begins another phase,
// and waits for those of the last one.
struct PhaseGate {
  pg_atomic_uint32 phase;
  pg_atomic_uint32 inside[2];
};

// Returns what leave_phase needs.
inline uint32 enter_phase(PhaseGate* gate) {
  // Either who waits later sees the count, or this loop sees the change of the phase.
  for (;;) {
    const uint32 phase = pg_atomic_read_u32(&gate->phase);
    pg_atomic_fetch_add_u32(&gate->inside[phase & 1], 1);
    if (pg_atomic_read_u32(&gate->phase) == phase) return phase;
    pg_atomic_fetch_sub_u32(&gate->inside[phase & 1], 1);
  }
}

inline void leave_phase(PhaseGate* gate, uint32 phase) {
  pg_atomic_fetch_sub_u32(&gate->inside[phase & 1], 1);
}

// `wait` returns when nobody is inside.
template <typename Wait>
void wait_for_phases(PhaseGate* gate, const Wait& wait) {
  const uint32 parity = pg_atomic_read_u32(&gate->phase) & 1;
  wait(&gate->inside[1 - parity]);
  pg_atomic_fetch_add_u32(&gate->phase, 1);
  wait(&gate->inside[parity]);
}

// Where transactions write to the log.
struct LogState {
  PhaseGate commits;                     // transactions about to commit: an image waits for them
  pg_atomic_uint32 last_page;            // with the filter's latest row (write_state_row)
  mutable pg_atomic_uint64 next_number;  // of the next row
  pg_atomic_uint64 count;                // StateVersion: the highest number of a committed row
  // Size of the rows, as tuples (StateScan, write_state_row), that committed transactions have
  // written since the last image, which subtracts what it has found here. So errors from rollbacks
  // and crashes do not add up.
  mutable pg_atomic_uint64 bytes;
};

// The last look of a standby at the log.
struct StandbyLook {
  XLogRecPtr replayed;
  pg_atomic_uint32 following;  // a session is following the log
  bool follows;                // filled on a standby: replayed changes must be applied to it
};

// Which rows of its log a standby has played into a filter: those whose number is below `next`, but
// for the gaps, of transactions that had not committed then, or never will. It takes more than the
// slot, so it lies apart, and only where the server starts as a standby or in recovery. Anywhere
// else a follower reads everything anew.
struct PlayedRows {
  static constexpr int kMost = 512;
  struct Gap {
    int64 first, last;
  };
  int64 next;  // 0: not known
  int count;
  Gap gaps[kMost];
};

// Of a live filter that is restored by ranges (below).
struct Restoring {
  mutable pg_atomic_uint64 missing,
      wanted;                         // ranges, as bits: still missing; that a session waits for
  uint64 without_image;               // those that nothing of the image is for any more
  pg_atomic_uint32 restorer;          // pid of the restoring process
  uint32 ranges;                      // of one slice
  int32 image_rows, image_rows_read;  // rows that its image has, 0: some are damaged; of them read
};

// Which state of its filter it is. Of two with the same life the one with the lower count is older:
// a server that shows it has lost the changes in between, as a backup or a standby that lagged
// behind does. A transaction counts when it has committed. The count of an unlogged filter stays as
// it is, because with its changes its life ends.
struct StateVersion {
  int64 life;
  uint64 count;
};

// What a session looks at before it takes a key as new.
struct Unfinished {
  pg_atomic_uint64 unregistered;      // keys of transactions that are not in the table in flight
  pg_atomic_uint64 exclusive_xact;    // full id of one to wait for before adding any key, or 0
  pg_atomic_uint32 exclusive_wanted;  // others wait for it: it should hand the filter over
  // Transactions marked as arriving (arrivals.hpp) that add keys which the table in flight does not
  // have.
  mutable pg_atomic_uint32 arriving_keys;
  mutable pg_atomic_uint32 erasing;  // transactions that have forgotten keys, until their end
  // Prepared ones that have emptied, replaced or dropped the filter (prepared_transactions.hpp).
  mutable pg_atomic_uint32 prepared_removals;
};

// Sums of loss_estimate.hpp.
struct LossEstimate {
  static constexpr uint64 kUnknownOdds = std::bit_cast<uint64>(-1.0);

  pg_atomic_uint64 odds;       // a double: odds that a new row is discarded, not accepted
  pg_atomic_uint64 fill;       // a double: the filter's fill at that time
  pg_atomic_uint64 applied;    // FilterSlot::applied, and
  pg_atomic_uint64 accepted;   // RowCount::accepted, at the last look, and
  pg_atomic_uint64 looked_at;  // its time
  // Counts of the latest rows: their number, weighted by the odds that a new one was accepted, and
  // the accepted ones; both in units of 2^-16.
  pg_atomic_uint64 weight, fresh;
  pg_atomic_uint64 passing;  // a double: slices above this rate discard nothing; 0: all discard
};

// Why a filter that has no keys has none; other reasons are in FilterSlot::set_aside. Only a lost
// one says so at its first use.
enum class WhyEmpty : uint8 {
  is_new,     // or altered, or its saved state was forgotten
  truncated,  // also if the server has restarted since
  lost,       // with its server, or with the one that this one was a standby of: it is unlogged
};

struct CopyNotes;
struct FilterSlot;

// Of a filter that is copied to another size (state_copy.hpp).
struct StateCopy {
  // Fields of a slot that is copied.
  pg_atomic_uint32 to;               // slot number of the copy + 1; 0: not being copied
  mutable pg_atomic_uint32 spoiled;  // the filter was emptied, or the like
  PhaseGate applying;                // sessions that bring in changes: the copier waits for them
  // Fields of a copy. The lock of the next slice is held where these two change.
  pg_atomic_uint32 copied;  // the copy has all slices below this one
  pg_atomic_uint32 state;   // a CopyState
  CopyNotes* notes;
  FilterSlot* of;
};

// A slot's members, by how long they stay as they are. No two slots share a cache line, nor do what
// every row reads, what is counted, what a commit writes for the log, and what a copy needs.
struct alignas(PG_CACHE_LINE_SIZE) FilterSlot {
  // For as long as the slot is in use, but for steps of its life: under directory_lock.
  SlotState state;
  Oid database;  // set, with `relation`, by enter_slot
  Oid relation;
  Oid server;
  int owner;             // pid, for building, pending and copying
  uint64 key_signature;  // of the columns that its keys are hashed from
  uint64 generation;     // differs for every use of a slot
  Header* block;         // its bytes, at the same address in every process
  uint64 size;
  Place place;   // of the block
  bool zeroes;   // the place was zero when it was taken
  uint32 waits;  // counted: the record in the file that has its bytes, plus 1, which did not fit
  // Until another slot of the list comes or goes, likewise.
  FilterSlot* next_in_bucket;
  FilterSlot *before_free, *after_free;
  FilterSlot* next_emptied;
  // Changed by rows and commits, without a lock.
  alignas(PG_CACHE_LINE_SIZE) Statistics stats;
  LossEstimate loss;
  pg_atomic_uint64 overfull_logged;  // when the log was last told of that, in monotonic_us()
  pg_atomic_uint64 ahead_of_clock;   // the filter's time, in microseconds: that has gone back
  pg_atomic_uint64 applied;          // how often transactions have brought their changes in
  Restoring restoring;               // while a session or worker restores it
  Unfinished unfinished;             // until transactions end
  pg_atomic_uint32 pins;  // sessions that work on its bytes without a lock on its relation
  SavedState saved;       // from one save to the next
  StandbyLook standby;    // from look to look, until promotion
  alignas(PG_CACHE_LINE_SIZE) LogState log;  // with every commit
  char set_aside[160];  // why the saved state is not used; empty: it is, or there is none
  WhyEmpty why_empty;
  StateCopy copy;  // while a resize copies it
};
static_assert(sizeof(FilterSlot) <= 16 * PG_CACHE_LINE_SIZE);  // docs/reference/settings.md

constexpr int kMaxSegments = 32;

// Start of the shared memory; slots, buckets and the arena follow.
struct SharedState {
  LWLock* directory_lock;
  LWLockPadded* slice_locks;
  ConditionVariable built;  // some slot has left state `building`
  uint64 next_generation;
  Region arena;
  Region dynamic;                      // empty if there is no dynamic memory
  Place segments[kMaxSegments];        // dynamic memory that belongs to no filter (take_segment)
  uint64 segments_in_use;              // bytes
  FilterSlot* first_emptied;           // slots whose memory no process is giving back yet
  uint64 emptied_bytes;                // of all emptied slots
  FilterSlot *first_free, *last_free;  // free, then counted
  int free_count;
  // Slots by database and relation, except free and going ones: chains, the older slot first.
  FilterSlot** buckets;
  uint32 bucket_mask;
  int slot_count;             // of all_slots()
  pg_atomic_uint32 launched;  // the launcher of restore workers has been started
  PlayedRows* played;         // by slot; nullptr: the server has not started as a standby
  FilterSlot slots[FLEXIBLE_ARRAY_MEMBER];
};

// streamfilter.max_filters, or as many as the file of unlogged filters has, plus some to spare.
extern int stored_filters;
int all_slots();

// nullptr until the library is preloaded and shared memory exists.
extern SharedState* shared_state;

// Another part of the extension's shared memory, or something that starts with it. The postmaster
// calls `request`; every attaching process calls `start` under AddinShmemInitLock; `ready` follows
// when all have started. nullptr: nothing.
struct SharedSection {
  void (*request)();
  void (*start)();
  void (*ready)();
};

// Called by _PG_init; the sections must stay in place.
void init_shared_state(const SharedSection* others, int count);

// Steps of hooks.
void request_shared_state(MemoryCall* call);
void start_shared_state(MemoryCall* call);

// Raises 55000 with a HINT if the library is not preloaded.
void require_shared_state();

inline Header* block_of(const FilterSlot* slot) { return slot->block; }

inline StateVersion version_of(FilterSlot* slot) {
  return {slot->saved.identity, pg_atomic_read_u64(&slot->log.count)};
}
// Rows up to this number have been committed, or read.
void raise_count(FilterSlot* slot, uint64 number);

// nullptr: the server has not started as a standby.
inline PlayedRows* played_rows(const FilterSlot* slot) {
  PlayedRows* all = shared_state->played;
  return all != nullptr ? &all[slot - shared_state->slots] : nullptr;
}

// Does the server start to replay another server's WAL? Then its tables will change.
bool starts_in_recovery();

// The lock of one slice of a filter. A pool serves all filters, so two slices may share a lock:
// nobody may hold two at a time.
LWLock* slice_lock(const FilterSlot* slot, uint32 slice);

// Copies a slice under its lock. Reads no more than that.
void copy_locked_slice(const FilterSlot* slot, uint32 slice, void* to);

// Sets a slot's counters, and its knowledge of saved state, to those of a new slot.
void reset_counters(FilterSlot* slot, TimestampTz now);

// Functions down to free_slot need directory_lock. All slots of a relation, in whatever state:
FilterSlot* first_slot_of(Oid database, Oid relation);
FilterSlot* next_slot_of(const FilterSlot* slot);
FilterSlot* find_slot(Oid database, Oid relation, SlotState state);

inline bool is_in_use(const FilterSlot* slot) {
  return slot->state != SlotState::free && slot->state != SlotState::counted;
}

// A free slot, otherwise a `counted` one for which no bytes wait; it stays so until enter_slot.
// nullptr if there is none, or streamfilter.max_filters, which spare ones may exceed, is reached.
FilterSlot* find_free_slot(bool is_spare = false);

// Finds a place for the slot's block in the arena, otherwise in dynamic memory, where back_slot
// provides the pages. False: there is no room.
bool take_space(FilterSlot* slot, uint64 size);

// A place in dynamic memory, of whole pages, within its limit.
bool take_dynamic(Place* place, uint64 size);

// Every change of a slot's state, along its table. Slots of a relation are in its bucket, those
// that can be taken in the list of free ones.
void move_slot(FilterSlot* slot, SlotState to);

// Makes a slot that is free or counted one of a relation.
void enter_slot(FilterSlot* slot, Oid database, Oid relation, SlotState state);

void free_slot(FilterSlot* slot);

// Keeps the slot's bytes where they are until unpin_slot, whatever becomes of the filter. pin_slot
// needs directory_lock; unpin_slot takes it, and cannot fail.
inline void pin_slot(FilterSlot* slot) { pg_atomic_fetch_add_u32(&slot->pins, 1); }
void unpin_slot(FilterSlot* slot);

// Makes the slot its filter's state, in place of the former one.
void make_live(FilterSlot* slot);

// A transaction has made the filter logged, or unlogged: then its header in the log says so, and
// nothing else is saved.
void note_kept(FilterSlot* slot, bool logged);

inline bool is_dynamic(const FilterSlot* slot) {
  return is_within(shared_state->dynamic, slot->place.start);
}

inline Region* region_of(const FilterSlot* slot) {
  return is_dynamic(slot) ? &shared_state->dynamic : &shared_state->arena;
}

// Frees memory beyond `size` bytes of this process's slot. Takes directory_lock.
void shrink_slot(FilterSlot* slot, uint64 size);

// Makes a block that was just placed usable, if it is in dynamic memory. Returns 0 or an errno;
// `between` may raise.
int back_slot(const FilterSlot* slot, void (*between)());

// Bytes that the system has left for dynamic memory. Takes directory_lock.
uint64 dynamic_left();

// Call after free_slot: gives the dynamic memory of emptied slots back, by a worker if that takes
// long. Takes directory_lock. Cannot fail.
void give_back_slots();

// Holds directory_lock, exclusive, until the end of the block; then calls give_back_slots.
class DirectoryChange {
 public:
  DirectoryChange() { LWLockAcquire(shared_state->directory_lock, LW_EXCLUSIVE); }
  ~DirectoryChange() {
    LWLockRelease(shared_state->directory_lock);
    give_back_slots();
  }
  DirectoryChange(const DirectoryChange&) = delete;
  DirectoryChange& operator=(const DirectoryChange&) = delete;
};

// Helps, and waits until all is given back. Takes directory_lock; may raise.
void wait_for_emptied();

// A worker that runs this function in a database from a consistent state on, once.
BackgroundWorker make_worker(const char* function, const char* name);

// Empties a large filter, which nobody else uses, by a block of dynamic memory in place of its own.
// Takes directory_lock. False: that is not cheaper, or cannot be done.
bool renew_block(FilterSlot* slot);

// Empties a block slice by slice, each under its lock of the slot's.
void format_all_slices(FilterSlot* slot, Header* block);

// Zeroed dynamic memory for overflows, up to half of streamfilter.dynamic_memory for all together:
// `wanted` bytes, else half of that and so on, but not below `least`; *size is what it got.
// nullptr: there is no room. Takes directory_lock, and allocates: the caller holds no lock. Raises
// nothing.
char* take_segment(uint64 wanted, uint64 least, uint64* size);

// Gives it back. Takes directory_lock. Cannot fail.
void give_back_segment(char* start);

// Memory for filters of all databases together, in bytes.
struct MemoryUse {
  uint64 total;         // streamfilter.shared_memory and _dynamic_memory
  uint64 free;          // of both
  uint64 largest_free;  // largest piece
  uint64 dynamic;       // dynamic memory in use
  int slots_in_use;
};

// Takes directory_lock.
MemoryUse memory_use();

// HINT for ereport: what to do if a filter does not fit.
int errhint_more_memory();

// A filter that is used while it is restored: it comes in up to 64 ranges, those first that a row
// waits for. Nobody but the restorer touches what is missing.

constexpr uint32 kMostRanges = 64;

inline bool is_whole(const FilterSlot* slot) {
  return pg_atomic_read_u64(&slot->restoring.missing) == 0;
}

// Before others see the slot: all is missing, and this process restores it.
void begin_ranges(FilterSlot* slot, uint32 count);

// Does a session wait for a range that is missing?
bool is_any_wanted(FilterSlot* slot);

// Returns a range that a session waits for, else any. Some range must be missing.
uint32 next_range(FilterSlot* slot);

// Marks the range as restored.
void end_range(FilterSlot* slot, uint32 range);

// This process restores it no longer, and may have left ranges out. Cannot fail.
void end_restoring(FilterSlot* slot);

// Waits until the ranges of these bits are there. False: nobody restores the filter any more, and
// this process is to go on with it. Raises what waiting can.
bool wait_for_ranges(FilterSlot* slot, uint64 ranges);

}  // namespace streamfilter::pg
