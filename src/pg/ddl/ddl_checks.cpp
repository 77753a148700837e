// An event trigger checks CREATE and ALTER, also without preloading. A hook notices DROP, which
// must not be missed if there is state to free.
#include "pg/server/postgres.hpp"

extern "C" {
#include "catalog/pg_constraint.h"
#include "catalog/pg_database.h"
#include "commands/event_trigger.h"
#include "parser/parse_type.h"
}

#include "pg/binding/trigger_binding.hpp"
#include "pg/catalog/lookup.hpp"
#include "pg/catalog/option_list.hpp"
#include "pg/catalog/slice_origin.hpp"
#include "pg/citus/citus_tables.hpp"
#include "pg/ddl/ddl_checks.hpp"
#include "pg/ddl/own_objects.hpp"
#include "pg/ddl/remote_ddl.hpp"
#include "pg/ddl/server_ddl.hpp"
#include "pg/handle/lost_rows.hpp"
#include "pg/handle/tree.hpp"
#include "pg/key/enum_births.hpp"
#include "pg/key/hash_method.hpp"
#include "pg/remote/remote_filter.hpp"
#include "pg/resize/resize_filter.hpp"
#include "pg/shmem/log_pages.hpp"
#include "pg/storage/image.hpp"
#include "pg/storage/restore.hpp"
#include "pg/storage/saved_definition.hpp"
#include "pg/trigger/trigger_ddl.hpp"

