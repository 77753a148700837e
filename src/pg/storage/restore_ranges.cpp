#include "pg/server/postgres.hpp"

extern "C" {
#include "access/xlog.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"
}

#include "core/filter/filter.hpp"
#include "pg/server/fault_points.hpp"
#include "pg/server/no_raise.hpp"
#include "pg/shmem/missing_ranges.hpp"
#include "pg/storage/restore_ranges.hpp"

namespace streamfilter::pg {
namespace {

constexpr uint64 kLongLog = 16 * 1024 * 1024;  // bytes, more than which a row would wait for

// What the log has, by ranges, and within one in the order in which it came.
struct LoggedChanges {
  LoggedChange* changes = nullptr;
  uint64 count = 0, places = 0;
  uint64 starts[65] = {};  // of a range
};

uint32 range_in(const StateReading& reading, const LoggedChange& change) {
  const Parameters& parameters = reading.block->parameters;
  return range_of(parameters, slice_of(parameters, change.element.hash));
}

void keep_change(LoggedChanges* kept, const LoggedChange& change) {
  if (kept->count == kept->places) {
    kept->places = Max(kept->places * 2, uint64{1024});
    const Size bytes = sizeof(LoggedChange) * kept->places;
    kept->changes = static_cast<LoggedChange*>(
        kept->changes == nullptr ? MemoryContextAllocHuge(CurrentMemoryContext, bytes)
                                 : repalloc_huge(kept->changes, bytes));
  }
  kept->changes[kept->count++] = change;
}

LoggedChanges sort_by_range(const StateReading& reading, const LoggedChanges& all) {
  LoggedChanges sorted;
  sorted.count = all.count;
  sorted.changes = static_cast<LoggedChange*>(
      MemoryContextAllocHuge(CurrentMemoryContext, sizeof(LoggedChange) * (all.count + 1)));
  uint64 next[65] = {};
  for (uint64 i = 0; i < all.count; ++i) ++next[range_in(reading, all.changes[i]) + 1];
  for (uint32 range = 1; range < lengthof(next); ++range) next[range] += next[range - 1];
  memcpy(sorted.starts, next, sizeof next);
  for (uint64 i = 0; i < all.count; ++i)
    sorted.changes[next[range_in(reading, all.changes[i])]++] = all.changes[i];
  return sorted;
}

LoggedChanges collect_changes(const StateReading& reading, int64 first_row) {
  LoggedChanges all;
  LogRow row;
  while (reading.sort->next(&row)) {
    if (row.number < first_row || row.identity != reading.slot->saved.identity) continue;
    const uint64 count = count_changes(row);
    for (uint64 i = 0; i < count; ++i) keep_change(&all, change_at(row, i));
  }
  const LoggedChanges sorted = sort_by_range(reading, all);
  if (all.changes != nullptr) pfree(all.changes);
  return sorted;
}

void empty_slices(Header* block, SliceRange slices) {
  for (uint32 i = slices.first; i < slices.end; ++i) {
    CHECK_FOR_INTERRUPTS();
    memset(static_cast<void*>(slice_at(block, i).state), 0, block->parameters.slice_bytes);
    format_slice(block, i);
  }
}

StateScan::Chunks chunks_of_slices(const Parameters& parameters, SliceRange slices) {
  const uint64 each = chunks_of(parameters.slice_bytes);
  return {static_cast<int32>(1 + slices.first * each), static_cast<int32>(slices.end * each)};
}

void restore_range(StateReading* reading, const LoggedChanges& log, uint32 range) {
  Header* block = reading->block;
  const SliceRange slices = slices_of_range(block->parameters, range);
  const StateScan::Chunks chunks = chunks_of_slices(block->parameters, slices);
  reading->chunks = &chunks;
  if (const char* damage = try_to_read(read_image, reading)) reading->image.damage = damage;
  if (reading->image.damage != nullptr) {
    warn_damaged(reading->relation, "image", reading->image.damage);
    empty_slices(block, slices);
    reading->image.damage = nullptr;
  }
  for (uint64 i = log.starts[range]; i < log.starts[range + 1]; ++i)
    replay_change(reading->slot, block, log.changes[i]);
  end_range(reading->slot, range);
}

void on_error(int, Datum slot) {
  const NoRaise marked;
  end_restoring(reinterpret_cast<FilterSlot*>(DatumGetPointer(slot)));
}

void restore_missing(StateReading* reading, const LoggedChanges& log) {
  FilterSlot* slot = reading->slot;
  PG_ENSURE_ERROR_CLEANUP(on_error, PointerGetDatum(slot));
  {
    while (!is_whole(slot)) {
      CHECK_FOR_INTERRUPTS();
      restore_range(reading, log, next_range(slot));
      stop_at(FaultPoint::restore_range);
    }
  }
  PG_END_ENSURE_ERROR_CLEANUP(on_error, PointerGetDatum(slot));
  end_restoring(slot);
}

void empty_missing(FilterSlot* slot) {
  Header* block = block_of(slot);
  while (!is_whole(slot)) {
    const uint32 range = next_range(slot);
    empty_slices(block, slices_of_range(block->parameters, range));
    end_range(slot, range);
  }
}

// As the one who began would have gone on: of what has come to the log since, nothing belongs to a
// range that is missing, for then somebody would have waited for it.
void go_on(FilterSlot* slot, const FilterRelation* relation) {
  StateReading reading;
  if (!begin_reading(&reading, slot, relation, "restoring")) return empty_missing(slot);
  reading.block = block_of(slot);
  reading.snapshot = register_latest_snapshot();
  if (const char* damage = try_to_read(read_log, &reading)) warn_damaged(relation, "log", damage);
  reading.image.saved = slot->saved.image;
  reading.image.read = 1;
  restore_missing(&reading, collect_changes(reading, PG_INT64_MIN));
  slot->saved.restored = GetCurrentTimestamp();
  end_reading(&reading);
}

}  // namespace

bool can_read_by_ranges(const StateReading& reading) {
  const Parameters& parameters = reading.block->parameters;
  return parameters.slices > 1 && parameters.k1 == 0 && parameters.slicing == Slicing::horizontal &&
         !RecoveryInProgress() && !reading.has_prepared && reading.log.damaged == 0 &&
         reading.log.bytes <= kLongLog && has_image_order(reading.tables.images);
}

void restore_by_ranges(StateReading* reading, int64 first_row, const Opening* opening) {
  const LoggedChanges log = collect_changes(*reading, first_row);
  begin_ranges(reading->slot);
  opening->open(opening->arg);
  restore_missing(reading, log);
  if (const char* damage = damage_of_whole(reading->image))
    warn_damaged(reading->relation, "image", damage);
}

void await_slices(FilterSlot* slot, const FilterRelation* relation, uint64 ranges) {
  if (wait_for_ranges(slot, ranges)) return;
  PG_ENSURE_ERROR_CLEANUP(on_error, PointerGetDatum(slot));
  { go_on(slot, relation); }
  PG_END_ENSURE_ERROR_CLEANUP(on_error, PointerGetDatum(slot));
  end_restoring(slot);
}

}  // namespace streamfilter::pg
