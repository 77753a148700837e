// Functions on named filters: for use in any query, and what is saved of them.
#include "pg/server/postgres.hpp"

extern "C" {
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "utils/backend_status.h"
}

#include "pg/catalog/lookup.hpp"
#include "pg/catalog/option_list.hpp"
#include "pg/citus/citus_nodes.hpp"
#include "pg/handle/filter_keys.hpp"
#include "pg/handle/tree.hpp"
#include "pg/remote/remote_keys.hpp"
#include "pg/shmem/state_copy.hpp"
#include "pg/storage/image.hpp"
#include "pg/storage/restore_ranges.hpp"
#include "pg/trigger/judge_row.hpp"
#include "pg/value/value.hpp"

namespace streamfilter::pg {
namespace {

void save(FilterHandle* filter) {
  if (filter->relation->options.persistence == Persistence::unlogged) {
    ereport(NOTICE, errmsg("filter \"%s\" is unlogged: it is saved when the server is shut down",
                           filter->relation->name));
    return;
  }
  use_filter(filter, Use::test_granted);
  // The session that resizes it waits for users of the filter, so each would wait for the other.
  if (copy_of(filter->slot) != nullptr)
    ereport(ERROR, errcode(ERRCODE_OBJECT_IN_USE),
            errmsg("filter \"%s\" is being resized, and saved then", filter->relation->name));
  save_at_commit(filter);
}

// False for filters on other servers, and for filters not in memory: their last image has
// everything.
bool has_state_here(Oid relid) {
  const FilterRelation* relation = load_filter_relation(relid);
  return !is_remote(relation) && peek_slot(relation) != nullptr;
}

// Filters that could not be saved, and the reasons.
struct Failures {
  StringInfoData list;
  int count;
};

void note_failure(Failures* failures, const char* name, const ErrorData* error) {
  appendStringInfo(&failures->list, "%s%s: %s", failures->count > 0 ? "\n" : "",
                   quote_identifier(name), error->message);
  ++failures->count;
}

// Cancellation is no failure of this filter, nor is it one that the filter was dropped meanwhile.
void try_to_save(Oid relid, Failures* failures) {
  ErrorData* error = error_in_savepoint([relid] {
    if (!has_state_here(relid)) return;
    FilterHandle* filter = filter_for_use(relid, Use::define);
    save(filter);
  });
  if (error == nullptr) return;
  if (error->sqlerrcode == ERRCODE_QUERY_CANCELED) ReThrowError(error);
  if (const char* name = get_rel_name(relid); name != nullptr) note_failure(failures, name, error);
  FreeErrorData(error);
}

}  // namespace

// streamfilter_save(filter regclass): saves the state of a logged filter when the transaction
// commits. Needs ownership.
SF_FUNCTION(streamfilter_save) {
  require_writable("streamfilter_save()");
  const Oid relid = PG_GETARG_OID(0);
  FilterHandle* filter = filter_for_use(relid, Use::define);
  require_one_node(relid, "streamfilter_save()",
                   "run_command_on_all_nodes($$SELECT streamfilter_save('...')$$)", false);
  require_own_filter(relid);
  if (is_remote(filter->relation))
    call_on_holders(filter->relation, {"streamfilter_save", "save"});
  else
    save(filter);
  PG_RETURN_VOID();
}

// streamfilter_save(): the same for all logged filters of the user on this server. A filter that
// cannot be saved does not keep others from it.
SF_FUNCTION(streamfilter_save_all) {
  require_writable("streamfilter_save()");
  Failures failures{};
  initStringInfo(&failures.list);
  List* filters = list_filters();
  for (const Oid relid : each_oid(filters))
    require_one_node(relid, "streamfilter_save()",
                     "run_command_on_all_nodes($$SELECT streamfilter_save()$$)", false);
  for (const Oid oid : each_oid(filters)) {
    CHECK_FOR_INTERRUPTS();
    if (is_owner(oid, GetUserId())) try_to_save(oid, &failures);
  }
  if (failures.count > 0)
    ereport(WARNING, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
            errmsg_plural("%d filter could not be saved", "%d filters could not be saved",
                          failures.count, failures.count),
            errdetail_internal("%s", failures.list.data));
  PG_RETURN_VOID();
}

// ---- the worker that saves a filter whose log has outgrown it ----------------------------------

extern "C" {
PGDLLEXPORT void streamfilter_save_worker(Datum);
}

static void save_in_worker(Datum) {
  Oid ids[2];
  memcpy(ids, MyBgworkerEntry->bgw_extra, sizeof ids);
  connect_worker(ids[0]);
  pgstat_report_activity(STATE_RUNNING, "streamfilter: saving a filter");
  StartTransactionCommand();
  vacuum_after_image(ids[1]);
  CommitTransactionCommand();
  StartTransactionCommand();
  PushActiveSnapshot(GetTransactionSnapshot());
  if (is_filter(ids[1])) {
    FilterHandle* filter = filter_for_use(ids[1], Use::test_granted);
    if (filter->relation->options.persistence == Persistence::logged) save_at_commit(filter);
  }
  PopActiveSnapshot();
  CommitTransactionCommand();
  pgstat_report_activity(STATE_IDLE, nullptr);
}

void streamfilter_save_worker(Datum) { run_worker(save_in_worker, static_cast<Datum>(0)); }

// ---- forgetting what is saved -------------------------------------------------------------------

namespace {

// The first slot after nullptr. While the relation is locked, its slots stay in their list.
FilterSlot* slot_after(const FilterSlot* slot, Oid relid) {
  const LockHeld held(shared_state->directory_lock, LW_SHARED);
  return slot != nullptr ? next_slot_of(slot) : first_slot_of(MyDatabaseId, relid);
}

// Notes for the end of the transaction that nothing is saved any more. Slots of uncommitted
// definitions, or being built by others, are safe while the relation is locked.
void note_forgotten(Oid relid) {
  if (shared_state == nullptr) return;
  for (FilterSlot* slot = nullptr; (slot = slot_after(slot, relid)) != nullptr;) {
    if (slot->state != SlotState::live && slot->state != SlotState::pending) continue;
    TransactionChanges* changes = begin_changes(slot, block_of(slot));
    if (changes->saving.wanted_level > 0)
      ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
              errmsg("this transaction has saved filter \"%s\"", get_rel_name(relid)),
              errhint("Commit before."));
    changes->saving.forgotten_level = GetCurrentTransactionNestLevel();
    spoil_copy(slot);
    if (slot->saved.logged)
      ereport(NOTICE, errmsg("nothing is saved of filter \"%s\" now", get_rel_name(relid)),
              errhint("Until its next change or streamfilter_save() saves all of it, a restart "
                      "empties it."));
  }
}

// The lock keeps away sessions that would write to its log, or are reading what is deleted.
uint64 forget_saved(Oid relid) {
  LockRelationOid(relid, AccessExclusiveLock);
  if (!is_filter(relid)) return 0;  // dropped meanwhile
  const uint64 bytes = delete_saved_state(relid);
  note_forgotten(relid);
  return bytes;
}

// Deletes what its servers have saved. An unreadable definition does not name them.
uint64 forget_on_servers(Oid relid) {
  Fault fault;
  const FilterRelation* relation = show_filter_relation(relid, fault);
  if (relation == nullptr) {
    if (find_option(options_of_filter(relid), "servers") != nullptr)
      ereport(WARNING, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
              errmsg("filter \"%s\" cannot be read: what its servers have saved stays",
                     get_rel_name(relid)),
              errdetail_internal("%s", fault.text()),
              errhint("Type on each of them: SELECT streamfilter_forget_saved('...')."));
    return 0;
  }
  if (!is_remote(relation)) return 0;
  const uint64 bytes =
      call_on_holders(relation, {"streamfilter_forget_saved", "forget what is saved of"});
  if (bytes > 0)
    ereport(
        NOTICE, errmsg("nothing is saved of filter \"%s\" on its servers now", relation->name),
        errhint(
            "Until its next change or streamfilter_save() saves all of it, a restart empties it."));
  return bytes;
}

void lock_filters() {
  for (const Oid filter : each_oid(list_filters())) LockRelationOid(filter, AccessExclusiveLock);
}

}  // namespace