namespace streamfilter::pg {
namespace {

// ---- the default rate ---------------------------------------------------------------------------

// The default false-positive rate. It is written into a filter's options, so that the filter keeps
// it when the default changes.

void add_fpr(Oid relid, const char* fpr) {
  Relation catalog = table_open(ForeignTableRelationId, RowExclusiveLock);
  HeapTuple tuple = copy_of_row(FOREIGNTABLEREL, relid);
  if (!HeapTupleIsValid(tuple)) elog(ERROR, "cache lookup failed for foreign table %u", relid);
  int column = Anum_pg_foreign_table_ftoptions;
  bool isnull;
  const Datum former = SysCacheGetAttr(FOREIGNTABLEREL, tuple, column, &isnull);
  Datum options = transformGenericOptions(ForeignTableRelationId, isnull ? Datum{0} : former,
                                          list_make1(make_option("fpr", fpr)), InvalidOid);
  isnull = false;
  HeapTuple altered =
      heap_modify_tuple_by_cols(tuple, RelationGetDescr(catalog), 1, &column, &options, &isnull);
  CatalogTupleUpdate(catalog, &altered->t_self, altered);
  table_close(catalog, RowExclusiveLock);
  CacheInvalidateRelcacheByRelid(relid);
  CommandCounterIncrement();
}

// Call for a filter that CREATE has made or ALTER has changed: numbers of the kind that kept CREATE
// from writing a rate may be gone. A node of a tree takes its parent's rate. Raises 22023 if the
// filter cannot keep the rate and names nothing that overrides it; that is a WARNING where a dump
// may be restored.
// check_function_bodies is no reason to leave it out: dumps have the rate, and it is off in
// migrations, too.
void write_default_fpr(Oid relid) {
  if (!is_filter(relid)) return;
  List* options = options_of_filter(relid);
  const char* fpr = kDefaultFpr;
  if (const Oid parent = find_parent(relid); OidIsValid(parent) && is_filter(parent))
    fpr = find_option(options_of_filter(parent), "fpr");
  Fault fault;
  if (fpr != nullptr && takes_fpr(options, fpr, fault))
    add_fpr(relid, fpr);
  else if (fault)
    ereport(is_restoring() ? WARNING : ERROR, fault_report(fault));
}

// ---- checks -------------------------------------------------------------------------------------

// What an ALTER does to the filter's keys.
enum class Alteration : uint8 {
  none,      // a new filter
  relation,  // another owner, or an option such as mode: nothing
  state,
};

Alteration alteration_by(const AlterTableStmt* statement) {
  Alteration alteration = Alteration::relation;
  for (const auto* command : each<AlterTableCmd>(statement->cmds)) {
    if (command->subtype == AT_ChangeOwner) continue;
    List* options = command->subtype == AT_GenericOptions ? castNode(List, command->def) : NIL;
    if (options == NIL || !keeps_state(options)) alteration = Alteration::state;
  }
  return alteration;
}

// PostgreSQL's own callback raises XX000 for a relation that another session has just dropped.
void check_owner(const RangeVar* name, Oid relid, Oid, void*) {
  if (OidIsValid(owner_of(relid)) && !is_owner(relid, GetUserId()))
    aclcheck_error(ACLCHECK_NOT_OWNER, get_relkind_objtype(get_rel_relkind(relid)), name->relname);
}

// What the definition that is being altered derived.
struct Before {
  Oid relid;
  Parameters parameters;
} altered_from;

// Restores a filter before its definition is altered: afterwards nobody could tell what is saved.
// Takes the lock of ALTER. Without room for it, the saved state is set aside.
void load_before(const AlterTableStmt* statement) {
  altered_from.relid = InvalidOid;
  if (shared_state == nullptr || RecoveryInProgress() ||
      alteration_by(statement) != Alteration::state)
    return;
  const Oid seen = RangeVarGetRelid(statement->relation, NoLock, true);
  if (!OidIsValid(seen) || !is_filter(seen) || is_in_tree(seen)) return;
  const Oid relid = RangeVarGetRelidExtended(statement->relation, AccessExclusiveLock,
                                             RVR_MISSING_OK, check_owner, nullptr);
  Fault fault;
  if (!OidIsValid(relid) || !is_filter(relid)) return;
  const FilterRelation* relation = show_filter_relation(relid, fault);
  if (relation == nullptr || is_remote(relation) || relation->options.parent != nullptr) return;
  altered_from = {relid, relation->definition.parameters};
  const bool is_loaded = peek_slot(relation) != nullptr;
  if (!is_loaded && !is_anything_saved(relid)) return;
  if (is_loaded || memory_use().largest_free >= room_for(relation->definition.parameters))
    use_filter(filter_handle(relid), Use::test_granted);
}

void free_dropped_filter(Oid relation) {
  if (is_filter(relation)) {
    drop_on_servers(relation);
    // A prepared transaction may keep the heaps for ever, and on another node wait for this one.
    CommitWait().for_lock("while waiting for the heaps that filters are saved in",
                          [relation] { delete_saved_state(relation); });
    leave_tree(relation);
  } else if (const LockHeld held(shared_state->directory_lock, LW_SHARED);
             first_slot_of(MyDatabaseId, relation) == nullptr) {
    return;  // a table of another wrapper
  }
  drop_at_commit(MyDatabaseId, relation);
}

bool is_own_trigger(Oid trigger) {
  TriggerRow row;
  TriggerKind kind;
  return read_trigger_row(trigger, &row) && find_kind(row.function, &kind);
}

void free_dropped(Oid class_id, Oid object) {
  if (class_id == RelationRelationId && get_rel_relkind(object) == RELKIND_FOREIGN_TABLE)
    free_dropped_filter(object);
  else if (class_id == DatabaseRelationId)
    drop_at_commit(object, InvalidOid);
  else if (class_id == TriggerRelationId && is_own_trigger(object))
    drop_trigger_at_commit(object);
}

void check_keys(const FilterRelation* relation) {
  auto** hashers = static_cast<TypeHasher**>(palloc(sizeof(TypeHasher*) * relation->key_count));
  for (int i = 0; i < relation->key_count; ++i) {
    const FilterColumn* column = relation->keys[i];
    const char* what = psprintf("column \"%s\" of filter \"%s\"", column->name, relation->name);
    hashers[i] = make_type_hasher(column->type, column->collation, what);
    if (hashes_to_32_bits(column->type))
      ereport(WARNING, errmsg("the hash of %s has only 32 bits", what),
              errdetail("Type %s has no extended hash function, so among n keys there are "
                        "additional false positives at a rate of n / 2^32.",
                        format_type_be(column->type)));
  }
  check_key_rule(hashers, relation->key_count, key_rule(relation->definition.parameters));
}

// Do keys of the filter meet those that other servers have hashed?
bool keys_travel(Oid filter) {
  for (unsigned i = 0; i < kMaxTreeLevels && OidIsValid(filter); ++i) {
    Fault fault;
    const FilterRelation* relation = read_filter_relation(filter, fault);
    if (relation != nullptr && (is_remote(relation) || relation->options.identity != nullptr))
      return true;
    filter = find_parent(filter);
  }
  return false;
}

// Each server knows only which labels were renamed there.
void check_labels(const FilterRelation* relation) {
  if (!keys_travel(relation->relid)) return;
  for (int i = 0; i < relation->key_count; ++i)
    if (const Oid type = find_renamed_enum(relation->keys[i]->type); OidIsValid(type))
      ereport(is_restoring() ? WARNING : ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
              errmsg("keys of type %s cannot be compared on other servers", format_type_be(type)),
              errdetail("Labels of it were renamed, and only this server knows which."),
              errhint("Give column \"%s\" of filter \"%s\" type text, and its trigger a cast.",
                      relation->keys[i]->name, relation->name));
}

void check_roles(const FilterRelation* relation) {
  for (int i = 0; i < relation->column_count; ++i) check_role(&relation->columns[i], relation);
  const Parameters& parameters = relation->definition.parameters;
  const char* kind = find_ops(parameters.kind)->name;
  if (relation->importance == nullptr && uses_importance(parameters))
    ereport(NOTICE,
            errmsg("kind %s judges by importance, but filter \"%s\" has no such column", kind,
                   relation->name),
            errdetail("Every key is taken to be of the least importance."),
            errhint("Mark a column with OPTIONS (role 'importance')."));
  if (relation->importance != nullptr && !uses_importance(parameters))
    ereport(NOTICE, errmsg("kind %s makes no use of column \"%s\" with role importance", kind,
                           relation->importance->name));
  if (relation->time != nullptr && !uses_time(parameters))
    ereport(NOTICE, errmsg("kind %s makes no use of column \"%s\" with role time", kind,
                           relation->time->name));
}

void check_count(const FilterRelation* relation, int limit, int others) {
  if (others < limit) return;
  ereport(ERROR, errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
          errmsg("filter \"%s\" would exceed the max_filters of its server", relation->name),
          errdetail("The server has %d other filters, and its limit is %d.", others, limit),
          errhint("Drop a filter, or raise max_filters with ALTER SERVER."));
}

// Filters over several servers are limited by those servers.
void check_memory_limit(const FilterRelation* relation, uint64 limit, uint64 others) {
  if (relation->options.servers != nullptr) return;
  const uint64 memory = relation->definition.parameters.memory;
  if (memory <= limit && others <= limit - memory) return;
  ereport(ERROR, errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
          errmsg("filter \"%s\" would exceed the memory_limit of its server", relation->name),
          errdetail(
              "It needs %llu bytes; other filters of the server have %llu, and the limit is %llu.",
              llu(memory), llu(others), llu(limit)),
          errhint("Use less memory, drop a filter, or raise memory_limit with ALTER SERVER."));
}

// Checks the quotas of its server against definitions; the first use checks them against memory.
void check_quotas(const FilterRelation* relation, bool altered) {
  const ServerOptions limits = server_options(server_of_oid(relation->server)->options);
  if (limits.max_filters == PG_INT32_MAX && limits.memory_limit == PG_UINT64_MAX) return;
  const ServerUse others = use_of_server(relation->server, relation->relid);
  if (!altered) check_count(relation, limits.max_filters, others.filters);
  check_memory_limit(relation, limits.memory_limit, others.memory);
}

void check_filter_memory(const FilterRelation* relation) {
  const uint64 memory = room_for(relation->definition.parameters);
  if (shared_state == nullptr) {
    ereport(
        WARNING, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
        errmsg("filter \"%s\" cannot be used yet: streamfilter is not preloaded", relation->name),
        errdetail("Named filters are in shared memory, which the server lays out when it starts."),
        errhint_preload());
    return;
  }
  const uint64 largest = memory_use().largest_free;
  if (memory > largest)
    ereport(WARNING, errcode(ERRCODE_OUT_OF_MEMORY),
            errmsg("not enough shared memory for filter \"%s\" now", relation->name),
            errdetail("It needs %llu bytes at its first use; %llu are free in one piece.",
                      llu(memory), llu(largest)),
            errhint_more_memory());
}

// Would anything be lost with the state that the transaction has of the filter?
bool has_contents(const FilterRelation* relation, const FilterSlot* slot) {
  if (slot == nullptr) return is_anything_saved(relation->relid);
  const TransactionChanges* own = find_changes(relation->relid, slot, slot->generation);
  if (own == nullptr || own->log.count == 0) return !is_whole(slot) || !is_empty(block_of(slot));
  return own->log.last_reset != own->log.count - 1;
}

void warn_of_losses(const FilterRelation* relation, const Problem& problem) {
  ereport(WARNING, errmsg("filter \"%s\" starts empty", relation->name),
          errdetail("Its state does not fit the new definition.%s%s",
                    problem.detail[0] != '\0' ? " " : "", problem.detail),
          errhint("Fill it anew, for example with streamfilter_warm()."));
}

// A filter that becomes logged is saved at commit.
void change_persistence(const FilterRelation* relation, FilterSlot* slot, bool resized) {
  const bool logged = relation->options.persistence == Persistence::logged;
  if (resized ? logged : is_kept_logged(slot) == logged) return;
  keep_at_commit(slot, logged);
  begin_changes(slot, block_of(slot));
  if (logged) return;
  delete_saved_state(slot->relation);
  replace_by_memory_header(slot);
}

// What to do about options that contradict each other. Definitions that were accepted before,
// perhaps by another version, are not refused.
enum class Contradictions : uint8 { accepted, warned_of, refused };

Contradictions in_command(bool is_request) {
  return is_request && !is_restoring() ? Contradictions::refused : Contradictions::warned_of;
}

void check_contradictions(const FilterRelation* relation, Contradictions rule) {
  // A producer's definition is a complete part of its filter, no request.
  if (rule == Contradictions::accepted || relation->options.producer != nullptr) return;
  const Definition& asked = relation->options.asked;
  Definition completed = asked;
  Problem problem;
  if (complete(completed, problem) && check_request(asked, completed, problem)) return;
  ereport(rule == Contradictions::refused ? ERROR : WARNING, problem_report(problem));
}

// No server knows the rate of a key with places on several servers.
void check_overfull(const FilterRelation* relation, bool altered) {
  if (relation->server_count < 2 || probes(relation->definition.parameters) < 2) return;
  const char* given = find_option(options_of_filter(relation->relid), "overfull");
  if (relation->options.overfull == Overfull::discard || (given == nullptr && altered)) return;
  if (given == nullptr)
    ereport(NOTICE,
            errmsg("filter \"%s\" discards repeats also while it holds too much", relation->name),
            errdetail("A key has places on several servers, and each knows only its own part."),
            errhint("Leave out slicing, k1 and k2 if repeats are to pass then; or say that they "
                    "are not, with overfull 'discard'."));
  else
    ereport(is_restoring() ? WARNING : ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
            errmsg("filter \"%s\" cannot let repeats pass while it holds too much", relation->name),
            errdetail("A key has places on several servers, and each knows only its own part."),
            errhint("Use overfull 'discard', or leave out slicing, k1 and k2."));
}

// Checks what happens to new rows once the filter holds too much.
void check_limit(const FilterRelation* relation, bool altered) {
  const FilterOps* ops = find_ops(relation->definition.parameters.kind);
  if (ops->load == nullptr || relation->options.producer != nullptr) return;
  if (promised_fpr_of(relation) > 0) return check_overfull(relation, altered);
  if (altered || is_restoring() || ops->keeps_fpr_forever) return;
  ereport(NOTICE, errmsg("filter \"%s\" promises no false-positive rate", relation->name),
          errdetail("It was given numbers of kind %s and no fpr. The more keys come, the more new "
                    "rows it takes for repeats, without limit.",
                    ops->name),
          errhint("Give it keys and fpr instead, or take a kind that keeps its rate on any "
                  "stream, such as clq."));
}

// The state that the filter has becomes that of its altered definition, if it can. True: it stays,
// or has been taken over.
bool alter_state(const FilterRelation* relation, bool same, bool* resized) {
  FilterSlot* former = latest_slot(relation->relid);
  Problem problem;
  *resized = !same && resize_filter(relation, problem);
  if (same || *resized) {
    change_persistence(relation, *resized ? latest_slot(relation->relid) : former, *resized);
    return true;
  }
  const bool loses = has_contents(relation, former);
  // Of a filter that is not in memory what is saved may be of the altered definition, too.
  if (former == nullptr) {
    const SavedLife saved = saved_life_of(relation);
    if (!loses || (saved.is_usable && relation->options.persistence == Persistence::logged &&
                   has_same_geometry(saved.parameters, relation->definition.parameters)))
      return false;
  }
  start_empty(relation->relid);
  if (loses) warn_of_losses(relation, problem);
  return false;
}

void check_filter(Oid relid, Alteration alteration, Contradictions contradictions) {
  if (!is_filter(relid)) return;
  const FilterRelation* relation = load_filter_relation(relid);
  check_contradictions(relation, contradictions);
  check_keys(relation);
  check_roles(relation);
  depend_on_servers(relation);
  check_tree(relation);
  check_labels(relation);
  const bool altered = alteration != Alteration::none;
  check_limit(relation, altered);
  const FilterSlot* former = altered ? latest_slot(relation->relid) : nullptr;
  const Parameters* derived = altered_from.relid == relid ? &altered_from.parameters : nullptr;
  const bool same = former != nullptr && is_state_wanted(relation, former, derived);
  if (!same) check_quotas(relation, altered);
  if (is_remote(relation)) {
    if (former != nullptr) start_empty(relation->relid);
    return check_slice_definitions(relation);
  }
  bool resized = false;
  const bool has_state = alteration == Alteration::state && shared_state != nullptr
                             ? alter_state(relation, same, &resized)
                             : former != nullptr;
  if (!has_state) check_filter_memory(relation);
}

// By the OIDs of what the command has made: a name could mean another relation by now, and an
// import makes several filters.
void check_new_filters(bool imported) {
  constexpr char kQuery[] =
      "SELECT DISTINCT objid FROM pg_catalog.pg_event_trigger_ddl_commands() "
      "WHERE classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass "
      "AND objsubid OPERATOR(pg_catalog.=) 0 ORDER BY 1";
  const MemoryContext caller = CurrentMemoryContext;
  List* relations = NIL;
  SPI_connect();
  if (SPI_execute(kQuery, true, 0) != SPI_OK_SELECT)
    elog(ERROR, "could not read what the command has created");
  for (uint64 i = 0; i < SPI_processed; ++i) {
    bool isnull;
    const Datum oid = SPI_getbinval(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 1, &isnull);
    const InContext context(caller);
    relations = lappend_oid(relations, DatumGetObjectId(oid));
  }
  SPI_finish();
  for (const Oid relid : each_oid(relations)) {
    // An imported definition must agree with that of others.
    if (!imported) write_default_fpr(relid);
    check_filter(relid, Alteration::none, in_command(!imported));
  }
}

// The altered relation, and those that become its partitions.
void check_altered_relations(const AlterTableStmt* statement) {
  const Oid relid = RangeVarGetRelid(statement->relation, NoLock, true);
  check_may_alter(relid, statement);
  write_default_fpr(relid);
  const Alteration alteration = alteration_by(statement);
  check_filter(relid, alteration,
               alteration == Alteration::state ? in_command(true) : Contradictions::accepted);
  alter_on_servers(relid, statement);
  for (const auto* command : each<AlterTableCmd>(statement->cmds))
    if (command->subtype == AT_AttachPartition)
      check_filter(RangeVarGetRelid(castNode(PartitionCmd, command->def)->name, NoLock, true),
                   Alteration::state, Contradictions::accepted);
}

// After RENAME or SET SCHEMA; `before` is the former name.
void check_renamed(const RangeVar* before, char* schema, char* relation) {
  RangeVar name = *before;
  if (schema != nullptr) name.schemaname = schema;
  if (relation != nullptr) name.relname = relation;
  const Oid relid = RangeVarGetRelid(&name, NoLock, true);
  if (!OidIsValid(relid) || !is_filter(relid)) return;
  warn_of_lost_children(relid);
  check_tree(load_filter_relation(relid));
  rename_on_servers(relid);
}

}  // namespace

void check_before_ddl(UtilityCall* call) {
  Node* statement = statement_of(call);
  guard_state_heaps(statement);
  lock_tables_of_triggers(statement);
  if (IsA(statement, AlterTableStmt)) load_before(castNode(AlterTableStmt, statement));
  check_dropped(statement);
  const bool moves = IsA(statement, AlterForeignServerStmt) &&
                     changes_address(castNode(AlterForeignServerStmt, statement));
  List* reassigned = IsA(statement, ReassignOwnedStmt) && is_extension_here()
                         ? remote_filters_of(castNode(ReassignOwnedStmt, statement)->roles)
                         : NIL;
  call->go_on();
  check_altered_type(statement);
  check_new_owners(reassigned);
  if (moves) warn_of_new_address(castNode(AlterForeignServerStmt, statement));
}

// CHECK, of a table or a domain, is evaluated whether or not a row is stored. The constraint is not
// yet visible to the command that makes it.
void refuse_to_ask_in_check(Oid constraint) {
  bool asks = false;
  const auto read = [&](const FormData_pg_constraint&, HeapTuple tuple, TupleDesc columns) {
    bool none;
    const Datum check = heap_getattr(tuple, Anum_pg_constraint_conbin, columns, &none);
    asks =
        !none && calls_seen(static_cast<Node*>(stringToNode(TextDatumGetCString(check))), nullptr);
  };
  scan_catalog<FormData_pg_constraint>(ConstraintRelationId, ConstraintOidIndexId,
                                       {{Anum_pg_constraint_oid, constraint}}, read, SnapshotSelf);
  if (asks)
    ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
            errmsg("a CHECK constraint cannot ask a filter"),
            errdetail("It is evaluated whether or not the row is stored then, and the filter "
                      "would remember it."),
            errhint("Use trigger streamfilter_discard(); streamfilter_test() remembers nothing."));
}

