#include "pg/server/postgres.hpp"

extern "C" {
#include "access/xlog.h"
#include "access/xlogrecovery.h"
#include "storage/procarray.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"
}

#include "core/filter/filter.hpp"
#include "pg/server/fault_points.hpp"
#include "pg/storage/persistence.hpp"
#include "pg/storage/state_reader.hpp"

namespace streamfilter::pg {
namespace {

void warn_damaged(const FilterRelation* relation, const char* what, const char* detail) {
  ereport(WARNING, errcode(ERRCODE_DATA_CORRUPTED),
          errmsg("the saved %s of filter \"%s\" is damaged", what, relation->name),
          errdetail("%s", detail),
          errhint("The filter goes on without it, so repeats of older keys are not recognised."));
}

void clear_slices(Header* block) {
  for (uint32 i = 0; i < block->parameters.slices; ++i) {
    CHECK_FOR_INTERRUPTS();
    memset(static_cast<void*>(slice_at(block, i).state), 0, block->parameters.slice_bytes);
  }
}

void format_slices(Header* block) {
  for (uint32 i = 0; i < block->parameters.slices; ++i) {
    CHECK_FOR_INTERRUPTS();
    format_slice(block, i);
  }
}

// What of all that was read is to be used.
struct Choice {
  bool found = false;  // something of this definition
  bool stale = false;  // something of another one
  int64 identity = 0;
  bool use_image = false;
  uint64 first_row = 0;  // of the log, to be played
};

// The newest header tells the seed; of a definition that is gone, nothing is used.
void find_header(const StateReading& reading, const Parameters& parameters, Choice* choice) {
  const LogRows& log = reading.log;
  for (uint64 i = log.count; i > 0; --i) {
    const LogRow& row = log.rows[i - 1];
    if (!is_header(row.change) || !take_parameters(row.data, reading.relation, parameters,
                                                   row.identity, &reading.block->parameters))
      continue;
    choice->found = true;
    choice->identity = row.identity;
    return;
  }
  if (!reading.image.found) return;
  choice->found = true;
  choice->identity = reading.image.identity;
  reading.block->parameters = reading.image.parameters;
}

Choice choose(StateReading* reading, const Parameters& parameters) {
  Choice choice;
  const LogRows& log = reading->log;
  SavedImage* image = &reading->image;
  find_header(*reading, parameters, &choice);
  choice.stale = image->stale;
  if (image->found && image->identity != choice.identity) {
    image->damage = "It belongs to another filter.";
    choice.stale = true;
  }
  choice.use_image = image->found && image->damage == nullptr;
  for (uint64 i = 0; i < log.count; ++i) {
    const LogRow& row = log.rows[i];
    if (!choice.found || row.identity != choice.identity) {
      choice.stale = true;
      continue;
    }
    if (row.change == LogChange::image && !image->found && image->damage == nullptr)
      image->damage = "It is missing.";
    if (row.change != LogChange::reset) continue;
    choice.first_row = i + 1;
    choice.use_image = false;
    image->damage = nullptr;  // it would not be used anyway
  }
  if (!choice.use_image) return choice;
  if (Problem problem; !check(reading->block, reading->block->parameters.memory, problem)) {
    choice.use_image = false;
    image->damage = pstrdup(problem.message);
  }
  return choice;
}

// Reads everything that is saved into `block`: that of a slot that is being built, or a copy.
void load(FilterSlot* slot, const FilterRelation* relation, const Parameters& parameters,
          Header* block) {
  const bool standby = RecoveryInProgress();
  const XLogRecPtr replayed = standby ? GetXLogReplayRecPtr(nullptr) : InvalidXLogRecPtr;
  format_header(block, parameters);
  StateReading reading;
  if (!open_state_tables(relation->relid, AccessShareLock, AccessShareLock, &reading.tables)) {
    format_slices(block);
    return;
  }
  MemoryContext context =
      AllocSetContextCreate(CurrentMemoryContext, "streamfilter restore", ALLOCSET_DEFAULT_SIZES);
  MemoryContext caller = MemoryContextSwitchTo(context);
  Progress progress(psprintf("restoring filter \"%s\"", relation->name));
  reading.slot = slot;
  reading.relation = relation;
  reading.block = block;
  reading.progress = &progress;

  const char* damage = try_to_read(read_prepared, &reading);
  reading.snapshot = register_latest_snapshot();
  if (const char* more = try_to_read(read_log, &reading)) damage = more;
  clear_slices(block);
  if (const char* more = try_to_read(read_image, &reading)) reading.image.damage = more;
  const LogRows& rows = reading.log;
  const SavedImage& image = reading.image;
  if (rows.damaged > 0 && damage == nullptr)
    damage = psprintf(UINT64_FORMAT " rows cannot be read.", rows.damaged);

  const Choice choice = choose(&reading, parameters);
  if (!choice.use_image) format_slices(block);
  if (image.damage != nullptr) warn_damaged(relation, "image", image.damage);
  if (damage != nullptr) warn_damaged(relation, "log", damage);
  if (choice.found) replay_rows(slot, block, rows, choice.first_row, choice.identity);

  SavedState* saved = &slot->saved;
  saved->last_saved = choice.use_image ? image.saved : 0;
  saved->image = image.saved;
  saved->restored = choice.found ? GetCurrentTimestamp() : 0;
  pg_atomic_write_u32(&saved->has_header, choice.found);
  pg_atomic_write_u64(&saved->log_bytes, rows.bytes);
  pg_atomic_write_u64(&saved->next_number, reading.next_number);
  saved->follows = standby;
  if (standby) remember_snapshot(slot, reading.snapshot, replayed);
  UnregisterSnapshot(reading.snapshot);
  close_state_tables(reading.tables);
  MemoryContextSwitchTo(caller);
  MemoryContextDelete(context);

  // What is left of other definitions must not come back when one of them does.
  if (choice.stale && !standby && !XactReadOnly && !IsInParallelMode()) {
    ereport(LOG, errmsg("what was saved of filter \"%s\" for another definition is deleted",
                        relation->name));
    delete_saved_state(relation->relid, choice.found ? &choice.identity : nullptr);
  }
}

}  // namespace

void remember_snapshot(FilterSlot* slot, Snapshot snapshot, XLogRecPtr replayed) {
  SavedState* saved = &slot->saved;
  saved->seen_xmin = snapshot->xmin;
  saved->seen_xmax = snapshot->xmax;
  saved->seen_count = -1;
  if (snapshot->takenDuringRecovery && !snapshot->suboverflowed &&
      snapshot->subxcnt <= SavedState::kSeen) {
    saved->seen_count = snapshot->subxcnt;
    memcpy(saved->seen, snapshot->subxip, sizeof(TransactionId) * saved->seen_count);
  }
  saved->replayed = replayed;
}

void restore_filter(FilterSlot* slot, const FilterRelation* relation,
                    const Parameters& parameters) {
  stop_at(FaultPoint::load);
  Header* block = block_of(slot);
  if (relation->options.persistence == Persistence::logged)
    return load(slot, relation, parameters, block);
  format_header(block, parameters);
  format_slices(block);
  // It may have been a logged one; what is still saved of that has to go with the first change. On
  // a standby it may become one.
  pg_atomic_write_u32(&slot->saved.has_header, 1);
  slot->saved.follows = RecoveryInProgress();
  slot->saved.seen_count = -1;
}

void load_again(FilterSlot* slot, const FilterRelation* relation) {
  Header* block = block_of(slot);
  const Parameters& parameters = block->parameters;
  auto* copy = static_cast<Header*>(MemoryContextAllocExtended(
      CurrentMemoryContext, parameters.memory, MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO));
  load(slot, relation, parameters, copy);
  for (uint32 i = 0; i < parameters.slices; ++i) {
    LWLock* lock = slice_lock(slot, i);
    LWLockAcquire(lock, LW_EXCLUSIVE);
    memcpy(static_cast<void*>(slice_at(block, i).state), slice_at(copy, i).state,
           parameters.slice_bytes);
    LWLockRelease(lock);
  }
  block->parameters.seed = copy->parameters.seed;
  pfree(copy);
}

}  // namespace streamfilter::pg
