// CREATE and ALTER are checked by an event trigger, which works without preloading, too. DROP is
// noticed by a hook, because it must not be missed where there is state to free.
#include "pg/server/postgres.hpp"

extern "C" {
#include "catalog/dependency.h"
#include "catalog/namespace.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_class.h"
#include "catalog/pg_database.h"
#include "catalog/pg_foreign_server.h"
#include "commands/event_trigger.h"
#include "foreign/foreign.h"
#include "nodes/parsenodes.h"
#include "utils/acl.h"
}

#include "core/kind/filter_ops.hpp"
#include "pg/catalog/element_roles.hpp"
#include "pg/catalog/filter_options.hpp"
#include "pg/ddl/ddl_checks.hpp"
#include "pg/ddl/hierarchy_ddl.hpp"
#include "pg/handle/hierarchy.hpp"
#include "pg/handle/slot_lifecycle.hpp"
#include "pg/key/hash_method.hpp"
#include "pg/key/key_hash.hpp"
#include "pg/remote/remote_filter.hpp"
#include "pg/shmem/server_health.hpp"
#include "pg/storage/persistence.hpp"
#include "pg/trigger/trigger_ddl.hpp"

namespace streamfilter::pg {
namespace {

object_access_hook_type previous_object_access = nullptr;

bool has_slot(Oid database, Oid relation) {
  bool found = false;
  LWLockAcquire(shared_state->directory_lock, LW_SHARED);
  for (int i = 0; i < shared_state->slot_count && !found; ++i) {
    const FilterSlot* slot = &shared_state->slots[i];
    found = slot->state != SlotState::free && slot->database == database &&
            (relation == InvalidOid || slot->relation == relation);
  }
  LWLockRelease(shared_state->directory_lock);
  return found;
}

void on_object_access(ObjectAccessType access, Oid class_id, Oid object, int sub_id, void* arg) {
  if (previous_object_access) previous_object_access(access, class_id, object, sub_id, arg);
  if (access != OAT_DROP || sub_id != 0 || shared_state == nullptr) return;
  if (class_id == RelationRelationId && get_rel_relkind(object) == RELKIND_FOREIGN_TABLE &&
      is_filter(object)) {
    delete_saved_state(object);
    leave_tree(object);
  }
  if (class_id == RelationRelationId &&
      (has_slot(MyDatabaseId, object) || has_counts(MyDatabaseId, object)))
    drop_at_commit(MyDatabaseId, object);
  else if (class_id == DatabaseRelationId &&
           (has_slot(object, InvalidOid) || has_counts(object, InvalidOid)))
    drop_at_commit(object, InvalidOid);
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

// Several servers have limits of their own, of what lies there.
void check_memory_limit(const FilterRelation* relation) {
  if (relation->host.servers != nullptr) return;
  const uint64 memory = relation->definition.parameters.memory;
  const uint64 limit = memory_limit_of_server(relation->server);
  const uint64 others =
      limit == PG_UINT64_MAX ? 0 : memory_of_server(relation->server, relation->relid);
  if (memory > limit || others > limit - memory)
    ereport(
        ERROR, errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
        errmsg("filter \"%s\" would exceed the memory_limit of its server", relation->name),
        errdetail("It needs %llu bytes; other filters of the server have %llu, and all "
                  "together may have %llu.",
                  static_cast<unsigned long long>(memory), static_cast<unsigned long long>(others),
                  static_cast<unsigned long long>(limit)),
        errhint("Use less memory, drop a filter, or raise memory_limit with ALTER SERVER."));
}

void check_memory(const FilterRelation* relation) {
  const uint64 memory = relation->definition.parameters.memory;
  if (shared_state == nullptr) {
    ereport(
        WARNING, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
        errmsg("filter \"%s\" cannot be used yet: streamfilter is not preloaded", relation->name),
        errhint("Set shared_preload_libraries = 'streamfilter' in postgresql.conf and restart "
                "the server."));
    return;
  }
  uint64 largest, total;
  free_space(&largest, &total);
  if (memory > largest)
    ereport(WARNING, errcode(ERRCODE_OUT_OF_MEMORY),
            errmsg("not enough shared memory for filter \"%s\" now", relation->name),
            errdetail("It needs %llu bytes at its first use; %llu are free in one piece.",
                      static_cast<unsigned long long>(memory),
                      static_cast<unsigned long long>(largest)),
            errhint("Use less memory, drop a filter, or raise streamfilter.shared_memory and "
                    "restart the server."));
}

// The owner reaches the other servers: USAGE is needed on them, and they cannot be dropped before
// the filter.
void check_servers(const FilterRelation* relation) {
  deleteDependencyRecordsForClass(RelationRelationId, relation->relid, ForeignServerRelationId,
                                  DEPENDENCY_NORMAL);
  const ObjectAddress self = {RelationRelationId, relation->relid, 0};
  const auto depend_on = [&self](Oid server) {
    const ObjectAddress address = {ForeignServerRelationId, server, 0};
    recordDependencyOn(&self, &address, DEPENDENCY_NORMAL);
  };
  depend_on(relation->server);
  for (int i = 0; i < relation->server_count; ++i) {
    const Oid server = relation->servers[i];
    const AclResult right = SF_SERVER_ACLCHECK(server, relation->owner, ACL_USAGE);
    if (right != ACLCHECK_OK)
      aclcheck_error(right, OBJECT_FOREIGN_SERVER, GetForeignServer(server)->servername);
    if (server != relation->server) depend_on(server);
  }
}

void warn_if_emptied(const FilterRelation* relation) {
  if (shared_state == nullptr) return;
  LWLockAcquire(shared_state->directory_lock, LW_SHARED);
  const FilterSlot* slot = find_slot(MyDatabaseId, relation->relid, SlotState::live);
  const bool emptied = slot != nullptr && slot->signature != relation->signature;
  LWLockRelease(shared_state->directory_lock);
  if (emptied)
    ereport(WARNING, errmsg("filter \"%s\" starts empty", relation->name),
            errdetail("Its state does not fit the new definition."));
}

// A filter that becomes a logged one is saved now.
void save_if_due(const FilterRelation* relation) {
  const FilterSlot* slot = peek_slot(relation);
  if (slot == nullptr) return;
  const bool was_logged = slot->saved.logged;
  NamedFilter* filter = named_filter(relation->relid);
  use_filter(filter, Use::probe);
  if (!was_logged && relation->host.persistence == Persistence::logged) save_filter(filter, true);
}

void check_filter(const RangeVar* name, bool altered) {
  const Oid relid = RangeVarGetRelid(name, NoLock, true);
  if (!OidIsValid(relid) || !is_filter(relid)) return;
  const FilterRelation* relation = load_filter_relation(relid);
  check_keys(relation);
  check_roles(relation);
  check_servers(relation);
  check_tree(relation);
  const bool kept = altered && peek_slot(relation) != nullptr;
  if (altered && !kept) warn_if_emptied(relation);
  if (!kept) check_memory_limit(relation);
  if (is_remote(relation)) return check_slice_definitions(relation);
  if (!kept) check_memory(relation);
  if (altered) save_if_due(relation);
}

// After RENAME or SET SCHEMA; `before` is its name before.
void check_renamed(const RangeVar* before, char* schema, char* relation) {
  RangeVar name = *before;
  if (schema != nullptr) name.schemaname = schema;
  if (relation != nullptr) name.relname = relation;
  const Oid relid = RangeVarGetRelid(&name, NoLock, true);
  if (!OidIsValid(relid) || !is_filter(relid)) return;
  warn_of_lost_children(relid);
  check_tree(load_filter_relation(relid));
}

List* filters_of_server(const char* name) {
  return filters_depending_on(ForeignServerRelationId,
                              GetForeignServerByName(name, false)->serverid);
}

// Whoever looks at all filters shall not stumble over one whose servers make no sense any more.
void check_filters_of_server(const char* name) {
  ListCell* cell;
  foreach (cell, filters_of_server(name)) load_filter_relation(lfirst_oid(cell));
}

void check_renamed_server(const char* before, const char* name) {
  ListCell *cell, *named;
  foreach (cell, filters_of_server(name)) {
    HostOptions host;
    read_table_options(GetForeignTable(lfirst_oid(cell))->options, &host);
    foreach (named, read_server_names(&host))
      if (strcmp(static_cast<const char*>(lfirst(named)), before) == 0)
        ereport(
            ERROR, errcode(ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST),
            errmsg("cannot rename server \"%s\"", before),
            errdetail("Filter \"%s\" has it in option servers.", get_rel_name(lfirst_oid(cell))),
            errhint("Drop the filter, or set its option servers to others, before."));
  }
}

}  // namespace

void init_ddl_watch() {
  previous_object_access = object_access_hook;
  object_access_hook = on_object_access;
}

}  // namespace streamfilter::pg

// Event trigger on ddl_command_end: checks what a statement has defined.
SF_FUNCTION(streamfilter_check_ddl) {
  using namespace streamfilter::pg;
  if (!CALLED_AS_EVENT_TRIGGER(fcinfo))
    ereport(ERROR, errcode(ERRCODE_E_R_I_E_EVENT_TRIGGER_PROTOCOL_VIOLATED),
            errmsg("streamfilter_check_ddl must be called as an event trigger"));
  auto* statement = reinterpret_cast<EventTriggerData*>(fcinfo->context)->parsetree;
  if (IsA(statement, CreateForeignTableStmt))
    check_filter(castNode(CreateForeignTableStmt, statement)->base.relation, false);
  else if (IsA(statement, AlterTableStmt))
    check_filter(castNode(AlterTableStmt, statement)->relation, true);
  else if (IsA(statement, AlterForeignServerStmt))
    check_filters_of_server(castNode(AlterForeignServerStmt, statement)->servername);
  else if (IsA(statement, RenameStmt) &&
           castNode(RenameStmt, statement)->renameType == OBJECT_FOREIGN_SERVER)
    check_renamed_server(strVal(castNode(RenameStmt, statement)->object),
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