void watch_objects(AccessCall* call) {
  call->go_on();
  const auto access = call->get<ObjectAccessType>();
  const Oid class_id = call->at<1>(), object = call->at<2>();
  // DROP DATABASE drops another database.
  if (class_id != DatabaseRelationId && !is_extension_here()) return;
  if (access == OAT_POST_CREATE && class_id == TriggerRelationId) check_taken_over(object);
  if (access == OAT_POST_CREATE && class_id == ConstraintRelationId) refuse_to_ask_in_check(object);
  // The catalog still shows the former definition.
  if (access == OAT_POST_ALTER && class_id == RelationRelationId && call->get<int>() == 0)
    note_name_before(object);
  if (access == OAT_DROP && call->get<int>() == 0 && shared_state != nullptr)
    free_dropped(class_id, object);
}

// Event trigger on ddl_command_end: checks what a statement has defined.
SF_FUNCTION(streamfilter_check_ddl) {
  if (!CALLED_AS_EVENT_TRIGGER(fcinfo))
    ereport(ERROR, errcode(ERRCODE_E_R_I_E_EVENT_TRIGGER_PROTOCOL_VIOLATED),
            errmsg("streamfilter_check_ddl must be called as an event trigger"));
  auto* statement = reinterpret_cast<EventTriggerData*>(fcinfo->context)->parsetree;
  guard_state_heaps(statement);  // without preloading, no hook has
  if (shared_state == nullptr) check_altered_type(statement);
  if (IsA(statement, CreateForeignTableStmt) || IsA(statement, ImportForeignSchemaStmt))
    check_new_filters(IsA(statement, ImportForeignSchemaStmt));
  else if (IsA(statement, AlterTableStmt))
    check_altered_relations(castNode(AlterTableStmt, statement));
  else if (IsA(statement, AlterForeignServerStmt))
    check_altered_server(castNode(AlterForeignServerStmt, statement)->servername);
  else if (IsA(statement, RenameStmt) &&
           castNode(RenameStmt, statement)->renameType == OBJECT_FOREIGN_SERVER)
    check_renamed_server(strVal(castNode(RenameStmt, statement)->object),
                         castNode(RenameStmt, statement)->newname);
  else if (IsA(statement, RenameStmt) &&
           castNode(RenameStmt, statement)->renameType == OBJECT_SCHEMA)
    rename_schema_on_servers(castNode(RenameStmt, statement)->subname,
                             castNode(RenameStmt, statement)->newname);
  else if (IsA(statement, RenameStmt) && castNode(RenameStmt, statement)->relation != nullptr &&
           castNode(RenameStmt, statement)->subname == nullptr)
    check_renamed(castNode(RenameStmt, statement)->relation, nullptr,
                  castNode(RenameStmt, statement)->newname);
  else if (IsA(statement, AlterObjectSchemaStmt) &&
           castNode(AlterObjectSchemaStmt, statement)->relation != nullptr)
    check_renamed(castNode(AlterObjectSchemaStmt, statement)->relation,
                  castNode(AlterObjectSchemaStmt, statement)->newschema, nullptr);
  check_triggers(statement);
  PG_RETURN_NULL();
}