// streamfilter_forget_saved(filter regclass) → bigint: deletes what is saved of the filter, and
// returns its bytes. Needs ownership. The filter itself stays unchanged.
SF_FUNCTION(streamfilter_forget_saved) {
  require_writable("streamfilter_forget_saved()");
  const Oid relid = PG_GETARG_OID(0);
  require_own_filter(relid);
  require_one_node(relid, "streamfilter_forget_saved()",
                   "run_command_on_all_nodes($$SELECT streamfilter_forget_saved('...')$$)", false);
  const uint64 bytes = forget_saved(relid);
  PG_RETURN_INT64(static_cast<int64>(bytes + forget_on_servers(relid)));
}

// streamfilter_forget_saved(): the same for all filters of the database, whatever the state of the
// heaps. For superusers.
SF_FUNCTION(streamfilter_forget_all_saved) {
  require_writable("streamfilter_forget_saved()");
  if (!superuser())
    ereport(ERROR, errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
            errmsg("must be superuser to forget what is saved of all filters"));
  for (const Oid filter : each_oid(list_filters()))
    require_one_node(filter, "streamfilter_forget_saved()",
                     "run_command_on_all_nodes($$SELECT streamfilter_forget_saved()$$)", false);
  lock_filters();
  StateTables tables;
  open_all_saved(&tables);
  lock_filters();  // one may have been created meanwhile
  for (const Oid relid : each_oid(list_filters())) note_forgotten(relid);
  empty_state_tables(tables);
  close_state_tables(tables);
  PG_RETURN_VOID();
}

