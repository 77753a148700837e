#include "pg/server/postgres.hpp"

extern "C" {
#include "access/reloptions.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_foreign_data_wrapper.h"
}

#include "core/filter/common_options.hpp"
#include "pg/catalog/filter_relation.hpp"
#include "pg/catalog/server_options.hpp"
#include "pg/key/hash_method.hpp"
#include "pg/key/key_hash.hpp"
#include "pg/server/fault_points.hpp"

namespace streamfilter::pg {
namespace {

// Has the current transaction written this version of a catalog row?
bool is_uncommitted(HeapTuple tuple) {
  return TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetXmin(tuple->t_data));
}

// Name, owner and so on; a fault unless the relation is a filter.
bool read_class(FilterRelation* relation, int* attributes, Fault& fault) {
  bool is_partition = false;
  const auto read = [&](const FormData_pg_class& row, HeapTuple tuple) {
    relation->name = pstrdup(NameStr(row.relname));
    relation->owner = row.relowner;
    is_partition = row.relispartition;
    *attributes = row.relnatts;
    relation->uncommitted = is_uncommitted(tuple);
  };
  if (!read_catalog<FormData_pg_class>(RELOID, relation->relid, read))
    return fault.set(ERRCODE_UNDEFINED_TABLE, "relation with OID %u does not exist",
                     relation->relid);
  if (!is_filter(relation->relid)) {
    fault.set(ERRCODE_WRONG_OBJECT_TYPE, "\"%s\" is not a filter", relation->name);
    return fault.add_hint("Create one with CREATE FOREIGN TABLE ... SERVER streamfilter.");
  }
  if (!is_partition) return true;
  fault.set(ERRCODE_WRONG_OBJECT_TYPE, "filter \"%s\" cannot be a partition", relation->name);
  return fault.add_detail("A filter holds no rows that a partitioned table could show.");
}

// The options in a row of pg_foreign_table.
List* options_in(HeapTuple tuple) {
  bool isnull;
  const Datum options =
      SysCacheGetAttr(FOREIGNTABLEREL, tuple, Anum_pg_foreign_table_ftoptions, &isnull);
  return isnull ? NIL : untransformRelOptions(options);
}

bool read_definition(FilterRelation* relation, Fault& fault) {
  stop_at(FaultPoint::lookup);
  List* options = NIL;
  const auto read = [&](const FormData_pg_foreign_table& row, HeapTuple tuple) {
    relation->uncommitted |= is_uncommitted(tuple);
    relation->server = row.ftserver;
    options = options_in(tuple);
  };
  if (!read_catalog<FormData_pg_foreign_table>(FOREIGNTABLEREL, relation->relid, read))
    return fault.set(ERRCODE_UNDEFINED_TABLE, "filter \"%s\" does not exist", relation->name);
  relation->definition = Definition();
  relation->options = RelationOptions();
  return read_table_options(options, &relation->definition, &relation->options, fault);
}

// Can the filter be cut into slices for this many servers?
bool check_slices(const FilterRelation* relation, Fault& fault) {
  const Parameters& parameters = relation->definition.parameters;
  if (relation->server_count < 2) return true;
  const int servers = relation->server_count;
  if (parameters.slices < static_cast<uint32>(servers)) {
    fault.set(ERRCODE_INVALID_TABLE_DEFINITION, "filter \"%s\" has fewer slices than servers",
              relation->name);
    fault.add_detail("Slices: %u; servers: %d.", parameters.slices, servers);
    return fault.add_hint("Raise option slices, or leave it out.");
  }
  if (parameters.key_shift == 0) return true;
  fault.set(ERRCODE_FEATURE_NOT_SUPPORTED,
            "filter \"%s\" cannot be cut into slices on several servers", relation->name);
  fault.add_detail("Its fingerprints are the keys themselves.");
  return fault.add_hint("Use fingerprint 'hash'.");
}

// The filter's owner connects to the server, whichever role uses the filter.
bool check_usage(const FilterRelation* relation, Oid server, const char* name, Fault& fault) {
  if (SF_SERVER_ACLCHECK(server, relation->owner, ACL_USAGE) == ACLCHECK_OK) return true;
  fault.set(ERRCODE_INSUFFICIENT_PRIVILEGE, "permission denied for foreign server %s", name);
  const char* owner = GetUserNameFromId(relation->owner, true);
  fault.add_detail("The owner of filter \"%s\", role \"%s\", needs USAGE on it.", relation->name,
                   owner);
  return fault.add_hint("Type: GRANT USAGE ON FOREIGN SERVER %s TO %s.", quote_identifier(name),
                        quote_identifier(owner != nullptr ? owner : "..."));
}

bool cannot_hold(const FilterRelation* relation, const char* server, const char* detail,
                 Fault& fault) {
  fault.set(ERRCODE_INVALID_TABLE_DEFINITION, "filter \"%s\" cannot be held by server \"%s\"",
            relation->name, server);
  return fault.add_detail("%s", detail);
}

bool check_named_once(const FilterRelation* relation, Fault& fault) {
  for (int i = 0; i < relation->server_count; ++i)
    for (int j = 0; j < i; ++j)
      if (relation->servers[i] == relation->servers[j]) {
        const ForeignServer* server =
            GetForeignServerExtended(relation->servers[i], FSV_MISSING_OK);
        cannot_hold(relation, server != nullptr ? server->servername : "", "It is named twice.",
                    fault);
        return fault.add_hint("Name each server once.");
      }
  return true;
}

bool add_server(FilterRelation* relation, const ForeignServer* server, Fault& fault) {
  relation->servers[relation->server_count++] = server->serverid;
  return check_usage(relation, server->serverid, server->servername, fault);
}

bool add_named_server(FilterRelation* relation, const char* name, Oid wrapper, Fault& fault) {
  const ForeignServer* server = GetForeignServerByName(name, true);
  if (server == nullptr) {
    fault.set(ERRCODE_UNDEFINED_OBJECT, "server \"%s\" does not exist", name);
    fault.add_detail("Filter \"%s\" names it in option servers.", relation->name);
    return fault.add_hint(
        "Type: CREATE SERVER %s FOREIGN DATA WRAPPER streamfilter OPTIONS (host '...', dbname "
        "'...').",
        quote_identifier(name));
  }
  if (server->fdwid != wrapper) {
    cannot_hold(relation, name, "It is of another wrapper.", fault);
    return fault.add_hint("Name servers of FOREIGN DATA WRAPPER streamfilter.");
  }
  ServerOptions options;
  if (!read_server_options(server->options, &options, fault)) return false;
  if (!options.is_remote) {
    cannot_hold(relation, name, "It has none of the options host, port and dbname.", fault);
    return fault.add_hint(
        "Leave out option servers for a filter in the memory of this server. For another one, "
        "type: ALTER SERVER %s OPTIONS (ADD host '...', ADD dbname '...').",
        quote_identifier(name));
  }
  return add_server(relation, server, fault);
}

// The servers that hold the state.
bool read_servers(FilterRelation* relation, Fault& fault) {
  stop_at(FaultPoint::lookup);
  const ForeignServer* own = GetForeignServerExtended(relation->server, FSV_MISSING_OK);
  List* names;
  ServerOptions options;
  if (own == nullptr)
    return fault.set(ERRCODE_UNDEFINED_OBJECT, "the server of filter \"%s\" does not exist",
                     relation->name);
  if (!read_server_names(&relation->options, &names, fault) ||
      !read_server_options(own->options, &options, fault))
    return false;
  if (options.is_remote && names != NIL) {
    fault.set(ERRCODE_INVALID_TABLE_DEFINITION,
              "filter \"%s\" has both option servers and a server on another PostgreSQL",
              relation->name);
    return fault.add_hint("Create it on SERVER streamfilter, or leave out option servers.");
  }
  relation->servers = allocate<Oid>(Max(1, list_length(names)));
  if (options.is_remote && !add_server(relation, own, fault)) return false;
  for (const auto* word : each<char>(names))
    if (!add_named_server(relation, word, own->fdwid, fault)) return false;
  if (!check_named_once(relation, fault) || !check_slices(relation, fault)) return false;
  if (!is_remote(relation) || relation->options.parent == nullptr) return true;
  fault.set(ERRCODE_FEATURE_NOT_SUPPORTED, "filter \"%s\" cannot have a parent", relation->name);
  fault.add_detail("Its state is on other servers; of a tree, only the root can be there.");
  return fault.add_hint("Make the root a filter on other servers, and its children filters here.");
}

bool read_columns(FilterRelation* relation, int attributes, Fault& fault) {
  stop_at(FaultPoint::lookup);
  relation->columns = allocate_zeros<FilterColumn>(attributes);
  relation->keys = allocate_zeros<FilterColumn*>(attributes);
  bool sound = true;
  for (int i = 1; i <= attributes && sound; ++i) {
    const auto read = [&](const FormData_pg_attribute& row, HeapTuple tuple) {
      relation->uncommitted |= is_uncommitted(tuple);
      if (row.attisdropped) return;
      FilterColumn* column = &relation->columns[relation->column_count++];
      column->attnum = row.attnum;
      column->type = row.atttypid;
      column->base_type = getBaseType(row.atttypid);
      column->typmod = row.atttypmod;
      column->collation = row.attcollation;
      column->name = pstrdup(NameStr(row.attname));
      bool isnull;
      const Datum options =
          SysCacheGetAttr(ATTNUM, tuple, Anum_pg_attribute_attfdwoptions, &isnull);
      List* list = isnull ? NIL : untransformRelOptions(options);
      sound = read_column_options(list, &column->role, &column->unit, fault);
    };
    // columns that are dropped keep their row
    if (!read_catalog<FormData_pg_attribute>(ATTNUM, relation->relid, read,
                                             static_cast<AttrNumber>(i)))
      return fault.set(ERRCODE_UNDEFINED_TABLE, "filter \"%s\" does not exist", relation->name);
  }
  return sound;
}

const char* name_of_column(const FilterRelation* relation, const FilterColumn* column) {
  return psprintf("column \"%s\" of filter \"%s\"", column->name, relation->name);
}

bool assign_roles(FilterRelation* relation, Fault& fault) {
  for (int i = 0; i < relation->column_count; ++i) {
    FilterColumn* column = &relation->columns[i];
    if (column->role == Role::key) {
      relation->keys[relation->key_count++] = column;
      continue;
    }
    FilterColumn*& place = column->role == Role::importance ? relation->importance : relation->time;
    if (place != nullptr)
      return fault.set(ERRCODE_INVALID_TABLE_DEFINITION,
                       "columns \"%s\" and \"%s\" of filter \"%s\" have the same role", place->name,
                       column->name, relation->name);
    place = column;
  }
  for (int i = 0; i < relation->key_count; ++i)
    if (const FilterColumn* key = relation->keys[i];
        !check_hashable(key->type, name_of_column(relation, key), fault))
      return false;
  if (relation->key_count > 0) return true;
  fault.set(ERRCODE_INVALID_TABLE_DEFINITION, "filter \"%s\" has no key column", relation->name);
  return fault.add_hint("Every column without a role is part of the key; give at least one.");
}

}  // namespace