// ---- types of keys ------------------------------------------------------------------------------

namespace {

// InvalidOid: another session has dropped it.
Oid find_type(List* name) {
  HeapTuple tuple = LookupTypeName(nullptr, makeTypeNameFromNameList(name), nullptr, true);
  if (!HeapTupleIsValid(tuple)) return InvalidOid;
  const Oid type = typeTypeId(tuple);
  ReleaseSysCache(tuple);
  return type;
}

// Filters with a column of the type, or of one that contains it.
void visit_columns_of(Oid type, void (*visit)(Oid filter, const char* column, Node*),
                      Node* statement) {
  for (const Oid relid : each_oid(OidIsValid(type) ? list_filters() : NIL))
    scan_catalog<FormData_pg_attribute>(
        AttributeRelationId, AttributeRelidNumIndexId, {{Anum_pg_attribute_attrelid, relid}},
        [&](const FormData_pg_attribute& row, HeapTuple, TupleDesc) {
          if (row.attnum > 0 && !row.attisdropped && contains_type(row.atttypid, type))
            visit(relid, NameStr(row.attname), statement);
        });
}

// The servers hash labels, each by its own catalog.
void refuse_rename(Oid filter, const char* column, Node* node) {
  const auto* statement = castNode(AlterEnumStmt, node);
  const char* name = get_rel_name(filter);
  if (name == nullptr || !keys_travel(filter)) return;
  const char* type = format_type_be(find_type(statement->typeName));
  ereport(
      ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
      errmsg("cannot rename label \"%s\" of type %s", statement->oldVal, type),
      errdetail("Column \"%s\" of filter \"%s\" has such labels, and other servers know them "
                "under this name.",
                column, name),
      errhint("Type: ALTER TYPE %s ADD VALUE %s AFTER %s; and use that label from now on. If "
              "the former one must have another name, drop the filter before, and afterwards "
              "create it again and fill it with streamfilter_warm().",
              type, quote_literal_cstr(statement->newVal), quote_literal_cstr(statement->oldVal)));
}

void warn_of_new_hash(Oid filter, const char* column, Node*) {
  ereport(
      WARNING,
      errmsg("column \"%s\" of filter \"%s\" has other hashes now", column, get_rel_name(filter)),
      errdetail("What the filter holds was hashed by the former type, and counts as new."),
      errhint("TRUNCATE %s; then fill it with streamfilter_warm().", qualified_name(filter)));
}

// Does the statement change which columns a row has, or their types?
bool changes_rows(const AlterTableStmt* statement) {
  for (const auto* command : each<AlterTableCmd>(statement->cmds))
    if (command->subtype == AT_AddColumn || command->subtype == AT_DropColumn ||
        command->subtype == AT_AlterColumnType)
      return true;
  return false;
}

}  // namespace

