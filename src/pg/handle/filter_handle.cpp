// The handles of a backend. A handle lives as long as the backend. When an invalidation says that
// the relation may have changed, its parts are replaced; the old parts live until the end of the
// transaction, because a caller further up the stack may still use them. If the handle is not used
// again by then, for example after DROP, the parts are only freed.
#include "pg/server/postgres.hpp"

extern "C" {
#include "catalog/pg_parameter_acl.h"
#include "utils/catcache.h"
}

#include "pg/catalog/lookup.hpp"
#include "pg/catalog/slice_origin.hpp"
#include "pg/handle/filter_handle.hpp"
#include "pg/handle/tree.hpp"
#include "pg/key/hash_method.hpp"
#include "pg/remote/remote_filter.hpp"
#include "pg/server/no_raise.hpp"
#include "pg/shmem/loss_estimate.hpp"
#include "pg/storage/restore.hpp"
#include "pg/transaction/prepared_transactions.hpp"

namespace streamfilter::pg {
namespace {

HTAB* handles = nullptr;        // FilterHandle by relid
FilterHandle* dirty = nullptr;  // handles with counts to flush
// parent of replaced contexts; emptied at the end of the transaction
MemoryContext outdated = nullptr;
constexpr int32 kFlushEvery = 8192;
bool is_any_stale = false;  // some handle is invalid and still has parts
uint64 lock_epoch = 1;      // advances when locks may have been released

void invalidate(FilterHandle* filter) {
  filter->validity.valid = false;
  is_any_stale = true;
}

void add_found(FilterHandle* filter, bool is_attached) {
  for (uint64 rest = filter->uncounted.found_positions; rest != 0; rest &= rest - 1) {
    const int position = pg_rightmost_one_pos64(rest);
    if (is_attached)
      pg_atomic_fetch_add_u64(&filter->slot->stats.found_at[position],
                              filter->uncounted.found_at[position]);
    filter->uncounted.found_at[position] = 0;
  }
  filter->uncounted.found_positions = 0;
}

void tell_of(const FilterHandle* filter) {
  const HandleCounts& counts = filter->uncounted;
  JudgedRows judged = {filter->relid, counts.rows[RowCount::accepted], {}};
  for (int i = 0; i < kOutcomes; ++i) judged.repeats[i] = counts.rows[kRowCountOf[i]];
  judged[Outcome::marked] = counts.marked;  // the filter's counter has them, too
  judged[Outcome::discarded] -= counts.marked;
  for (const uint64 repeats : judged.repeats) judged.rows += repeats;
  add_judged_rows(judged);
}

// Adds what is not yet counted in shared memory to the counts there.
void add_counters(FilterHandle* filter) {
  if (unlikely(collects_judged_rows)) tell_of(filter);
  if (filter->remote != nullptr) {
    add_filter_counts(filter->relid, filter->uncounted.rows);
    flush_slice_work(filter->remote);
  }
  const bool is_attached =
      filter->slot != nullptr && filter->slot->generation == filter->slot_generation;
  add_found(filter, is_attached);
  if (is_attached) {
    const RowCounts& counts = filter->uncounted.rows;
    add_losses(filter->slot,
               {counts[RowCount::accepted], filter->uncounted.spared,
                counts[RowCount::discarded] - filter->uncounted.marked, has_truncated(filter)});
    filter->slot->stats.counts.add(filter->uncounted.rows);
  }
  filter->uncounted.accepted_before = accepted_by(filter);
  filter->uncounted.rows = {};
  filter->uncounted.marked = filter->uncounted.spared = 0;
}

// The first count since then.
void note_rows_counted(FilterHandle* filter) {
  if (filter->uncounted.dirty) return;
  transaction_uses_filters = true;
  filter->uncounted.dirty = true;
  filter->uncounted.left = kFlushEvery;
  filter->uncounted.next_dirty = dirty;
  dirty = filter;
}

// Frees parts that the next use loads anew.
void free_parts(FilterHandle* filter) {
  MemoryContextDelete(filter->validity.context);
  filter->validity.context = nullptr;
  filter->validity.loaded = false;
  filter->relation = nullptr;
  filter->hashers = nullptr;
  filter->tree = nullptr;
  filter->remote = nullptr;
  filter->slot = filter->former_slot = nullptr;
  filter->header = nullptr;
}

// At the end of the transaction no caller uses stale parts any more.
void free_stale_parts() {
  if (!is_any_stale) return;
  is_any_stale = false;
  HASH_SEQ_STATUS scan;
  hash_seq_init(&scan, handles);
  while (auto* filter = static_cast<FilterHandle*>(hash_seq_search(&scan)))
    if (!filter->validity.valid && filter->validity.context != nullptr) free_parts(filter);
}

TypeHasher** make_hashers(const FilterRelation* relation) {
  auto** hashers = allocate<TypeHasher*>(relation->key_count);
  for (int i = 0; i < relation->key_count; ++i) {
    const FilterColumn* column = relation->keys[i];
    hashers[i] =
        make_type_hasher(column->type, column->collation,
                         psprintf("column \"%s\" of filter \"%s\"", column->name, relation->name));
  }
  return hashers;
}

// Hash functions of user types are not trusted.
bool hashes_as_owner(const FilterRelation* relation, TypeHasher* const* hashers) {
  for (int i = 0; i < relation->key_count; ++i)
    if (hasher_runs_untrusted_code(hashers[i])) return true;
  return false;
}

WordKey word_key_of(const FilterHandle* filter) {
  return filter->hashes_specially
             ? WordKey::no
             : word_key(filter->hashers, filter->relation->key_count, filter->rule);
}

// Replaces definition and hashers.
void load(FilterHandle* filter) {
  transaction_uses_filters = true;
  MemoryContext context = make_small_context("streamfilter handle");
  MemoryContext caller = MemoryContextSwitchTo(context);
  filter->validity.loaded = false;
  // An invalidation while the catalogs are read must not get lost.
  filter->validity.valid = true;
  FilterRelation* relation = load_filter_relation(filter->relid);
  for (int i = 0; i < relation->column_count; ++i) check_role(&relation->columns[i], relation);
  TypeHasher** hashers = make_hashers(relation);
  RemoteFilter* remote = is_remote(relation) ? make_remote_filter(relation) : nullptr;
  TreeNode* tree = make_tree_node(relation);
  MemoryContextSwitchTo(caller);

  MemoryContextSetParent(context, CacheMemoryContext);
  if (filter->validity.context != nullptr)
    MemoryContextSetParent(filter->validity.context, outdated);
  filter->validity.context = context;
  filter->relation = relation;
  filter->hashers = hashers;
  filter->tree = tree;
  filter->rule = key_rule(relation->definition.parameters);
  filter->times.used = uses_time(relation->definition.parameters);
  filter->times.by_clock = filter->times.used && relation->time == nullptr;
  filter->times.max_future = max_future_of(relation);
  const bool usual = expects_usual_times(relation);
  filter->times.numbers = usual ? relation->time : nullptr;
  filter->times.earliest = usual ? kUsualTimes[0] : PG_INT64_MIN;
  filter->times.latest = filter->times.max_future != PG_INT64_MAX ? PG_INT64_MIN
                         : usual                                  ? kUsualTimes[1]
                                                                  : PG_INT64_MAX;
  filter->times.warned = false;
  filter->hashes_specially = hashes_as_owner(relation, hashers);
  check_key_rule(hashers, relation->key_count, filter->rule);
  filter->word = word_key_of(filter);
  filter->slot = filter->former_slot = nullptr;
  filter->header = nullptr;
  filter->remote = remote;
  choose_operations(filter);
  filter->validity.checked_user = InvalidOid;
  filter->validity.checked_rights = 0;
  filter->validity.depends = false;
  filter->validity.loaded = true;
  ++filter->version;
}

LOCKMODE lock_for(Use use) {
  switch (use) {
    case Use::insert:
    case Use::insert_granted:
    case Use::judge:
    case Use::judge_granted:
    case Use::erase: return RowExclusiveLock;
    default: return AccessShareLock;
  }
}

// Records the dependencies that CREATE, ALTER and IMPORT record where event triggers run.
void record_dependencies(FilterHandle* filter, Use use) {
  const FilterRelation* relation = filter->relation;
  if (filter->validity.depends || lock_for(use) != RowExclusiveLock || !may_record_dependencies())
    return;
  filter->validity.depends = true;
  // Another look after what is recorded now, since this transaction may roll back.
  if (is_remote(relation)) filter->validity.depends &= depend_on_servers(relation);
  if (OidIsValid(relation->parent))
    filter->validity.depends &= depend_on(relation->relid, RelationRelationId, relation->parent);
}

// A version that derived other parameters may have made the state; it keeps them.
void adopt_state(FilterHandle* filter, FilterSlot* slot) {
  auto* relation = const_cast<FilterRelation*>(filter->relation);
  const Parameters& parameters = filter->header->parameters;
  slot->server = relation->server;  // pg_upgrade gives servers other OIDs
  // Altered where no hook ran: without a header, the next change writes an image.
  const bool logged = relation->options.persistence == Persistence::logged;
  if (!relation->uncommitted && slot->saved.logged != logged) {
    slot->saved.logged = logged;
    if (logged) pg_atomic_write_u32(&slot->saved.has_header, 0);
  }
  if (has_same_geometry(relation->definition.parameters, parameters)) return;
  adopt_geometry(relation, parameters);
  filter->rule = key_rule(relation->definition.parameters);
  filter->word = word_key_of(filter);
  filter->times.used = uses_time(relation->definition.parameters);
  filter->times.by_clock = filter->times.used && relation->time == nullptr;
}

// On a standby the state follows replay, and may have to be rebuilt.
FilterSlot* attach_newest(const FilterRelation* relation, bool empties) {
  for (;;) {
    FilterSlot* slot = attach_slot(relation, empties);
    if (slot->standby.follows) follow_log(slot, relation);
    if (slot->state != SlotState::retired) return slot;
  }
}

// Most transactions find what the one before has left. The lock on the relation keeps it in place.
bool attach_former(FilterHandle* filter) {
  FilterSlot* slot = filter->former_slot;
  if (slot == nullptr || filter->tree != nullptr || filter->relation->uncommitted) return false;
  resolve_removals(filter->relid);
  if (slot->generation != filter->slot_generation || slot->state != SlotState::live ||
      slot->standby.follows || block_of(slot) != filter->header)
    return false;
  filter->slot = slot;
  note_false_rate(slot);
  return true;
}

void set_overfull_limit(FilterHandle* filter) {
  filter->overfull.limit =
      overfull_limit(filter->header->parameters, promised_fpr_of(filter->relation));
  memset(static_cast<void*>(filter->overfull.verdicts), 0, sizeof filter->overfull.verdicts);
  filter->overfull.passes = !discards_overfull(filter->relation);
  note_passing_rate(filter->slot, filter->overfull.passes && !filter->overfull.limit.is_none()
                                      ? filter->overfull.limit.rate
                                      : 0);
}

// May wait for the network: the seed is asked of the other servers until one has told it.
void attach_remote(FilterHandle* filter, Use use) {
  record_dependencies(filter, use);
  learn_seed(filter->remote);
  filter->rule.seed = filter->remote->parameters.seed;
}

// May wait for what reads the state from disk, here and in ancestors; for those whose state is on
// other servers, as above.
void attach_here(FilterHandle* filter, Use use) {
  if (filter->relation->options.parent != nullptr) {
    join_parent(filter, const_cast<FilterRelation*>(filter->relation), use);
    record_dependencies(filter, use);
  }
  const bool empties = use == Use::empty && !is_in_tree(filter->relid);
  FilterSlot* slot = attach_newest(filter->relation, empties);
  filter->slot = slot;
  filter->slot_generation = slot->generation;
  filter->header = block_of(slot);
  adopt_state(filter, slot);
  set_overfull_limit(filter);
  note_false_rate(slot);
  filter->rule.seed = filter->header->parameters.seed;
}

AclMode right_for(Use use) {
  switch (use) {
    case Use::insert:
    case Use::judge: return ACL_INSERT;
    case Use::test: return ACL_SELECT;
    default: return 0;
  }
}

void check_right_on(FilterHandle* filter, AclMode right) {
  const Oid user = GetUserId();
  if (filter->validity.checked_user != user) {
    filter->validity.checked_user = user;
    filter->validity.checked_rights = 0;
  }
  if ((filter->validity.checked_rights & right) == right) return;
  const AclResult result = pg_class_aclcheck(filter->relid, user, right);
  if (result != ACLCHECK_OK) aclcheck_error(result, OBJECT_FOREIGN_TABLE, filter->relation->name);
  filter->validity.checked_rights |= right;
}

// May wait for others who alter the relation.
void take_lock(FilterHandle* filter, LOCKMODE mode) {
  if (filter->uncounted.dirty) add_counters(filter);
  transaction_uses_filters = true;
  LockRelationOid(filter->relid, mode);
  filter->validity.lock_epoch = lock_epoch;
  filter->validity.lockmode = mode;
  filter->validity.checked_user = InvalidOid;
  // While no lock was held the slot may have been dropped and built anew.
  if (filter->slot != nullptr) filter->former_slot = filter->slot;
  filter->slot = nullptr;
}

void resolve_mode(FilterHandle* filter, bool judges) {
  filter->mode = FilterMode::enforce;
  filter->mode_overridden = false;
  if (judges) filter->mode = mode_in_use(filter->relation, &filter->mode_overridden);
}

// Rows that are judged wait for the slice of their key alone (await_key), unless a tree is
// searched.
bool needs_all_slices(const FilterHandle* filter, Use use) {
  return filter->slot != nullptr && !is_whole(filter->slot) && !has_truncated(filter) &&
         ((use != Use::judge && use != Use::judge_granted && use != Use::empty) ||
          filter->tree != nullptr);
}

}  // namespace

void on_filter_change(Oid relid) {
  const NoRaise marked;
  if (handles == nullptr) return;
  ++handle_epoch;
  if (!OidIsValid(relid)) return for_each_entry<FilterHandle>(handles, invalidate);
  if (auto* filter = static_cast<FilterHandle*>(hash_search(handles, &relid, HASH_FIND, nullptr)))
    invalidate(filter);
}

void on_server_change(Datum, SF_SYSCACHE_ID, uint32) { on_filter_change(InvalidOid); }

FilterHandle* filter_handle(Oid relid) {
  // Handles stay where they are; a commit asks for the same one several times.
  static FilterHandle* latest = nullptr;
  if (latest != nullptr && latest->relid == relid) return latest;
  if (handles == nullptr) {
    if (CacheMemoryContext == nullptr) CreateCacheMemoryContext();
    outdated = make_small_context("streamfilter outdated handles", CacheMemoryContext);
    handles = make_hash_table<Oid, FilterHandle>("streamfilter handles", 16, CacheMemoryContext);
  }
  bool found;
  auto* filter = static_cast<FilterHandle*>(hash_search(handles, &relid, HASH_ENTER, &found));
  if (!found) {
    memset(static_cast<void*>(filter), 0, sizeof *filter);
    filter->relid = relid;
  }
  return latest = filter;
}

void make_ready(FilterHandle* filter, Use use) {
  HandleValidity* validity = &filter->validity;
  const LOCKMODE lockmode = lock_for(use);
  const bool judges = use == Use::judge || use == Use::judge_granted;
  validity->used_epoch = 0;
  filter->route = {};
  // Of the transaction.
  if (unlikely(validity->lock_epoch != lock_epoch || validity->lockmode < lockmode))
    take_lock(filter, lockmode);
  // Of the session. After a failure the locks were given back, so that this is asked again.
  if (unlikely(!is_loaded(filter))) {
    add_counters(filter);
    load(filter);
  }
  // Of this use.
  if (const AclMode right = right_for(use)) check_right_on(filter, right);
  resolve_mode(filter, judges);
  // Of the transaction.
  if (unlikely(filter->slot == nullptr) && use != Use::define && filter->mode != FilterMode::off &&
      !attach_former(filter))
    filter->remote != nullptr ? attach_remote(filter, use) : attach_here(filter, use);
  if (unlikely(needs_all_slices(filter, use))) await_all_slices(filter->slot, filter->relation);
  validity->used_epoch = handle_epoch;
  validity->used_by = GetUserId();
  validity->used_for = use;
}

bool hash_specially(const FilterHandle* filter, const Datum* values, const bool* isnull,
                    uint64* hash) {
  const FilterRelation* relation = filter->relation;
  const Caller caller = become_owner(filter->relid, relation->owner);
  const bool has_key =
      hash_key(filter->hashers, values, isnull, relation->key_count, filter->rule, hash);
  return_to(caller);
  return has_key;
}

void follow_counts(FilterHandle* filter) {
  if (filter->uncounted.dirty) add_counters(filter);
  note_rows_counted(filter);
  filter->uncounted.left = kFlushEvery;
}

void count_rows(FilterHandle* filter, RowCount what, int rows) {
  if (rows == 0) return;
  filter->uncounted.rows[what] += static_cast<uint64>(rows);
  note_rows_counted(filter);
}

void require_local(const FilterHandle* filter, const char* what) {
  if (filter->remote == nullptr) return;
  ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
          errmsg("%s cannot be used on filter \"%s\"", what, filter->relation->name),
          errdetail("Its state is on another server."),
          errhint("Use it there, on the filter of the same name."));
}