Oid server_of(Oid relid) {
  return read_field(FOREIGNTABLEREL, relid, &FormData_pg_foreign_table::ftserver, InvalidOid);
}

uint64 key_signature(const FilterRelation* relation) {
  uint64 signature = 1;
  for (int i = 0; i < relation->column_count; ++i) {
    const FilterColumn* column = &relation->columns[i];
    const uint64 parts[] = {
        signature, static_cast<uint64>(column->role) | static_cast<uint64>(column->unit) << 8,
        column->base_type, column->collation};
    signature = hash_columns(parts, lengthof(parts), 0);
  }
  return signature;
}

bool is_same_fpr(double a, double b) {
  Definition left, right;
  left.parameters.fpr = a;
  right.parameters.fpr = b;
  return left.wanted_fpr() == right.wanted_fpr();
}

bool is_state_of(const FilterRelation* relation, const Parameters& parameters, uint64 columns) {
  const Definition& wanted = relation->definition;
  // What `auto` took once is kept, whatever it would take for the options of today.
  const Kind asked = relation->options.asked.parameters.kind;
  return (asked == Kind::automatic || parameters.kind == asked) &&
         (columns == 0 || columns == key_signature(relation)) &&
         (!wanted.is_given(Common::seed) || parameters.seed == wanted.parameters.seed);
}