void check_altered_type(Node* node) {
  if (IsA(node, AlterEnumStmt)) {
    const auto* statement = castNode(AlterEnumStmt, node);
    const Oid type = find_type(statement->typeName);
    if (!OidIsValid(type)) return;
    note_label(type, statement->oldVal, statement->newVal);
    if (statement->oldVal != nullptr) visit_columns_of(type, refuse_rename, node);
  } else if (IsA(node, AlterTableStmt) && changes_rows(castNode(AlterTableStmt, node))) {
    const Oid relid = RangeVarGetRelid(castNode(AlterTableStmt, node)->relation, NoLock, true);
    visit_columns_of(OidIsValid(relid) ? get_rel_type_id(relid) : InvalidOid, warn_of_new_hash,
                     node);
  } else if (IsA(node, CreateOpClassStmt)) {
    const auto* statement = castNode(CreateOpClassStmt, node);
    if (statement->isDefault && strcmp(statement->amname, "hash") == 0)
      visit_columns_of(find_type(statement->datatype->names), warn_of_new_hash, node);
  }
}

// ---- trees --------------------------------------------------------------------------------------

// A child depends on its parent: DROP names it, and CASCADE drops it. The dependency is found by
// name when the child or its parent is created or altered.

namespace {

void look_again(Oid relid) {
  if (is_in_catalog(RELOID, ObjectIdGetDatum(relid))) CacheInvalidateRelcacheByRelid(relid);
}

void look_again(List* relids) {
  for (const Oid relid : each_oid(relids)) look_again(relid);
}

void look_again_upwards(Oid relid) {
  Oid ancestor = relid;
  for (unsigned i = 0; i < kMaxTreeLevels && OidIsValid(ancestor); ++i) {
    look_again(ancestor);
    ancestor = find_parent(ancestor);
  }
}

// Makes a filter depend on its parent, and on no other filter. An owner without rights on the
// parent must not block its DROP.
void depend_on_parent(Oid relid, Oid parent) {
  for (const Oid oid : each_oid(objects_needed_by(relid, RelationRelationId))) {
    if (oid == parent || !is_filter(oid)) continue;
    depend_no_more_on(relid, RelationRelationId, oid);
    look_again_upwards(oid);
  }
  if (OidIsValid(parent) && is_filter(parent) && has_rights_on_parent(relid, parent))
    depend_on(relid, RelationRelationId, parent);
}

// Checks children that were created before their parent, as in a dump, or that its ALTER affects.
void check_children(const FilterRelation* relation) {
  for (const Oid child : each_oid(find_children(relation->relid))) {
    depend_on_parent(child, relation->relid);
    // An unreadable child must not prevent ALTER of its parent.
    Fault fault;
    if (const FilterRelation* read = try_load_filter_relation(child, fault))
      check_fit(WARNING, read, relation);
    else if (const char* name = get_rel_name(child); name != nullptr)  // not dropped just now
      ereport(WARNING, errcode(fault.code),
              errmsg("child \"%s\" of filter \"%s\" cannot be read", name, relation->name),
              errdetail_internal("%s", fault.text()));
  }
}

const char* list_names(List* relids) {
  TextBuffer names;
  for (const Oid relid : each_oid(relids))
    appendStringInfo(&names, "%s%s", names.len > 0 ? ", " : "", qualified_name(relid));
  return names.data;
}

}  // namespace