void count_found(FilterHandle* filter, unsigned position) {
  note_rows_counted(filter);
  ++filter->uncounted.found_at[position];
  filter->uncounted.found_positions |= UINT64CONST(1) << position;
}

void flush_counters() {
  flush_trigger_counts();
  while (dirty != nullptr) {
    FilterHandle* filter = dirty;
    dirty = filter->uncounted.next_dirty;
    filter->uncounted.dirty = false;
    filter->uncounted.left = 0;
    add_counters(filter);
  }
}

void end_subtransaction_of_handles() {
  flush_counters();
  ++lock_epoch;
  ++handle_epoch;
}

void end_transaction_of_handles() {
  end_subtransaction_of_handles();
  if (outdated == nullptr) return;
  MemoryContextDeleteChildren(outdated);
  free_stale_parts();
}

// ---- its mode -----------------------------------------------------------------------------------

constexpr char kSetting[] = "streamfilter.mode";

// The filter's owner can alter its mode, and the table's owner can disable the trigger. Others need
// a granted right.
static bool may_override(const FilterRelation* relation, Oid table_owner) {
  const Oid role = session_mode.origin.set_by;
  return has_privs_of_role(role, relation->owner) ||
         (OidIsValid(table_owner) && has_privs_of_role(role, table_owner)) ||
         pg_parameter_aclcheck(kSetting, role, ACL_SET) == ACLCHECK_OK;
}

