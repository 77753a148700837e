// Dynamic memory that filters have left. Giving a GB back takes .3 s and more, so a worker does it,
// and DROP or TRUNCATE of a large filter does not wait. Until then the memory belongs to no filter;
// a session that finds no room meanwhile helps.
#include "pg/server/postgres.hpp"

extern "C" {
#include "postmaster/bgworker.h"
#include "storage/proc.h"
}

#include "core/filter/filter.hpp"
#include "pg/server/shared_memory.hpp"
#include "pg/server/wait_events.hpp"
#include "pg/shmem/dynamic_memory.hpp"
#include "pg/shmem/filter_directory.hpp"
#include "pg/shmem/locked_work.hpp"

namespace streamfilter::pg {
namespace {

constexpr uint64 kMuch = 64 * 1024 * 1024;  // bytes that justify a worker, or another block

// nullptr if there is none.
FilterSlot* take_emptied() {
  const LockHeld held(shared_state->directory_lock, LW_EXCLUSIVE);
  FilterSlot* slot = shared_state->first_emptied;
  if (slot != nullptr) shared_state->first_emptied = slot->next_emptied;
  return slot;
}

void give_back_all() {
  while (FilterSlot* slot = take_emptied()) {
    give_back_memory(slot->place.start, slot->place.size);
    LWLockAcquire(shared_state->directory_lock, LW_EXCLUSIVE);
    free_emptied(slot);
    LWLockRelease(shared_state->directory_lock);
    // The postmaster, which reads the file of unlogged filters, has no PGPROC, and nobody waits
    // yet.
    if (MyProc != nullptr) ConditionVariableBroadcast(&shared_state->built);
  }
}

// Includes those that another process is giving back.
bool is_any_emptied() {
  const LockHeld held(shared_state->directory_lock, LW_SHARED);
  return shared_state->emptied_bytes > 0;
}

// False if no worker is free. Allocates nothing.
bool start_worker() {
  BackgroundWorker worker{};
  worker.bgw_flags = BGWORKER_SHMEM_ACCESS;
  worker.bgw_start_time = BgWorkerStart_PostmasterStart;
  worker.bgw_restart_time = BGW_NEVER_RESTART;
  strlcpy(worker.bgw_library_name, "streamfilter", sizeof worker.bgw_library_name);
  strlcpy(worker.bgw_function_name, "streamfilter_memory_worker", sizeof worker.bgw_function_name);
  strlcpy(worker.bgw_name, "streamfilter memory", sizeof worker.bgw_name);
  strlcpy(worker.bgw_type, "streamfilter memory", sizeof worker.bgw_type);
  return RegisterDynamicBackgroundWorker(&worker, nullptr);
}

// The limit of dynamic memory counts what is used: of two blocks there only one is.
bool take_place_beside(const FilterSlot* slot, Place* place) {
  return is_dynamic(slot) ? take_place(&shared_state->dynamic, place, slot->place.size)
                          : take_dynamic(place, whole_pages(slot->size));
}

// A slot that holds a block of zeroes for somebody else; nullptr: there is none.
FilterSlot* take_spare(const FilterSlot* slot) {
  const LockHeld held(shared_state->directory_lock, LW_EXCLUSIVE);
  FilterSlot* spare = find_free_slot(true);
  if (spare != nullptr &&
      (spare->state != SlotState::free || !take_place_beside(slot, &spare->place)))
    spare = nullptr;
  if (spare != nullptr) enter_slot(spare, InvalidOid, InvalidOid, SlotState::building);
  return spare;
}

}  // namespace

void give_back_slots() {
  LWLockAcquire(shared_state->directory_lock, LW_SHARED);
  const uint64 bytes = shared_state->emptied_bytes;
  LWLockRelease(shared_state->directory_lock);
  if (bytes >= kMuch && start_worker()) return;
  give_back_all();
}

void wait_for_emptied() {
  ConditionVariablePrepareToSleep(&shared_state->built);
  for (;;) {
    give_back_all();
    if (!is_any_emptied()) break;
    ConditionVariableSleep(&shared_state->built, wait_event(Wait::memory));
  }
  ConditionVariableCancelSleep();
}

bool renew_block(FilterSlot* slot) {
  if (slot->size < kMuch || !gives_pages_late() || !gives_zeroes() ||
      (!is_dynamic(slot) && dynamic_left() < slot->size))
    return false;
  FilterSlot* spare = take_spare(slot);
  if (spare == nullptr) return false;
  auto* block = reinterpret_cast<Header*>(spare->place.start);
  memcpy(static_cast<void*>(block), block_of(slot), sizeof(Header));
  for (uint32 i = 0; i < block->parameters.slices; ++i) format_zeroes(block, i);
  count_work(Work::bytes, sizeof(SliceState) * block->parameters.slices);
  LWLockAcquire(shared_state->directory_lock, LW_EXCLUSIVE);
  exchange_places(region_of(slot), &slot->place, region_of(spare), &spare->place);
  slot->block = block;
  free_slot(spare);
  LWLockRelease(shared_state->directory_lock);
  give_back_slots();
  return true;
}

}  // namespace streamfilter::pg

extern "C" {
PGDLLEXPORT void streamfilter_memory_worker(Datum);
}

// Signals stay blocked: work that has begun must end, which takes seconds.
void streamfilter_memory_worker(Datum) {
  if (streamfilter::pg::shared_state != nullptr) streamfilter::pg::give_back_all();
}