bool has_same_geometry(const Parameters& a, const Parameters& b) {
  Parameters other = b;
  copy_options(other, a, kRequests);
  return memcmp(&a, &other, sizeof a) == 0;
}

void adopt_geometry(FilterRelation* relation, const Parameters& parameters) {
  Parameters& own = relation->definition.parameters;
  const Parameters requested = own;
  if (!relation->is_adopted) relation->derived_now = requested;
  relation->is_adopted = true;
  own = parameters;
  copy_options(own, requested, kRequests);
}

bool is_filter(Oid relid) {
  const Oid server = server_of(relid);
  return OidIsValid(server) &&
         is_wrapper_of_filters(
             read_field(FOREIGNSERVEROID, server, &FormData_pg_foreign_server::srvfdw, InvalidOid));
}

bool is_wrapper_of_filters(Oid wrapper) {
  // Does not call the handler, because another wrapper's library may be missing.
  const Oid handler = read_field(FOREIGNDATAWRAPPEROID, wrapper,
                                 &FormData_pg_foreign_data_wrapper::fdwhandler, InvalidOid);
  return is_own_function(handler, "streamfilter_fdw_handler");
}

FilterRelation* read_filter_relation(Oid relid, Fault& fault) {
  auto* relation = allocate_zeros<FilterRelation>();
  relation->relid = relid;
  int attributes = 0;
  if (!read_class(relation, &attributes, fault) || !read_definition(relation, fault) ||
      !read_servers(relation, fault) || !read_columns(relation, attributes, fault) ||
      !assign_roles(relation, fault))
    return nullptr;
  return relation;
}