FilterMode mode_in_use(const FilterRelation* relation, bool* overridden) {
  *overridden = false;
  if (!enabled) return FilterMode::off;
  const FilterMode own = relation->options.mode;
  if (!session_mode.given || session_mode.mode == own) return own;
  *overridden = OidIsValid(session_mode.origin.set_by);
  return session_mode.mode;
}

void check_override(const FilterRelation* relation, FilterMode mode, Oid table_owner) {
  if (may_override(relation, table_owner)) return;
  const char* role = name_of_role(session_mode.origin.set_by);
  ereport(
      ERROR, errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
      errmsg("permission denied to use filter \"%s\" in mode %s", relation->name, name_of(mode)),
      OidIsValid(table_owner)
          ? errdetail("Role \"%s\" has set %s, but owns neither the filter nor the table.", role,
                      kSetting)
          : errdetail("Role \"%s\" has set %s, but does not own the filter.", role, kSetting),
      errhint("RESET %s, or have a superuser GRANT SET ON PARAMETER %s TO %s.", kSetting, kSetting,
              quote_identifier(role)));
}

// ---- trees --------------------------------------------------------------------------------------

TreeNode* make_tree_node(const FilterRelation* relation) {
  List* children = find_children(relation->relid);
  if (relation->options.parent == nullptr && children == NIL) return nullptr;
  auto* node = allocate_zeros<TreeNode>();
  node->parent = OidIsValid(relation->parent) ? filter_handle(relation->parent) : nullptr;
  node->child_count = list_length(children);
  node->children = allocate<FilterHandle*>(node->child_count);
  for (int i = 0; i < node->child_count; ++i)
    node->children[i] = filter_handle(list_nth_oid(children, i));
  for (const Oid child : each_oid(find_descendants(relation->relid)))
    node->searched |= static_cast<int>(tree_options_of(child).top_down) > relation->level;
  return node;
}