void check_tree(const FilterRelation* relation) {
  if (relation->options.parent != nullptr) {
    if (!OidIsValid(relation->parent)) {
      report_missing_parent(WARNING, relation);
    } else {
      check_way_up(relation);
      const FilterRelation* parent = load_filter_relation(relation->parent);
      check_fit(ERROR, relation, parent);
      check_rights_on_parent(WARNING, relation, parent);
    }
  }
  depend_on_parent(relation->relid, relation->parent);
  check_children(relation);
  look_again_upwards(relation->relid);
  look_again(find_descendants(relation->relid));
}

void warn_of_lost_children(Oid relid) {
  List* lost = NIL;
  for (const Oid oid : each_oid(filters_depending_on(RelationRelationId, relid)))
    if (find_parent(oid) != relid) lost = lappend_oid(lost, oid);
  if (lost == NIL) return;
  look_again(lost);
  ereport(WARNING,
          errmsg("children of filter \"%s\" name their parent differently", get_rel_name(relid)),
          errdetail("They are: %s.", list_names(lost)),
          errhint("ALTER FOREIGN TABLE ... OPTIONS (SET parent '%s') for each of them.",
                  qualified_name(relid)));
}

void leave_tree(Oid relid) { look_again_upwards(find_parent(relid)); }

void warn_of_remembering_children(Oid relid, List* truncated) {
  List* rest = list_difference_oid(find_descendants(relid), truncated);
  if (rest == NIL) return;
  ereport(WARNING,
          errmsg("filters below filter \"%s\" go on remembering their keys", get_rel_name(relid)),
          errdetail("They are: %s.", list_names(rest)),
          errhint("TRUNCATE them together with \"%s\" to forget all keys of the tree.",
                  get_rel_name(relid)));
}

}  // namespace streamfilter::pg
