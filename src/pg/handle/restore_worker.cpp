// Restores filters after a start, so that their first rows need not: a launcher goes through the
// databases, and a worker in each restores what is saved there, the busiest filters first, the
// larger ones before the smaller. A session that needs one before restores it itself, or starts a
// worker for it if it is large. Rows come as soon as a worker has what they need. Nothing depends
// on these workers.
#include "pg/server/postgres.hpp"

extern "C" {
#include "catalog/pg_database.h"
#include "commands/extension.h"
#include "pgstat.h"
#include "postmaster/interrupt.h"
}

#include "pg/handle/filter_handle.hpp"
#include "pg/handle/restore_worker.hpp"
#include "pg/handle/tree.hpp"
#include "pg/storage/image.hpp"
#include "pg/storage/restore_ranges.hpp"

extern "C" {
PGDLLEXPORT void streamfilter_restore_launcher(Datum);
PGDLLEXPORT void streamfilter_restore_worker(Datum);
}

namespace streamfilter::pg {
namespace {

void begin_work(Oid database) {
  connect_worker(database);
  // Who waits for it may be who a lock waits for: it gives up, and the session does without.
  SetConfigOption("lock_timeout", "1s", PGC_SUSET, PGC_S_OVERRIDE);
}

template <typename Work>
void in_transaction(const Work& work) {
  const MemoryContext caller = CurrentMemoryContext;
  StartTransactionCommand();
  PushActiveSnapshot(GetTransactionSnapshot());
  work();
  PopActiveSnapshot();
  CommitTransactionCommand();
  MemoryContextSwitchTo(caller);
}

// Skips templates: they hold no filters, and a session in one blocks CREATE DATABASE.
List* list_databases() {
  List* databases = NIL;
  const MemoryContext caller = CurrentMemoryContext;
  const auto look_at = [&](const FormData_pg_database& database, HeapTuple, TupleDesc) {
    if (!database.datallowconn || database.datistemplate) return;
    const InContext context(caller);
    databases = lappend_oid(databases, database.oid);
  };
  in_transaction([&] { scan_catalog<FormData_pg_database>(DatabaseRelationId, look_at); });
  return databases;
}

struct SavedFilter {
  Oid relid;
  uint64 rows;  // that it has judged, as its last counters say
  uint64 memory;
};

uint64 rows_of(Oid relid) {
  const LockHeld held(shared_state->directory_lock, LW_SHARED);
  FilterSlot* slot = find_slot(MyDatabaseId, relid, SlotState::counted);
  uint64 rows = 0;
  if (slot != nullptr)
    for (const RowCount count : {RowCount::accepted, RowCount::discarded, RowCount::tested})
      rows += pg_atomic_read_u64(slot->stats.counts[count]);
  return rows;
}

// Filters that are saved here and not in memory.
List* list_saved() {
  List* saved = NIL;
  for (const Oid relid : each_oid(list_filters())) {
    CHECK_FOR_INTERRUPTS();
    Fault fault;
    const FilterRelation* relation = try_load_filter_relation(relid, fault);
    if (relation == nullptr || is_remote(relation) ||
        relation->options.persistence != Persistence::logged || peek_slot(relation) != nullptr ||
        !is_anything_saved(relid))
      continue;
    auto* filter = allocate<SavedFilter>();
    *filter = {relid, rows_of(relid), relation->definition.parameters.memory};
    saved = lappend(saved, filter);
  }
  list_sort(saved, [](const ListCell* a, const ListCell* b) {
    const auto* one = static_cast<const SavedFilter*>(lfirst(a));
    const auto* other = static_cast<const SavedFilter*>(lfirst(b));
    if (one->rows != other->rows) return one->rows > other->rows ? -1 : 1;
    return one->memory > other->memory ? -1 : one->memory < other->memory ? 1 : 0;
  });
  return saved;
}

// Of a tree, DDL locks the filters from the root down. A use of a filter locks it, then its
// ancestors; so these are locked before, without a wait that a session's statement could be the
// victim of.
void lock_tree(Oid relid) {
  Oid ancestors[kMaxTreeLevels];
  int count = 0;
  for (Oid at = find_parent(relid); OidIsValid(at) && count < static_cast<int>(kMaxTreeLevels);
       at = find_parent(at))
    ancestors[count++] = at;
  if (count == 0) return;
  while (count-- > 0)
    if (!ConditionalLockRelationOid(ancestors[count], AccessShareLock)) give_way();
  if (!ConditionalLockRelationOid(relid, AccessShareLock)) give_way();
}

// False: it has given way to a session that locks the filter. Failures happen again, with the same
// message, for the row that needs the filter.
bool try_to_restore(Oid relid) {
  const MemoryContext caller = CurrentMemoryContext;
  volatile int failure = 0;
  PG_TRY();
  {
    in_transaction([relid] {
      if (!is_filter(relid)) return;
      lock_tree(relid);
      opens_early = !is_in_tree(relid);
      use_filter(filter_handle(relid), Use::test_granted);
    });
  }
  PG_CATCH();
  {
    MemoryContextSwitchTo(caller);
    if (ShutdownRequestPending) PG_RE_THROW();
    failure = CopyErrorData()->sqlerrcode;
    if (failure != kGivesWay) EmitErrorReport();
    FlushErrorState();
    AbortCurrentTransaction();
  }
  PG_END_TRY();
  MemoryContextSwitchTo(caller);
  return failure != kGivesWay;
}

// If the filter stays locked, the next session that needs it starts another worker.
void restore(Oid relid) {
  constexpr int kTries = 100;
  for (int i = 0; i < kTries && !try_to_restore(relid); ++i) CHECK_FOR_INTERRUPTS();
}

// All that is saved in this database.
void restore_all() {
  MemoryContext context = make_context("streamfilter restore", TopMemoryContext);
  MemoryContextSwitchTo(context);
  List* saved = NIL;
  in_transaction([&] {
    const InContext switched(context);
    if (OidIsValid(get_extension_oid("streamfilter", true))) saved = list_saved();
  });
  for (const auto* filter : each<SavedFilter>(saved)) {
    CHECK_FOR_INTERRUPTS();
    restore(filter->relid);
  }
}

void launch_all() {
  BackgroundWorkerHandle* running[kMostRestoreWorkers] = {};
  int next = 0;
  for (const Oid database : each_oid(list_databases())) {
    BackgroundWorkerHandle*& place = running[next++ % restore_workers];
    if (place != nullptr) WaitForBackgroundWorkerShutdown(place);
    place = start_restore_worker(database, InvalidOid);
    CHECK_FOR_INTERRUPTS();
  }
}

}  // namespace

void init_restore_worker() {
  if (restore_workers == 0 || IsBinaryUpgrade) return;
  BackgroundWorker worker = make_launcher();
  RegisterBackgroundWorker(&worker);
}

}  // namespace streamfilter::pg

void streamfilter_restore_launcher(Datum) {
  using namespace streamfilter::pg;
  const auto launch = [](Datum) {
    pg_atomic_write_u32(&shared_state->launched, 1);
    begin_work(InvalidOid);
    launch_all();
  };
  run_worker(launch, static_cast<Datum>(0));
}

void streamfilter_restore_worker(Datum database) {
  using namespace streamfilter::pg;
  const auto work = [](Datum of) {
    begin_work(DatumGetObjectId(of));
    is_restore_worker = true;
    Oid one;
    memcpy(&one, MyBgworkerEntry->bgw_extra, sizeof one);
    pgstat_report_activity(STATE_RUNNING, "streamfilter: restoring filters");
    OidIsValid(one) ? restore(one) : restore_all();
    pgstat_report_activity(STATE_IDLE, nullptr);
  };
  run_worker(work, database);
}
