// CALL streamfilter_resize(): changes the size of a filter in use, in two transactions. The first
// checks whether that is possible. The second makes a copy (shmem/state_copy.hpp), saves it, and
// locks the filter for a moment to write the new definition; all of it takes effect at commit. An
// error at any point leaves the filter as it was, and what was made is freed like anything that a
// rolled-back transaction has built.
//
// What is saved changes hands, too, while others go on logging. save_copy writes an image of the
// copy, which has a life of its own, so that nobody reads it. swap, when nobody else has the filter
// locked, puts it in place of the filter's and of the log rows that its snapshot sees
// (state_heaps.hpp). Rows logged since stay: the header that comes with the image says that they
// are of this life, too.
#include "pg/server/postgres.hpp"

#include "pg/catalog/lookup.hpp"
#include "pg/catalog/option_list.hpp"
#include "pg/citus/citus_nodes.hpp"
#include "pg/handle/filter_keys.hpp"
#include "pg/handle/tree.hpp"
#include "pg/resize/copy_state.hpp"
#include "pg/resize/resize_filter.hpp"
#include "pg/server/fault_points.hpp"
#include "pg/server/rows.hpp"
#include "pg/server/wait_events.hpp"
#include "pg/shmem/locked_work.hpp"
#include "pg/shmem/state_copy.hpp"
#include "pg/storage/image.hpp"
#include "pg/storage/saved_definition.hpp"
#include "pg/transaction/prepared_transactions.hpp"

namespace streamfilter::pg {
namespace {

constexpr char kLockTry[] = "250ms";  // how long others queue behind this session
constexpr int kBetweenTries = 500;    // ms

struct Resize {
  Oid relid;
  const char* memory;              // as given
  const FilterRelation* relation;  // with the new definition
  FilterSlot* former;
  uint64 generation;  // of the former slot
  FilterSlot* copy;
  SlotSave save;           // of the copy
  bool is_done_elsewhere;  // on all nodes of Citus that this one knows
};

const char* alter_command(const FilterRelation* now, const char* memory) {
  return psprintf("ALTER FOREIGN TABLE %s OPTIONS (%s memory %s)", qualified_name(now->relid),
                  now->options.asked.is_given(Common::memory) ? "SET" : "ADD",
                  quote_literal_cstr(memory));
}

// Of a tree all filters, the root first: a child must fit its parent.
const char* alter_commands(Oid relid, const char* memory) {
  Oid root = relid;
  for (Oid parent; OidIsValid(parent = find_parent(root));) root = parent;
  TextBuffer text;
  appendStringInfoString(&text, alter_command(load_filter_relation(root), memory));
  for (const Oid oid : each_oid(find_descendants(root)))
    appendStringInfo(&text, "; %s", alter_command(load_filter_relation(oid), memory));
  return text.data;
}

[[noreturn]] void refuse_resize(const Resize* resize, const char* detail) {
  ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
          errmsg("filter \"%s\" cannot be resized while rows come", get_rel_name(resize->relid)),
          errdetail("%s", detail),
          errhint("Type: %s. Rows wait meanwhile.", alter_commands(resize->relid, resize->memory)));
}

void check_call(FunctionCallInfo fcinfo) {
  if (fcinfo->context == nullptr || !IsA(fcinfo->context, CallContext) ||
      castNode(CallContext, fcinfo->context)->atomic)
    ereport(ERROR, errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
            errmsg("streamfilter_resize() cannot run inside a transaction block"),
            errhint("Call it by itself, or use ALTER FOREIGN TABLE ... OPTIONS (SET memory ...)."));
  require_arguments(fcinfo, {0, 1});
  require_writable("streamfilter_resize()");
}

// The relation with the new definition, checked as ALTER would.
FilterRelation* wanted_relation(Oid relid, const char* memory) {
  FilterRelation* relation = load_filter_relation(relid);
  Definition& asked = relation->options.asked;
  Problem problem;
  if (!set_option(asked, "memory", memory, problem)) raise(problem);
  relation->definition = asked;
  if (!complete(relation->definition, problem) ||
      !check_request(asked, relation->definition, problem))
    raise(problem);
  return relation;
}

bool is_alike(const FilterRelation* a, const FilterRelation* b) {
  return has_same_geometry(a->definition.parameters, b->definition.parameters) &&
         key_signature(a) == key_signature(b);
}

void check_kind(const Resize* resize, const FilterRelation* relation) {
  const bool is_part = find_option(options_of_filter(resize->relid), "producer") != nullptr;
  if (is_part || is_remote(relation))
    ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
            errmsg("filter \"%s\" cannot be resized", relation->name),
            is_part ? errdetail("It is a part of a filter on another server, which compares their "
                                "sizes.")
                    : errdetail("Its state is on other servers."),
            errhint("Make another filter%s, fill it with streamfilter_warm(), and let triggers and "
                    "queries use that one.",
                    is_part ? " there" : ""));
  if (is_in_tree(relation->relid))
    refuse_resize(resize, "It belongs to a tree, whose filters start empty in another size.");
}