void adopt_seed(FilterRelation* relation, uint64 seed) {
  relation->definition.parameters.seed = seed;
  relation->definition.give(Common::seed);
}

List* options_of_filter(Oid relid) {
  if (!is_filter(relid)) return NIL;
  List* options = NIL;
  read_catalog<FormData_pg_foreign_table>(
      FOREIGNTABLEREL, relid, [&](const auto&, HeapTuple tuple) { options = options_in(tuple); });
  return options;
}

// May the foreign table have the option? Looks for its name without reading the others.
static bool may_have_option(HeapTuple tuple, TupleDesc columns, const char* option) {
  bool isnull;
  const Datum options = heap_getattr(tuple, Anum_pg_foreign_table_ftoptions, columns, &isnull);
  if (isnull) return false;
  const ArrayType* array = DatumGetArrayTypeP(options);
  return memmem(array, VARSIZE(array), option, strlen(option)) != nullptr;
}

List* list_filters(const char* option) {
  List* found = NIL;
  scan_catalog<FormData_pg_foreign_table>(
      ForeignTableRelationId, [&](const auto& row, HeapTuple tuple, TupleDesc columns) {
        if ((option == nullptr || may_have_option(tuple, columns, option)) &&
            is_filter(row.ftrelid))
          found = lappend_oid(found, row.ftrelid);
      });
  list_sort(found, list_oid_cmp);
  return found;
}

ServerUse use_of_server(Oid server, Oid except) {
  ServerUse use{};
  for (const Oid filter : each_oid(list_filters())) {
    FilterRelation relation{};
    relation.relid = filter;
    Fault fault;
    const bool sound = read_definition(&relation, fault);
    if (relation.server != server || relation.relid == except) continue;
    ++use.filters;
    if (sound && relation.options.servers == nullptr)
      use.memory += relation.definition.parameters.memory;
  }
  return use;
}

// ---- dependencies -------------------------------------------------------------------------------