// Declared by tests: (filter regclass) → bigint, the assumed bytes of the filter's log. NULL: the
// filter is not in memory.
SF_FUNCTION(streamfilter_log_bytes) {
  const FilterSlot* slot = peek_slot(load_filter_relation(PG_GETARG_OID(0)));
  if (slot == nullptr) PG_RETURN_NULL();
  PG_RETURN_INT64(static_cast<int64>(pg_atomic_read_u64(&slot->log.bytes)));
}

// ---- functions for use in any query -------------------------------------------------------------

// Functions that ask may be declared wrongly.
static void refuse_in_parallel() {
  if (!IsInParallelMode()) return;
  ereport(ERROR, errcode(ERRCODE_INVALID_TRANSACTION_STATE),
          errmsg("streamfilter_seen() cannot run in a parallel query"),
          errdetail("A function that calls it is declared PARALLEL SAFE or RESTRICTED."),
          errhint("ALTER FUNCTION ... PARALLEL UNSAFE."));
}

// streamfilter_seen(filter regclass, VARIADIC key "any") → boolean: was the key seen before?
// Remembers it once the transaction commits. Also false if the filter's mode lets all rows pass.
// Needs INSERT on the filter.
SF_FUNCTION(streamfilter_seen) {
  require_writable("streamfilter_seen()");
  if (unlikely(fcinfo->flinfo->fn_extra == nullptr)) {
    refuse_in_parallel();
    if (!PG_ARGISNULL(0)) require_shard_node(PG_GETARG_OID(0), "streamfilter_seen");
  }
  KeyCall* site = key_call_site(fcinfo, Use::judge, "streamfilter_seen", false);
  FilterHandle* filter = site->keys.filter;
  check_mode(filter, InvalidOid);
  const FilterMode mode = filter->mode;
  if (unlikely(mode == FilterMode::off)) PG_RETURN_BOOL(false);
  note_called(filter, fcinfo->flinfo->fn_mcxt);
  Element element;
  if (!build_element(&site->keys, fcinfo->args + 1, &element)) {
    count_row(filter, RowCount::null_keys);
    PG_RETURN_BOOL(false);
  }
  bound_time(filter, &element);
  filter->route.way = route_in_query(&site->keys).way;
  const bool enforced = mode == FilterMode::enforce;
  const Verdict verdict = judge_key(filter, element, Intent::insert,
                                    enforced ? Outcome::discarded : Outcome::would_discard);
  PG_RETURN_BOOL(verdict != Verdict::fresh && enforced);
}

// streamfilter_test(filter regclass, VARIADIC key "any") → boolean: was the key seen before?
// Remembers nothing; role columns may be left out. Needs SELECT on the filter.
SF_FUNCTION(streamfilter_test) {
  if (unlikely(fcinfo->flinfo->fn_extra == nullptr) && !PG_ARGISNULL(0))
    require_shard_node(PG_GETARG_OID(0), "streamfilter_test");
  KeyCall* site = key_call_site(fcinfo, Use::test, "streamfilter_test", true);
  Element element;
  if (!build_element(&site->keys, fcinfo->args + 1, &element)) PG_RETURN_BOOL(false);
  PG_RETURN_BOOL(judge_key(site->keys.filter, element, Intent::test) != Verdict::fresh);
}

// streamfilter_value(filter regclass) → streamfilter: the shared state as a value. Needs SELECT.
SF_FUNCTION(streamfilter_value) {
  require_shard_node(PG_GETARG_OID(0), "streamfilter_value");
  FilterHandle* filter = filter_for_use(PG_GETARG_OID(0), Use::test);
  if (filter->remote != nullptr && filter->remote->count != 1)
    require_local(filter, "streamfilter_value");
  if (filter->remote != nullptr)
    PG_RETURN_DATUM(fetch_remote_value(filter->remote, get_func_rettype(fcinfo->flinfo->fn_oid)));
  const Parameters& parameters = filter->header->parameters;
  if (Problem problem; !fits_value(parameters, problem)) raise(problem);
  Header* copy = copy_filter(filter);
  // Requested options may have been altered since the state was built.
  copy->parameters.keys = filter->relation->definition.parameters.keys;
  copy->parameters.fpr = filter->relation->definition.parameters.fpr;
  copy->parameters.nulls = filter->rule.nulls;
  PG_RETURN_DATUM(stored_datum(copy));
}

// streamfilter_merge(filter regclass, streamfilter): adds the value's keys to the shared state.
// Both must have equal kind, parameters and seed. Needs INSERT.
SF_FUNCTION(streamfilter_merge) {
  require_writable("streamfilter_merge()");
  require_shard_node(PG_GETARG_OID(0), "streamfilter_merge");
  FilterHandle* filter = filter_handle(PG_GETARG_OID(0));
  const Header* value = get_value(PG_GETARG_DATUM(1));
  use_filter(filter, Use::insert);
  require_local(filter, "streamfilter_merge");
  Problem problem;
  if (!mergeable(filter->header->parameters, value->parameters, problem)) raise(problem);
  merge_into_filter(filter, value);
  PG_RETURN_VOID();
}

}  // namespace streamfilter::pg
