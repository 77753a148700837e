#include "pg/server/postgres.hpp"

extern "C" {
#include "access/xlogrecovery.h"
}

#include "pg/server/fault_points.hpp"
#include "pg/server/lock_wait.hpp"
#include "pg/server/no_raise.hpp"
#include "pg/shmem/locked_work.hpp"
#include "pg/shmem/unlogged_file.hpp"
#include "pg/storage/restore.hpp"
#include "pg/storage/saved_definition.hpp"

namespace streamfilter::pg {
namespace {

// An image has no chunks of zeros, and the room may have been another filter's.
void clear_body(Header* block, uint64 room) {
  constexpr uint64 kStep = 16 * 1024 * 1024;
  char* bytes = reinterpret_cast<char*>(block);
  for (uint64 at = sizeof(Header); at < room; at += kStep) {
    CHECK_FOR_INTERRUPTS();
    memset(bytes + at, 0, Min(kStep, room - at));
    count_work(Work::bytes, Min(kStep, room - at));
  }
}

void format_slices(Header* block, bool zeroes) {
  for (uint32 i = 0; i < block->parameters.slices; ++i) {
    CHECK_FOR_INTERRUPTS();
    zeroes ? format_zeroes(block, i) : format_slice(block, i);
    count_work(Work::bytes, zeroes ? sizeof(SliceState) : block->parameters.slice_bytes);
  }
}

// What to use of the saved rows.
struct Choice {
  bool found = false;               // state of this definition
  const char* set_aside = nullptr;  // why other state is not used
  int64 identity = 0;
  bool use_image = false;
  int64 first_row = PG_INT64_MIN;  // number of the first log row to apply
};

// Finds life, seed and geometry. State older than the newest header is never used.
void find_header(StateReading* of, Choice* choice) {
  StateReading& reading = *of;
  Parameters parameters;
  if (const LogRow& row = reading.log.header; row.filter != 0) {
    choice->set_aside = row.change == ChangeType::memory
                            ? "It was in memory only."
                            : take_parameters(row, reading.relation, &parameters);
    choice->identity = reading.life = row.identity;
  } else {
    choice->identity = reading.image.identity;
    if (!reading.image.found) return;
    parameters = reading.image.parameters;
  }
  if (choice->set_aside == nullptr && block_bytes(parameters) > reading.room)
    choice->set_aside = "It is larger than the filter.";
  choice->found = choice->set_aside == nullptr;
  if (choice->found) reading.block->parameters = parameters;
}

void choose(StateReading* reading, Choice* choice) {
  const LogRows& log = reading->log;
  SavedImage* image = &reading->image;
  if (!choice->found && choice->set_aside == nullptr) find_header(reading, choice);
  if (!choice->found) {
    image->damage = nullptr;  // the image would not be used anyway
    return;
  }
  if (image->found && !has_same_geometry(image->parameters, reading->block->parameters))
    image->damage = "It has another geometry.";
  choice->use_image = image->found && image->damage == nullptr;
  if (log.header.change == ChangeType::image && !image->found && image->damage == nullptr)
    image->damage = "It is missing.";
  if (log.reset.filter == 0 || log.reset.identity != choice->identity) return;
  choice->first_row = log.reset.number + 1;
  choice->use_image = false;
  image->damage = nullptr;  // the image would not be used anyway
}

void note_set_aside(FilterSlot* slot, const FilterRelation* relation, const char* reason) {
  strlcpy(slot->set_aside, reason != nullptr ? reason : "", sizeof slot->set_aside);
  if (reason == nullptr) return;
  ereport(LOG, errmsg("the saved state of filter \"%s\" is set aside", relation->name),
          errdetail("%s", reason));
}

// Collations may have changed since, for example with an upgrade of the operating system or the
// server.
void check_collations(const FilterRelation* relation, const LogRows& log, Choice* choice) {
  const char* packed = log.header.data + sizeof(SavedHeader);
  Parameters parameters;
  Size start;
  if (Problem ignored;
      log.header.filter == 0 ||
      !unpack_header(packed, log.header.size - sizeof(SavedHeader), parameters, start, ignored))
    return;
  const Size size = log.header.size - sizeof(SavedHeader) - start;
  if (size == 0) return;
  const char *before = packed + start, *now = collations_of(relation->relid);
  if (strncmp(before, now, size) == 0 && (now[size] == '\0' || log.header.size == kRowData)) return;
  if (!choice->found) choice->set_aside = "The collations of its keys are others now.";
  ereport(
      WARNING, errcode(ERRCODE_WARNING),
      errmsg("the collations of the keys of filter \"%s\" have changed since its state was saved",
             relation->name),
      errdetail("Saved: %s Now: %s", pnstrdup(before, size), now),
      choice->found
          ? errhint("Keys that are now equal to others, or hashed otherwise, are not found: "
                    "TRUNCATE the filter and fill it anew, or keep it: streamfilter_save() ends "
                    "this warning.")
          : errhint("The filter starts empty; what was saved is set aside. Fill it anew from "
                    "its table: streamfilter_save() then replaces what is set aside."));
}

// A filter's first keys may be those of a prepared transaction. Its header is not yet visible, but
// the filter must have its seed, or the keys would differ.
int64 life_of_empty(const StateReading& reading) {
  const LogRow& row = reading.prepared;
  Parameters parameters;
  if (row.filter == 0 || take_parameters(row, reading.relation, &parameters) != nullptr ||
      block_bytes(parameters) > reading.room)
    return begin_life();
  reading.block->parameters = parameters;
  return row.identity;
}

void note_state(const StateReading& reading, const Choice& choice) {
  const SavedImage& image = reading.image;
  SavedState* saved = &reading.slot->saved;
  saved->identity = choice.found ? choice.identity : life_of_empty(reading);
  note_set_aside(reading.slot, reading.relation, choice.set_aside);
  saved->last_saved = choice.use_image ? image.saved : 0;
  saved->header = reading.log.header.number;
  pg_atomic_write_u32(&saved->has_header, choice.found);
  pg_atomic_write_u64(&reading.slot->log.bytes, reading.log.bytes);
  pg_atomic_write_u64(&reading.slot->log.next_number, reading.next_number);
  pg_atomic_write_u32(&reading.slot->log.last_page, reading.last_page);
  raise_count(reading.slot, reading.latest);
  reading.slot->why_empty =
      choice.first_row != PG_INT64_MIN ? WhyEmpty::truncated : WhyEmpty::is_new;
  reading.slot->standby.follows = reading.played != nullptr;
}

// Is the image all that a row needs, beside a log that is not too long? Then rows may come before
// it is read. Reads its header.
bool can_open_early(StateReading* reading, Choice* choice, const Opening& opening) {
  constexpr StateScan::Chunks kHeader = {0, 0};
  if (!choice->found || !can_read_by_ranges(*reading)) return false;
  const Choice before = *choice;
  reading->chunks = &kHeader;
  const bool is_read = try_to_read(read_image, reading) == nullptr;
  reading->chunks = nullptr;
  if (is_read && reading->image.damage == nullptr) choose(reading, choice);
  if (choice->use_image && divide_into_ranges(reading, opening.leaves_rest ? 1 : 2)) return true;
  *choice = before;
  const bool placed = reading->image.placed;
  reading->image = SavedImage{};
  reading->image.placed = placed;
  return false;
}

// Image and log, before any row comes. `damage`: of the log, or nullptr.
void load_at_once(StateReading* reading, Choice* choice, const char* damage) {
  const FilterRelation* relation = reading->relation;
  if (const char* more = try_to_read(read_image, reading)) reading->image.damage = more;
  reading->image.damage = damage_of_whole(reading->image);
  const LogRows& rows = reading->log;
  const SavedImage& image = reading->image;
  if (rows.damaged > 0 && damage == nullptr)
    damage = psprintf(UINT64_FORMAT " rows cannot be read.", rows.damaged);
  choose(reading, choice);
  // A transaction that writes rows writes a header with them, or has seen one committed.
  if (rows.all > 0 && damage == nullptr && choice->identity == 0) damage = "It has no header.";
  if (!choice->use_image) format_slices(reading->block, !image.placed);
  check_collations(relation, rows, choice);
  note_state(*reading, *choice);
  FilterSlot* slot = reading->slot;
  if (image.damage != nullptr) warn_damaged(slot, relation, "image", image.damage);
  if (damage != nullptr) warn_damaged(slot, relation, "log", damage);
  stop_at(FaultPoint::replay);
  if (choice->found) replay_rows(*reading, reading->block, choice->first_row, choice->identity);
}

// Reads everything that is saved into `block`: that of a slot that is being built, or a copy.
// `zeroes`: it has nothing but those.
void load(FilterSlot* slot, const FilterRelation* relation, const Parameters& parameters,
          Header* block, bool zeroes, const Opening* opening = nullptr) {
  const bool standby = RecoveryInProgress();
  const XLogRecPtr replayed = standby ? GetXLogReplayRecPtr(nullptr) : InvalidXLogRecPtr;
  format_header(block, parameters);
  StateReading reading;
  if (!begin_reading(&reading, slot, relation, "restoring")) return format_slices(block, zeroes);
  reading.block = block;
  if (standby) reading.played = copy_played(nullptr);
  reading.is_fresh = zeroes && block == block_of(slot) && is_dynamic(slot);
  reading.room = room_for(parameters);
  const char* damage = try_to_read(read_prepared, &reading);
  reading.snapshot = register_latest_snapshot();
  stop_at(FaultPoint::restore);
  if (const char* more = try_to_read(read_log, &reading)) damage = more;
  Choice choice;
  // The log usually says how the image's chunks lie.
  if (reading.log.header.filter != 0) find_header(&reading, &choice);
  if (!zeroes) clear_body(block, reading.room);
  if (opening != nullptr && damage == nullptr && can_open_early(&reading, &choice, *opening)) {
    check_collations(relation, reading.log, &choice);
    note_state(reading, choice);
    restore_by_ranges(&reading, choice.first_row, opening);
  } else {
    load_at_once(&reading, &choice, damage);
  }
  slot->saved.restored = choice.found && is_whole(slot) ? GetCurrentTimestamp() : 0;
  if (standby) keep_played(slot, reading, replayed);
  end_reading(&reading);
}

}  // namespace

SavedLife saved_life_of(const FilterRelation* relation) {
  SavedLife saved;
  StateReading reading;
  if (!begin_reading(&reading, nullptr, relation, "looking for", false)) return saved;
  try_to_read(read_prepared, &reading);  // for their numbers
  reading.snapshot = register_latest_snapshot();
  try_to_read(read_log, &reading);
  saved.next_number = reading.next_number;
  if (const LogRow& row = reading.log.header; row.filter != 0) {
    saved.header = row.change;
    saved.life = row.identity;
    saved.is_usable = row.change != ChangeType::memory &&
                      take_parameters(row, relation, &saved.parameters) == nullptr;
  }
  end_reading(&reading);
  return saved;
}

// An unlogged filter is empty: has it lost something, or never had it? Rows of the next life have
// higher numbers.
static void note_lost(FilterSlot* slot, const FilterRelation* relation, const SavedLife& saved) {
  pg_atomic_write_u64(&slot->log.next_number, saved.next_number);
  if (saved.header != ChangeType::memory) return;
  slot->why_empty = WhyEmpty::lost;
  ereport(
      WARNING, errmsg("filter \"%s\" starts empty", relation->name),
      errdetail("It is unlogged, and its server has ended without a clean shutdown since it was "
                "filled, or is a promoted standby or a restored backup."),
      errhint("Fill it anew, for example with streamfilter_warm()."));
}

void restore_filter(FilterSlot* slot, const FilterRelation* relation, const Parameters& parameters,
                    const Opening* opening) {
  stop_at(FaultPoint::load);
  Header* block = block_of(slot);
  if (relation->options.persistence == Persistence::logged)
    return load(slot, relation, parameters, block, slot->zeroes, opening);
  const SavedLife saved = saved_life_of(relation);
  const bool waits = slot->waits != 0 && saved.header == ChangeType::memory;
  if (!waits || !read_waiting(slot, saved.life)) {
    format_header(block, parameters);
    format_slices(block, slot->zeroes && !waits);
    slot->saved.identity = begin_life();
    // On a standby it may become logged.
    slot->standby.follows = RecoveryInProgress();
    if (!slot->standby.follows) note_lost(slot, relation, saved);
  }
  slot->waits = 0;
}

// Bytes of another geometry cannot be copied. Other sessions may read the slot until their
// transactions end, so its own stay.
static void retire(FilterSlot* slot, const FilterRelation* relation) {
  LWLockAcquire(shared_state->directory_lock, LW_EXCLUSIVE);
  if (slot->state == SlotState::live) move_slot(slot, SlotState::retired);
  LWLockRelease(shared_state->directory_lock);
  ereport(LOG, errmsg("filter \"%s\" is loaded anew", relation->name),
          errdetail(
              "On the primary it has another geometry. The memory of the former one is free after "
              "a restart."));
}

// What is saved says which geometry the filter has, else its definition.
static bool has_other_geometry(const FilterSlot* slot, const FilterRelation* relation) {
  const SavedLife saved = saved_life_of(relation);
  return !has_same_geometry(saved.is_usable        ? saved.parameters
                            : relation->is_adopted ? relation->derived_now
                                                   : relation->definition.parameters,
                            block_of(slot)->parameters);
}

// Reads everything again while sessions read the filter.
static void load_again(FilterSlot* slot, const FilterRelation* relation) {
  if (slot->state == SlotState::retired) return;
  Header* block = block_of(slot);
  const bool had_keys = pg_atomic_read_u32(&slot->saved.has_header) != 0;
  const Parameters parameters = block->parameters;
  if (has_other_geometry(slot, relation)) return retire(slot, relation);
  auto* copy = static_cast<Header*>(MemoryContextAllocExtended(
      CurrentMemoryContext, room_for(parameters), MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO));
  // An error on the way: what the slot says of the image is not yet so of its bytes.
  slot->standby.replayed = InvalidXLogRecPtr;
  load(slot, relation, parameters, copy, /*zeroes=*/true);
  // More has been replayed in between; or it is another life, with another seed, which sessions
  // read.
  if (!has_same_geometry(copy->parameters, parameters) ||
      (had_keys && copy->parameters.seed != parameters.seed))
    return retire(slot, relation);
  for (uint32 i = 0; i < parameters.slices; ++i) {
    const LockHeld held(slice_lock(slot, i), LW_EXCLUSIVE);
    memcpy(static_cast<void*>(slice_at(block, i).state), slice_at(copy, i).state,
           parameters.slice_bytes);
    count_work(Work::bytes, parameters.slice_bytes);
  }
  if (!had_keys) block->parameters.seed = copy->parameters.seed;
  pfree(copy);
}

// ---- a standby ----------------------------------------------------------------------------------

// Nobody calls us when a standby replays a commit. So each transaction there that begins to use a
// filter asks whether WAL was replayed since the last look, and plays the log rows that have become
// visible in between: those whose numbers it has not played (PlayedRows). Within a life no number
// comes twice. The position in WAL is read before the snapshot, so the next look finds what this
// one may have missed. One session looks at a time. Rows of one look are played by number; of
// changes that do not commute, the later has the higher one.
//
// All is read again (load_again) where news cannot be told: there was no header; an error came
// while news were played (replayed = 0); there are too many gaps (next = 0), until an image has
// taken the log's rows with it; the log cannot be read; or there is another header: a new life, or
// an image. Sessions read the filter meanwhile, so it is read into private memory and copied slice
// by slice: for a while some slices are older than others, each right for its keys.
//
// The first look after a promotion is the last: from then on changes come by commits.

// Applies what has become visible since the last look. False: everything must be read again.
static bool play_news(FilterSlot* slot, const FilterRelation* relation) {
  SavedState* saved = &slot->saved;
  PlayedRows* played = played_rows(slot);
  XLogRecPtr* latest = &slot->standby.replayed;
  const bool standby = RecoveryInProgress();
  const XLogRecPtr replayed = standby ? GetXLogReplayRecPtr(nullptr) : InvalidXLogRecPtr;
  if (standby && replayed == *latest) return true;
  // Before there was a header to be found, the seed was not known.
  if (played == nullptr || played->next == 0 || *latest == InvalidXLogRecPtr ||
      pg_atomic_read_u32(&saved->has_header) == 0)
    return false;
  StateReading reading;
  if (!begin_reading(&reading, slot, relation, "following")) return true;
  reading.played = copy_played(played);
  reading.next_number = pg_atomic_read_u64(&slot->log.next_number);
  bool complete = try_to_read(read_prepared, &reading) == nullptr;
  reading.snapshot = register_latest_snapshot();
  complete = complete && try_to_read(read_log, &reading) == nullptr;
  const LogRow& newest = reading.log.header;  // another one came with each image
  complete = complete && newest.number == saved->header && newest.identity == saved->identity;
  if (complete) {
    Header* block = block_of(slot);
    *latest = InvalidXLogRecPtr;  // an error in between: all must be read again
    replay_rows(reading, block, PG_INT64_MIN, saved->identity);
    pg_atomic_write_u64(&slot->log.next_number, reading.next_number);
    pg_atomic_fetch_add_u64(&slot->log.bytes, static_cast<int64>(reading.log.bytes));
    raise_count(slot, reading.latest);
    keep_played(slot, reading, replayed);
  }
  end_reading(&reading);
  return complete;
}

static void stop_following(int, Datum slot) {
  const NoRaise marked;
  pg_atomic_write_u32(&reinterpret_cast<FilterSlot*>(DatumGetPointer(slot))->standby.following, 0);
  ConditionVariableBroadcast(&shared_state->built);
}

// What memory has is from when the filter was logged.
static void empty_unlogged(FilterSlot* slot, const FilterRelation* relation, bool promoted) {
  if (has_other_geometry(slot, relation)) return retire(slot, relation);
  if (pg_atomic_read_u32(&slot->saved.has_header) != 0) format_all_slices(slot, block_of(slot));
  pg_atomic_write_u32(&slot->saved.has_header, 0);
  slot->saved.identity = begin_life();
  if (PlayedRows* played = played_rows(slot)) played->next = 0;
  if (promoted) note_lost(slot, relation, saved_life_of(relation));
}

void follow_log(FilterSlot* slot, const FilterRelation* relation) {
  StandbyLook* look = &slot->standby;
  // One session works at a time; the others wait until the filter is as new as they need.
  LockWait(relation->relid).sleep_while(&shared_state->built, [look] {
    uint32 idle = 0;
    return !pg_atomic_compare_exchange_u32(&look->following, &idle, 1);
  });
  // Also when this process is told to end.
  PG_ENSURE_ERROR_CLEANUP(stop_following, PointerGetDatum(slot));
  {
    const bool promoted = !RecoveryInProgress();
    if (look->follows) {
      slot->saved.logged = relation->options.persistence == Persistence::logged;
      if (!slot->saved.logged)
        empty_unlogged(slot, relation, promoted);
      else if (!play_news(slot, relation))
        load_again(slot, relation);
      if (promoted) look->follows = false;
    }
  }
  PG_END_ENSURE_ERROR_CLEANUP(stop_following, PointerGetDatum(slot));
  stop_following(0, PointerGetDatum(slot));
}

}  // namespace streamfilter::pg