namespace {

// Up: objects of a class that the relation depends on. Down: relations that depend on an object.
enum class Direction : uint8 { up, down };

// By another session, whose transaction has not ended.
bool is_being_deleted(HeapTuple tuple) {
  const uint16 marks = tuple->t_data->t_infomask;
  if ((marks & HEAP_XMAX_INVALID) != 0 || HEAP_XMAX_IS_LOCKED_ONLY(marks)) return false;
  const TransactionId by = HeapTupleHeaderGetRawXmax(tuple->t_data);
  return !TransactionIdIsCurrentTransactionId(by) && TransactionIdIsInProgress(by);
}

List* find_dependencies(Direction direction, Oid from_class, Oid from, Oid to_class,
                        bool being_deleted = true) {
  const bool up = direction == Direction::up;
  List* found = NIL;
  scan_catalog<FormData_pg_depend>(
      DependRelationId, up ? DependDependerIndexId : DependReferenceIndexId,
      {{up ? Anum_pg_depend_classid : Anum_pg_depend_refclassid, from_class},
       {up ? Anum_pg_depend_objid : Anum_pg_depend_refobjid, from}},
      [&](const FormData_pg_depend& row, HeapTuple tuple, TupleDesc) {
        if ((up ? row.refclassid : row.classid) == to_class && row.objsubid == 0 &&
            row.refobjsubid == 0 && row.deptype == DEPENDENCY_NORMAL &&
            (being_deleted || !is_being_deleted(tuple)))
          found = lappend_oid(found, up ? row.refobjid : row.objid);
      });
  return found;
}

bool is_there(Oid class_id, Oid object) {
  return is_in_catalog(class_id == ForeignServerRelationId ? FOREIGNSERVEROID : RELOID,
                       ObjectIdGetDatum(object));
}

}  // namespace

List* objects_needed_by(Oid relid, Oid class_id) {
  return find_dependencies(Direction::up, RelationRelationId, relid, class_id);
}

List* filters_depending_on(Oid class_id, Oid object) {
  List* filters = NIL;
  for (const Oid relid :
       each_oid(find_dependencies(Direction::down, class_id, object, RelationRelationId)))
    if (is_filter(relid)) filters = list_append_unique_oid(filters, relid);
  return filters;
}

List* lasting_children(Oid filter) {
  return find_dependencies(Direction::down, RelationRelationId, filter, RelationRelationId, false);
}

bool depend_on(Oid relid, Oid class_id, Oid object) {
  if (list_member_oid(objects_needed_by(relid, class_id), object)) return true;
  // Lock it: a concurrent DROP must see the dependency that is about to be recorded.
  if (class_id == RelationRelationId)
    LockRelationOid(object, AccessShareLock);
  else
    LockDatabaseObject(class_id, object, 0, AccessShareLock);
  if (!is_there(class_id, object))
    ereport(ERROR, errcode(ERRCODE_UNDEFINED_OBJECT),
            errmsg("what filter \"%s\" depends on was dropped just now", get_rel_name(relid)));
  const ObjectAddress filter = {RelationRelationId, relid, 0};
  const ObjectAddress referenced = {class_id, object, 0};
  recordDependencyOn(&filter, &referenced, DEPENDENCY_NORMAL);
  return false;
}

void depend_no_more_on(Oid relid, Oid class_id, Oid object) {
  deleteDependencyRecordsForSpecific(RelationRelationId, relid, DEPENDENCY_NORMAL, class_id,
                                     object);
}

bool depend_on_servers(const FilterRelation* relation) {
  for (const Oid server : each_oid(objects_needed_by(relation->relid, ForeignServerRelationId))) {
    bool needed = server == relation->server;
    for (int i = 0; i < relation->server_count; ++i) needed |= server == relation->servers[i];
    if (!needed) depend_no_more_on(relation->relid, ForeignServerRelationId, server);
  }
  bool before = depend_on(relation->relid, ForeignServerRelationId, relation->server);
  for (int i = 0; i < relation->server_count; ++i)
    if (relation->servers[i] != relation->server)
      before &= depend_on(relation->relid, ForeignServerRelationId, relation->servers[i]);
  return before;
}

bool may_record_dependencies() {
  return !RecoveryInProgress() && !XactReadOnly && !IsInParallelMode();
}

}  // namespace streamfilter::pg