void check_slices(const Resize* resize, const Parameters& parameters) {
  if (parameters.k1 > 0 || parameters.slicing != Slicing::horizontal)
    refuse_resize(resize, "Its keys lie in several slices each.");
  if (parameters.slice_bytes > kLargestSlice)
    refuse_resize(resize, "One of its slices has more than 1 GB, and rows wait while one is read.");
}

[[noreturn]] void raise_in_use(const FilterRelation* relation) {
  ereport(ERROR, errcode(ERRCODE_OBJECT_IN_USE),
          errmsg("filter \"%s\" is being resized by another session", relation->name));
}

// Returns false if there is nothing to do.
bool begin_resize(Resize* resize) {
  require_own_filter(resize->relid);
  FilterHandle* filter = filter_handle(resize->relid);
  LockRelationOid(resize->relid, AccessShareLock);
  check_kind(resize, load_filter_relation(resize->relid));
  use_filter(filter, Use::test_granted);
  const FilterRelation* now = load_filter_relation(resize->relid);
  if (is_alike(wanted_relation(resize->relid, resize->memory), now)) {
    if (!resize->is_done_elsewhere)
      ereport(NOTICE, errmsg("filter \"%s\" has this size already", now->name));
    return false;
  }
  if (copy_of(filter->slot) != nullptr) raise_in_use(now);
  // Saves first, so that transactions that commit while the copy is saved need not.
  if (filter->slot->saved.logged && pg_atomic_read_u32(&filter->slot->saved.has_header) == 0)
    save_at_commit(filter);
  return true;
}

// Each node swaps by itself: nodes may differ in size meanwhile, because each has the filter of its
// own shards. An interrupted call is typed again.
void resize_on_all_nodes(Resize* resize, Oid procedure) {
  check_kind(resize, load_filter_relation(resize->relid));
  wanted_relation(resize->relid, resize->memory);
  const char* schema = get_namespace_name(get_func_namespace(procedure));
  call_on_all_nodes(
      resize->relid,
      psprintf("CALL %s(%s, %s)", quote_qualified_identifier(schema, "streamfilter_resize"),
               quote_literal_cstr(qualified_name(resize->relid)),
               quote_literal_cstr(resize->memory)));
  resize->is_done_elsewhere = true;
}

// Calls f() under a short lock on the filter, so that sessions which alter, empty or drop it, and
// those behind them, wait no longer.
template <typename Function>
void under_lock(Oid relid, const Function& f) {
  LockRelationOid(relid, AccessShareLock);
  f();
  UnlockRelationOid(relid, AccessShareLock);
}

Parameters parameters_for(const Resize* resize) {
  const Parameters& from = block_of(resize->former)->parameters;
  Parameters parameters{};
  Problem problem;
  if (!resized_parameters(resize->relation, resize->former, from, &parameters, problem))
    refuse_resize(resize, problem.detail[0] != '\0' ? problem.detail : problem.message);
  check_slices(resize, from);
  check_slices(resize, parameters);
  return parameters;
}

Parameters reserve(Resize* resize) {
  Parameters parameters{};
  under_lock(resize->relid, [&] {
    require_own_filter(resize->relid);
    const FilterRelation* now = load_filter_relation(resize->relid);
    check_kind(resize, now);
    resize->relation = wanted_relation(resize->relid, resize->memory);
    resize->former = peek_slot(now);
    if (resize->former == nullptr) raise_changed(now->name, "It was altered.");
    resize->generation = resize->former->generation;
    if (copy_of(resize->former) != nullptr) raise_in_use(now);
    parameters = parameters_for(resize);
    resize->copy = add_copy(resize->relation, room_for(parameters) + note_bytes(parameters));
  });
  return parameters;
}

void make_copy(Resize* resize, Progress* progress) {
  const Parameters parameters = reserve(resize);
  const char* name = resize->relation->name;
  give_memory(resize->copy, resize->relation);
  format_header(block_of(resize->copy), parameters);
  begin_saved(resize->copy, resize->former, resize->relation);
  under_lock(resize->relid, [&] {
    if (resize->former->generation != resize->generation)
      raise_changed(name, "It was altered or dropped.");
    if (!begin_copy(resize->former, resize->copy, note_bytes(parameters)))
      raise_in_use(resize->relation);
  });
  copy_state(resize->copy, resize->former, resize->generation, name, progress);
  shrink_slot(resize->copy, room_for(parameters));
  stop_at(FaultPoint::resize_copied);
}

void save_copy(Resize* resize, Progress* progress) {
  if (!resize->copy->saved.logged) return;
  progress->begin("saving", 0, "bytes");
  PushActiveSnapshot(GetTransactionSnapshot());
  if (!begin_save(&resize->save, resize->copy, resize->relation->name, resize->former))
    raise_changed(resize->relation->name, "It was dropped.");
  write_image(&resize->save);
  PopActiveSnapshot();
  stop_at(FaultPoint::resize_saved);
}

// ---- the moment that the filter is locked for

void lock_for_a_moment(Oid relid) {
  const int settings = NewGUCNestLevel();
  set_config_option("lock_timeout", kLockTry, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0,
                    false);
  LockRelationOid(relid, AccessExclusiveLock);
  AtEOXact_GUC(true, settings);
}

