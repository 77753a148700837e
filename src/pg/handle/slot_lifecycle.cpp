// A slot is built at first use. If its definition is not committed yet, the slot stays `pending`
// until the transaction ends: commit makes it live in place of an older one, abort frees it. DROP
// frees slots at commit. The relation's lock keeps other sessions away meanwhile.
#include "pg/server/postgres.hpp"

extern "C" {
#include "access/parallel.h"
}

#include "pg/catalog/lookup.hpp"
#include "pg/catalog/server_options.hpp"
#include "pg/handle/slot_lifecycle.hpp"
#include "pg/shmem/log_pages.hpp"
#include "pg/shmem/server_health.hpp"
#include "pg/shmem/state_copy.hpp"
#include "pg/shmem/unlogged_file.hpp"
#include "pg/storage/image.hpp"
#include "pg/storage/restore.hpp"
#include "pg/storage/saved_definition.hpp"
#include "pg/transaction/prepared_transactions.hpp"

namespace streamfilter::pg {
namespace {

// Work for the end of the current transaction. Allocated in TopTransactionContext before any lock
// is taken, so that the callbacks need no memory.
enum class Action : uint8 { build, define, empty, keep, drop, drop_trigger };
struct Work {
  Work* next;
  Action action;
  SubTransactionId subtransaction;
  FilterSlot* slot;   // for build, define: this transaction's own
  FilterSlot* live;   // for empty, keep: the one that they change, unless it has another
  uint64 generation;  // by then; nullptr: there was none
  bool logged;        // for keep
  Oid database;       // for drop
  Oid relation;       // for empty; for drop, InvalidOid: all of the database; for drop_trigger,
                      // the trigger
};
Work* work = nullptr;

Work* new_work(Action action) {
  Work* item = allocate_zeros<Work>(1, TopTransactionContext);
  item->action = action;
  item->subtransaction = GetCurrentSubTransactionId();
  return item;
}

void push(Work* item) {
  transaction_uses_filters = true;
  item->next = work;
  work = item;
}

void remove(Work* item) {
  for (Work** at = &work; *at != nullptr; at = &(*at)->next)
    if (*at == item) {
      *at = item->next;
      return;
    }
}

void free_slots_of(Oid database, Oid relation) {
  for (FilterSlot *slot = first_slot_of(database, relation), *next; slot != nullptr; slot = next) {
    next = next_slot_of(slot);
    // The session that makes a copy notices that its source is gone.
    if (slot->state != SlotState::copying) free_slot(slot);
  }
}

void free_slots_in(Oid database) {
  for (int i = 0; i < shared_state->slot_count; ++i) {
    FilterSlot* slot = &shared_state->slots[i];
    if (slot->state != SlotState::free && slot->database == database) free_slot(slot);
  }
}

// Of the items that say what the relation's state is, the last one; nullptr: the live slot is it.
const Work* latest_of(Oid relation) {
  for (const Work* item = work; item != nullptr; item = item->next)
    if ((item->action == Action::define && item->slot->relation == relation) ||
        (item->action == Action::empty && item->relation == relation))
      return item;
  return nullptr;
}

// Has the transaction given the relation no later state?
bool is_last_word(const Work* item) { return latest_of(item->slot->relation) == item; }

// The transaction's last word on whether the slot is saved; nullptr: it has said nothing.
const Work* latest_keep(const FilterSlot* slot) {
  const Work* item = work;
  while (item != nullptr && !(item->action == Action::keep && item->live == slot &&
                              item->generation == slot->generation))
    item = item->next;
  return item;
}

void publish_definitions() {
  const DirectoryChange held;
  for (const Work* item = work; item != nullptr; item = item->next) {
    if (item->action == Action::empty && item->live != nullptr &&
        item->live->generation == item->generation)
      free_slot(item->live);
    if (item->action != Action::define) continue;
    is_last_word(item) ? make_live(item->slot) : free_slot(item->slot);
  }
  for (const Work* item = work; item != nullptr; item = item->next)
    if (item->action == Action::drop && OidIsValid(item->relation))
      free_slots_of(item->database, item->relation);
    else if (item->action == Action::drop)
      free_slots_in(item->database);
}

void forget_dropped_counts() {
  for (const Work* item = work; item != nullptr; item = item->next) {
    if (item->action == Action::drop) forget_counts(item->database, item->relation);
    if (item->action == Action::drop && !OidIsValid(item->relation)) {
      forget_trigger_counts(item->database, InvalidOid);
      forget_log_pages(item->database);
    }
    if (item->action == Action::drop_trigger) forget_trigger_counts(item->database, item->relation);
  }
}

bool is_of(const Work* item, SubTransactionId subtransaction) {
  return subtransaction == InvalidSubTransactionId || item->subtransaction == subtransaction;
}

// Takes items out of the list, and frees their slots, where leaves(item). Needs directory_lock.
template <typename Leaves>
void free_work(Leaves&& leaves) {
  for (Work** at = &work; *at != nullptr;) {
    Work* item = *at;
    if (!leaves(item)) {
      at = &item->next;
      continue;
    }
    if (item->slot != nullptr) free_slot(item->slot);
    *at = item->next;
  }
}

// Frees slots that the (sub)transaction has built, and forgets its drops.
void roll_back(SubTransactionId subtransaction) {
  bool building = false;
  for (const Work* item = work; item != nullptr; item = item->next)
    if (item->slot != nullptr && is_of(item, subtransaction)) end_copy(item->slot);
  {
    const DirectoryChange held;
    free_work([&](const Work* item) {
      const bool leaves = is_of(item, subtransaction);
      building |= leaves && item->action == Action::build;
      return leaves;
    });
  }
  if (building) ConditionVariableBroadcast(&shared_state->built);
}

// A parallel worker does not know what its leader has altered.
bool fits(const FilterSlot* slot, const FilterRelation* relation) {
  const Parameters& own = block_of(slot)->parameters;
  return is_state_of(relation, own, slot->key_signature) &&
         (!relation->uncommitted || !IsParallelWorker() ||
          has_same_geometry(own, relation->definition.parameters));
}

// Slots of one relation as the current transaction sees them. Needs directory_lock.
struct SlotsOfRelation {
  FilterSlot* usable = nullptr;
  FilterSlot* building = nullptr;  // another session is building it
  FilterSlot* outdated = nullptr;  // live, but not the transaction's state
};

SlotsOfRelation find_slots(const FilterRelation* relation) {
  SlotsOfRelation found;
  const Work* own = latest_of(relation->relid);
  if (own != nullptr) found.usable = own->slot;
  FilterSlot* slot = first_slot_of(MyDatabaseId, relation->relid);
  for (; slot != nullptr; slot = next_slot_of(slot)) {
    if (slot->state == SlotState::building)
      found.building = slot;
    else if (slot->state == SlotState::live)
      (own == nullptr && fits(slot, relation) ? found.usable : found.outdated) = slot;
  }
  return found;
}

// Does the filter's next state belong to this transaction until it ends?
bool is_uncommitted(const FilterRelation* relation) {
  return relation->uncommitted || latest_of(relation->relid) != nullptr;
}

enum class Reservation : uint8 { done, exists, no_slot, no_space, over_limit, too_many };

// What the limit of a server counts of a block: as option memory does.
uint64 counted_bytes(uint64 size) { return size - (sizeof(Header) - kStoredHeader); }

uint64 memory_in_use(Oid server, Oid except) {
  uint64 sum = 0;
  for (int i = 0; i < shared_state->slot_count; ++i) {
    const FilterSlot* slot = &shared_state->slots[i];
    if (is_in_use(slot) && slot->database == MyDatabaseId && slot->server == server &&
        slot->relation != except)
      sum += counted_bytes(slot->size);
  }
  return sum;
}

// Number of the server's filters with state. Needs directory_lock.
int filters_in_use(Oid server, Oid except) {
  int count = 0;
  for (int i = 0; i < shared_state->slot_count; ++i) {
    const FilterSlot* slot = &shared_state->slots[i];
    if (!is_in_use(slot) || slot->database != MyDatabaseId || slot->server != server ||
        slot->relation == except)
      continue;
    // A filter that is being altered has two.
    if (slot->state == SlotState::live ||
        find_slot(MyDatabaseId, slot->relation, SlotState::live) == nullptr)
      ++count;
  }
  return count;
}

// Frees all but one of the slots that the current subtransaction has built for the relation. Needs
// directory_lock.
void free_states_of_subtransaction(Oid relation, const FilterSlot* except = nullptr) {
  const SubTransactionId current = GetCurrentSubTransactionId();
  free_work([=](const Work* item) {
    return item->action == Action::define && item->subtransaction == current &&
           item->slot->relation == relation && item->slot != except;
  });
}

// Takes a slot and memory for it, in state `building`. Frees states of older definitions, unless
// one is still `needed`. Takes directory_lock.
Reservation reserve_once(const FilterRelation* relation, uint64 size, const ServerOptions& server,
                         TimestampTz now, Work* item, bool needed) {
  const DirectoryChange held;
  const SlotsOfRelation found = find_slots(relation);
  if ((found.usable != nullptr && !needed) || found.building != nullptr) return Reservation::exists;
  // A former state is useless, unless this (sub)transaction rolls back.
  if (!needed) free_states_of_subtransaction(relation->relid);
  if (found.outdated != nullptr && !needed && !is_uncommitted(relation)) free_slot(found.outdated);
  FilterSlot* slot = find_free_slot();
  FilterSlot* counted = find_slot(MyDatabaseId, relation->relid, SlotState::counted);
  // Bytes that wait in the file stay with their slot until the filter is there.
  if (slot != nullptr && slot->state == SlotState::counted && counted != nullptr &&
      counted->waits == 0)
    slot = counted;
  if (slot == nullptr) return Reservation::no_slot;
  if (server.max_filters != PG_INT32_MAX &&
      filters_in_use(relation->server, relation->relid) >= server.max_filters)
    return Reservation::too_many;
  if (server.memory_limit != PG_UINT64_MAX && (counted_bytes(size) > server.memory_limit ||
                                               memory_in_use(relation->server, relation->relid) >
                                                   server.memory_limit - counted_bytes(size)))
    return Reservation::over_limit;
  if (!take_space(slot, size)) return Reservation::no_space;
  SavedStatistic before[kMaxSavedStatistics];
  const bool known = counted != nullptr && counted->key_signature == key_signature(relation);
  const int count = known ? save_statistics(counted->stats, before) : 0;
  enter_slot(slot, MyDatabaseId, relation->relid, SlotState::building);
  slot->server = relation->server;
  slot->owner = MyProcPid;
  slot->key_signature = key_signature(relation);
  slot->generation = shared_state->next_generation++;
  reset_counters(slot, now);
  load_statistics(&slot->stats, before, count);
  slot->waits = counted != nullptr ? counted->waits : 0;
  item->slot = slot;
  push(item);
  return Reservation::done;
}

// As reserve_once, once memory of former states is free.
Reservation reserve(const FilterRelation* relation, uint64 size, const ServerOptions& server,
                    TimestampTz now, Work* item, bool needed = false) {
  Reservation result = reserve_once(relation, size, server, now, item, needed);
  if (result != Reservation::no_slot && result != Reservation::no_space) return result;
  wait_for_emptied();
  return reserve_once(relation, size, server, now, item, needed);
}

void raise_no_room(const FilterRelation* relation, uint64 size, const ServerOptions& server,
                   Reservation reason) {
  switch (reason) {
    case Reservation::no_slot:
      ereport(ERROR, errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
              errmsg("too many filters: no place for filter \"%s\"", relation->name),
              errdetail("All %d places are in use.", max_filters),
              errhint("Raise streamfilter.max_filters and restart the server, or drop a filter."));
      break;
    case Reservation::too_many:
      ereport(ERROR, errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
              errmsg("filter \"%s\" would exceed the max_filters of its server", relation->name),
              errdetail("The limit of the server is %d filters in memory.", server.max_filters),
              errhint("Drop a filter, or raise max_filters with ALTER SERVER."));
      break;
    case Reservation::over_limit:
      ereport(ERROR, errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
              errmsg("filter \"%s\" would exceed the memory_limit of its server", relation->name),
              errdetail("It needs %llu bytes; the limit for all filters of the server is %llu.",
                        llu(counted_bytes(size)), llu(server.memory_limit)),
              errhint("Use less memory, drop a filter, or raise memory_limit with ALTER SERVER."));
      break;
    default: {
      const MemoryUse use = memory_use();
      ereport(ERROR, errcode(ERRCODE_OUT_OF_MEMORY),
              errmsg("not enough shared memory for filter \"%s\"", relation->name),
              errdetail("It needs %llu bytes; %llu of %llu bytes are free, %llu in one piece.",
                        llu(size), llu(use.free), llu(use.total), llu(use.largest_free)),
              errhint_more_memory());
    }
  }
}

[[noreturn]] void raise_no_room_for_two(const FilterRelation* relation, uint64 size) {
  const uint64 most = memory_use().largest_free;
  ereport(ERROR, errcode(ERRCODE_OUT_OF_MEMORY),
          errmsg("not enough shared memory for filter \"%s\"", relation->name),
          errdetail("It has two blocks while it is resized. For the new one %llu of %llu bytes are "
                    "missing.",
                    llu(size - Min(size, most)), llu(size)),
          errhint("Raise streamfilter.dynamic_memory (now %dkB) and reload the configuration; or "
                  "TRUNCATE the filter, then ALTER it, and fill it anew.",
                  dynamic_memory_kb));
}

// Makes a filled slot available to its users.
void open_slot(FilterSlot* slot, const FilterRelation* relation, Work* item) {
  LWLockAcquire(shared_state->directory_lock, LW_EXCLUSIVE);
  if (is_uncommitted(relation)) {
    move_slot(slot, SlotState::pending);
    item->action = Action::define;
  } else {
    make_live(slot);
    remove(item);
  }
  LWLockRelease(shared_state->directory_lock);
  ConditionVariableBroadcast(&shared_state->built);
}

// Fills the filter with what is saved, if anything is; if this transaction empties it, only where
// it cannot be left for later.
void build(FilterSlot* slot, const FilterRelation* relation, const Parameters& parameters,
           Work* item, bool empties) {
  give_memory(slot, relation);
  slot->saved.logged = relation->options.persistence == Persistence::logged;
  struct Build {
    const FilterRelation* relation;
    Work* item;
  } building = {relation, item};
  const auto open = [](void* arg) {
    const auto* of = static_cast<const Build*>(arg);
    open_slot(of->item->slot, of->relation, of->item);
  };
  const Opening opening = {open, &building, empties};
  const bool early = (opens_early || empties) && !is_uncommitted(relation);
  restore_filter(slot, relation, parameters, early ? &opening : nullptr);
  if (slot->state == SlotState::building) open_slot(slot, relation, item);
}

Parameters parameters_for(const FilterRelation* relation) {
  Parameters parameters = relation->definition.parameters;
  // A secret seed: nobody can construct keys that collide in this filter.
  if (!relation->definition.is_given(Common::seed) &&
      !pg_strong_random(&parameters.seed, sizeof parameters.seed))
    ereport(ERROR, errcode(ERRCODE_INTERNAL_ERROR), errmsg("could not generate a random seed"));
  return parameters;
}

}  // namespace

void give_memory(const FilterSlot* slot, const FilterRelation* relation) {
  const int error = back_slot(slot, [] { CHECK_FOR_INTERRUPTS(); });
  if (error == 0) return;
  errno = error;
  ereport(ERROR, errcode(ERRCODE_OUT_OF_MEMORY),
          errmsg("could not get dynamic shared memory for filter \"%s\": %m", relation->name),
          errdetail("It needs %llu bytes; the system has %llu left.", llu(slot->size),
                    llu(dynamic_left())),
          errhint("Use less memory, drop a filter, or give the server more."));
}

bool is_latest(const FilterSlot* slot) {
  const Work* own = latest_of(slot->relation);
  return own == nullptr ? slot->state == SlotState::live : own->slot == slot;
}

void commit_persistence() {
  for (const Work* item = work; item != nullptr; item = item->next)
    if (item->action == Action::keep && latest_keep(item->live) == item)
      note_kept(item->live, item->logged);
}

void commit_definitions() {
  if (work == nullptr) return;
  publish_definitions();
  forget_dropped_counts();
  work = nullptr;
}

void roll_back_definitions() {
  if (work != nullptr) roll_back(InvalidSubTransactionId);
}

// Calls f(change, slot), the latest first. Skips counts, which are no definitions: they stay if the
// transaction ends in another session. Needs directory_lock.
template <typename Function>
static void for_each_prepared(Function&& f) {
  for (const Work* item = work; item != nullptr; item = item->next) {
    if (item->action == Action::define && is_last_word(item)) {
      const FilterSlot* slot = item->slot;
      f(ChangeType::define, item->slot);
      if (FilterSlot* former = find_slot(slot->database, slot->relation, SlotState::live))
        f(ChangeType::drop, former);
    }
    if (item->action == Action::empty && item->live != nullptr &&
        item->live->generation == item->generation)
      f(ChangeType::drop, item->live);
    if (item->action == Action::keep && !item->logged && latest_keep(item->live) == item)
      f(ChangeType::unlogged, item->live);
    if (item->action != Action::drop || !OidIsValid(item->relation)) continue;
    FilterSlot* slot = first_slot_of(item->database, item->relation);
    for (; slot != nullptr; slot = next_slot_of(slot))
      if (slot->state == SlotState::live ||
          (slot->state == SlotState::pending && slot->owner == MyProcPid))
        f(ChangeType::drop, slot);
  }
}

bool prepare_definitions() {
  if (work == nullptr) return add_prepared(nullptr, 0);
  // An item makes two changes at most, and each pending slot may be dropped.
  uint32 count = 0;
  for (const Work* item = work; item != nullptr; item = item->next) count += 3;
  auto* changes = allocate<SlotChange>(count);
  uint32 at = count;
  LWLockAcquire(shared_state->directory_lock, LW_SHARED);
  for_each_prepared([&](ChangeType change, FilterSlot* slot) {
    if (at > 0) changes[--at] = {change, slot};
  });
  LWLockRelease(shared_state->directory_lock);
  return add_prepared(changes + at, count - at);
}

void leave_prepared_definitions() {
  if (work == nullptr) return;
  const DirectoryChange held;
  for (const Work* item = work; item != nullptr; item = item->next)
    if (item->action == Action::define)
      is_last_word(item) ? static_cast<void>(item->slot->owner = 0) : free_slot(item->slot);
  work = nullptr;
}

void keep_definitions_of(SubTransactionId subtransaction, SubTransactionId parent) {
  for (Work* item = work; item != nullptr; item = item->next)
    if (item->subtransaction == subtransaction) item->subtransaction = parent;
}

void roll_back_definitions_of(SubTransactionId subtransaction) {
  if (work != nullptr) roll_back(subtransaction);
}

FilterSlot* peek_slot(const FilterRelation* relation) {
  if (shared_state == nullptr) return nullptr;
  resolve_removals(relation->relid);
  const LockHeld held(shared_state->directory_lock, LW_SHARED);
  return usable_slot(relation);
}

FilterSlot* usable_slot(const FilterRelation* relation) { return find_slots(relation).usable; }

bool peek_seed(const FilterRelation* relation, uint64* seed) {
  if (shared_state == nullptr) return false;
  const LockHeld held(shared_state->directory_lock, LW_SHARED);
  const FilterSlot* slot = usable_slot(relation);
  if (slot != nullptr) *seed = block_of(slot)->parameters.seed;
  return slot != nullptr;
}

static bool is_building(const FilterRelation* relation) {
  const LockHeld held(shared_state->directory_lock, LW_SHARED);
  return find_slots(relation).building != nullptr;
}

// A large filter is restored by a worker, from which its rows get what they need first. nullptr:
// none does.
static FilterSlot* attach_by_worker(const FilterRelation* relation) {
  constexpr uint64 kLarge = 32 * 1024 * 1024;
  constexpr long kLook = 100;  // ms
  if (is_restore_worker || is_uncommitted(relation) ||
      relation->definition.parameters.memory < kLarge ||
      relation->options.persistence != Persistence::logged || is_building(relation) ||
      !is_anything_saved(relation->relid))
    return nullptr;
  BackgroundWorkerHandle* worker = start_restore_worker(MyDatabaseId, relation->relid);
  if (worker == nullptr) return nullptr;
  FilterSlot* slot = nullptr;
  LockWait(relation->relid)
      .sleep_while(
          &shared_state->built,
          [&] { return (slot = peek_slot(relation)) == nullptr && is_running(worker); }, kLook);
  return slot;
}

FilterSlot* attach_slot(const FilterRelation* relation, bool empties) {
  require_shared_state();
  if (FilterSlot* slot = peek_slot(relation)) return slot;
  start_restore_launcher_once();
  Parameters parameters = parameters_for(relation);
  // If the memory is derived, another version may have derived another size.
  if (!relation->options.asked.is_given(Common::memory) &&
      relation->options.persistence == Persistence::logged)
    if (const SavedLife saved = saved_life_of(relation); saved.is_usable)
      parameters = saved.parameters;
  if (FilterSlot* slot = empties ? nullptr : attach_by_worker(relation)) return slot;
  const ServerOptions server = server_options(server_of_oid(relation->server)->options);
  const TimestampTz now = GetCurrentTimestamp();
  uint64 size = room_for(parameters);
  if (const uint64 waits = waiting_bytes(MyDatabaseId, relation->relid);
      waits > size && saved_life_of(relation).header == ChangeType::memory)
    size = waits;
  for (;;) {
    Work* item = new_work(Action::build);
    const Reservation reservation = reserve(relation, size, server, now, item);
    if (reservation == Reservation::done) {
      build(item->slot, relation, parameters, item, empties);
      resolve_prepared(relation->relid);  // transactions that have ended meanwhile
      return item->slot;
    }
    if (reservation != Reservation::exists) raise_no_room(relation, size, server, reservation);

    // Another session is building it: wait until it has finished or failed.
    LockWait(relation->relid).sleep_while(&shared_state->built, [&] {
      return is_building(relation);
    });
    if (FilterSlot* slot = peek_slot(relation)) return slot;
  }
}

FilterSlot* latest_slot(Oid relid) {
  if (shared_state == nullptr) return nullptr;
  if (const Work* own = latest_of(relid)) return own->slot;
  const LockHeld held(shared_state->directory_lock, LW_SHARED);
  return find_slot(MyDatabaseId, relid, SlotState::live);
}

void start_empty(Oid relid) {
  delete_saved_state(relid);
  Work* item = new_work(Action::empty);
  item->relation = relid;
  const LockHeld held(shared_state->directory_lock, LW_SHARED);
  item->live = find_slot(MyDatabaseId, relid, SlotState::live);
  if (item->live != nullptr) item->generation = item->live->generation;
  push(item);
}

void keep_at_commit(FilterSlot* slot, bool logged) {
  Work* item = new_work(Action::keep);
  item->live = slot;
  item->generation = slot->generation;
  item->logged = logged;
  push(item);
}

bool is_kept_logged(const FilterSlot* slot) {
  const Work* own = latest_keep(slot);
  return own != nullptr ? own->logged : slot->saved.logged;
}

bool is_made_logged(FilterSlot* slot) {
  if (const Work* own = latest_keep(slot)) return own->logged;
  return slot->saved.logged && slot->state == SlotState::pending &&
         pg_atomic_read_u32(&slot->saved.has_header) == 0 && pg_atomic_read_u64(&slot->applied) > 0;
}

// Takes a slot beside the filter's, whose state is still needed.
static Work* reserve_second(const FilterRelation* relation, uint64 size, bool is_copy) {
  const ServerOptions server = server_options(server_of_oid(relation->server)->options);
  Work* item = new_work(Action::build);
  const Reservation reservation =
      reserve(relation, size, server, GetCurrentTimestamp(), item, /*needed=*/true);
  if (is_copy && reservation == Reservation::no_space) raise_no_room_for_two(relation, size);
  if (reservation != Reservation::done) raise_no_room(relation, size, server, reservation);
  return item;
}

FilterSlot* attach_filled(const FilterRelation* relation, const Parameters& parameters,
                          void (*fill)(FilterSlot* slot, void* arg), void* arg) {
  Work* item = reserve_second(relation, room_for(parameters), /*is_copy=*/false);
  give_memory(item->slot, relation);
  fill(item->slot, arg);
  open_slot(item->slot, relation, item);
  const DirectoryChange held;
  free_states_of_subtransaction(relation->relid, item->slot);
  return item->slot;
}

FilterSlot* add_copy(const FilterRelation* relation, uint64 size) {
  Work* item = reserve_second(relation, size, /*is_copy=*/true);
  const LockHeld held(shared_state->directory_lock, LW_EXCLUSIVE);
  move_slot(item->slot, SlotState::copying);
  return item->slot;
}

void define_copy(FilterSlot* copy) {
  const LockHeld held(shared_state->directory_lock, LW_EXCLUSIVE);
  move_slot(copy, SlotState::pending);
  for (Work* item = work; item != nullptr; item = item->next)
    if (item->slot == copy) item->action = Action::define;
}

static void push_drop(Action action, Oid database, Oid object) {
  Work* item = new_work(action);
  item->database = database;
  item->relation = object;
  push(item);
}

void drop_at_commit(Oid database, Oid relation) { push_drop(Action::drop, database, relation); }

void drop_trigger_at_commit(Oid trigger) { push_drop(Action::drop_trigger, MyDatabaseId, trigger); }

}  // namespace streamfilter::pg