void join_parent(FilterHandle* filter, FilterRelation* relation, Use use) {
  check_way_up(relation);
  TreeNode* node = filter->tree;
  FilterHandle* parent = node->parent;
  use_filter(parent, use == Use::test || use == Use::test_granted ? Use::test_granted
                                                                  : Use::insert_granted);
  if (node->checked != parent->version) {
    check_fit(ERROR, relation, parent->relation);
    check_rights_on_parent(ERROR, relation, parent->relation);
    node->checked = parent->version;
  }
  if (!relation->adopts_seed) return;
  relation->uncommitted |= parent->relation->uncommitted;
  adopt_seed(relation, parent->rule.seed);
}

// ---- rows that were judged ----------------------------------------------------------------------

bool collects_judged_rows = false;

namespace {

constexpr int kMaxFilters = 32;
JudgedRows judged[kMaxFilters];
int judged_count = 0;

void append(StringInfo text, uint64 rows, const char* what) {
  if (rows == 0) return;
  const char* unit = rows == 1 ? " row" : " rows";
  const bool first = text->len == 0;
  appendStringInfo(text, "%s%llu%s %s", first ? "" : ", ", llu(rows), first ? unit : "", what);
}

}  // namespace

void add_judged_rows(const JudgedRows& more) {
  int i = 0;
  while (i < judged_count && judged[i].filter != more.filter) ++i;
  if (i == kMaxFilters) return;
  if (i == judged_count) judged[judged_count++] = {more.filter, 0, {}};
  judged[i].rows += more.rows;
  for (int outcome = 0; outcome < kOutcomes; ++outcome)
    judged[i].repeats[outcome] += more.repeats[outcome];
}

void collect_judged_rows(bool wanted) {
  collects_judged_rows = wanted;
  judged_count = 0;
}

int judged_filters() { return judged_count; }
const JudgedRows& judged_by(int i) { return judged[i]; }

const char* describe_judged_rows(const JudgedRows& rows) {
  TextBuffer text;
  for (int outcome = 0; outcome < kOutcomes; ++outcome)
    append(&text, rows.repeats[outcome], kWordsOf[outcome]);
  if (text.len == 0) return nullptr;
  return psprintf("%s, of %llu judged", text.data, llu(rows.rows));
}

}  // namespace streamfilter::pg