// False: users of the filter have not ended in time. Others have queued behind this session that
// long.
bool try_to_lock(Oid relid) {
  ErrorData* error = error_in_savepoint([relid] { lock_for_a_moment(relid); });
  if (error != nullptr && error->sqlerrcode != ERRCODE_LOCK_NOT_AVAILABLE) ReThrowError(error);
  return error == nullptr;
}

[[noreturn]] void raise_not_locked(const FilterRelation* relation) {
  ereport(ERROR, errcode(ERRCODE_LOCK_NOT_AVAILABLE),
          errmsg("filter \"%s\" is ready in its new size, but transactions that use it do not end",
                 relation->name),
          errdetail("It stays as it was."),
          errhint("Call streamfilter_resize() again when they have ended: pg_locks and "
                  "pg_prepared_xacts tell which. lock_timeout and "
                  "streamfilter.commit_wait_timeout say how long it waits."));
}

// `left` in ms; 0: without end.
void say_what_for(const FilterRelation* relation, int left) {
  ereport(NOTICE,
          errmsg("filter \"%s\" is ready in its new size, and waits for transactions that use it",
                 relation->name),
          left > 0 ? errdetail("It gives up in %d s.", (left + 999) / 1000) : 0);
}

void lock_resized(const Resize* resize, Progress* progress) {
  constexpr int kQuiet = 3, kBetween = 10;  // attempts without a notice
  progress->begin("waiting for transactions", 0, "attempts");
  const CommitWait wait;
  for (int attempt = 1;; ++attempt) {
    check_unchanged(resize->former, resize->generation, resize->relation->name);
    if (try_to_lock(resize->relid)) return;
    progress->advance(1);
    if (wait.left() == 1) raise_not_locked(resize->relation);
    if (attempt % kBetween == kQuiet) say_what_for(resize->relation, wait.left());
    pause(kBetweenTries, wait_event(Wait::resize));
  }
}

// No other session uses the filter: the copy has all keys that transactions have added, or is about
// to get them.
void swap(Resize* resize) {
  const FilterRelation* wanted = resize->relation;
  note_exclusive_lock();
  stop_at(FaultPoint::resize_locked);
  resolve_prepared(resize->relid);
  check_unchanged(resize->former, resize->generation, wanted->name);
  require_own_filter(resize->relid);
  const FilterRelation* now = load_filter_relation(resize->relid);
  if (!is_alike(wanted_relation(resize->relid, resize->memory), wanted) ||
      now->options.persistence != wanted->options.persistence)
    raise_changed(wanted->name, "It was altered.");
  flush_counters();
  take_over_counts(resize->copy, resize->former);
  if (resize->copy->saved.logged) {
    PushActiveSnapshot(GetTransactionSnapshot());
    finish_save(&resize->save);
    PopActiveSnapshot();
  }
  define_copy(resize->copy);
  const char* command = alter_command(now, resize->memory);
  if (SPI_execute(command, false, 0) != SPI_OK_UTILITY)
    elog(ERROR, "could not run \"%s\"", command);
  CommandCounterIncrement();
  const FilterRelation* altered = load_filter_relation(resize->relid);
  if (peek_slot(altered) != resize->copy) raise_changed(wanted->name, "It was altered.");
  warn_of_rate(altered, block_of(resize->former), block_of(resize->copy));
}

void run_resize(Resize* resize) {
  MemoryContext work = make_context("streamfilter resize", TopTransactionContext);
  const MemoryContext caller = MemoryContextSwitchTo(work);
  Progress progress(Command::resize, resize->relid,
                    psprintf("resizing filter \"%s\"", get_rel_name(resize->relid)));
  make_copy(resize, &progress);
  save_copy(resize, &progress);
  lock_resized(resize, &progress);
  swap(resize);
  MemoryContextSwitchTo(caller);
  MemoryContextDelete(work);
}

}  // namespace

// streamfilter_resize(filter regclass, memory text): a procedure. Needs ownership. Raises 25001 in
// a transaction block; 0A000 if only ALTER can; 53200, 53400 without room for both states; 40001 if
// the filter was altered, dropped or emptied meanwhile; 55000 if a node of Citus fails; 55006 if
// another session resizes it; 55P03 if transactions that use it do not end; 54000 if too many keys
// come.
SF_FUNCTION(streamfilter_resize) {
  check_call(fcinfo);
  require_shared_state();
  Resize resize{};
  resize.relid = PG_GETARG_OID(0);
  resize.memory = text_to_cstring(PG_GETARG_TEXT_PP(1));
  SPI_connect_ext(SPI_OPT_NONATOMIC);
  require_own_filter(resize.relid);
  if (acts_on_all_nodes(resize.relid)) {
    resize_on_all_nodes(&resize, fcinfo->flinfo->fn_oid);
    SPI_commit();
  }
  if (begin_resize(&resize)) {
    SPI_commit();
    run_resize(&resize);
  }
  SPI_commit();
  SPI_finish();
  PG_RETURN_VOID();
}

}  // namespace streamfilter::pg
