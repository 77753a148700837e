#include "pg/server/postgres.hpp"

extern "C" {
#include "access/genam.h"
#include "access/reloptions.h"
#include "access/table.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_class.h"
#include "catalog/pg_foreign_server.h"
#include "catalog/pg_foreign_table.h"
#include "commands/defrem.h"
#include "foreign/foreign.h"
#include "utils/fmgroids.h"
#include "utils/rel.h"
}

#include "core/base/hash.hpp"
#include "core/format/sharding.hpp"
#include "pg/catalog/filter_options.hpp"
#include "pg/catalog/filter_relation.hpp"
#include "pg/catalog/own_function.hpp"
#include "pg/catalog/server_options.hpp"
#include "pg/server/problem_report.hpp"

namespace streamfilter::pg {
namespace {

// Was this version of a catalog row written by the current transaction?
bool is_uncommitted(HeapTuple tuple) {
  return TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetXmin(tuple->t_data));
}

// Name, owner and so on; raises unless the relation is a filter.
void read_class(FilterRelation* relation, int* attributes) {
  HeapTuple tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relation->relid));
  if (!HeapTupleIsValid(tuple))
    ereport(ERROR, errcode(ERRCODE_UNDEFINED_TABLE),
            errmsg("relation with OID %u does not exist", relation->relid));
  auto* form = reinterpret_cast<Form_pg_class>(GETSTRUCT(tuple));
  relation->name = pstrdup(NameStr(form->relname));
  relation->owner = form->relowner;
  const bool is_partition = form->relispartition;
  *attributes = form->relnatts;
  relation->uncommitted = is_uncommitted(tuple);
  ReleaseSysCache(tuple);
  if (!is_filter(relation->relid))
    ereport(ERROR, errcode(ERRCODE_WRONG_OBJECT_TYPE),
            errmsg("\"%s\" is not a filter", relation->name),
            errhint("Create one with CREATE FOREIGN TABLE ... SERVER streamfilter."));
  if (is_partition)
    ereport(ERROR, errcode(ERRCODE_WRONG_OBJECT_TYPE),
            errmsg("filter \"%s\" cannot be a partition", relation->name),
            errdetail("A filter holds no rows that a partitioned table could show."));
}

void read_definition(FilterRelation* relation) {
  HeapTuple tuple = SearchSysCache1(FOREIGNTABLEREL, ObjectIdGetDatum(relation->relid));
  if (!HeapTupleIsValid(tuple))
    ereport(ERROR, errcode(ERRCODE_UNDEFINED_TABLE),
            errmsg("filter \"%s\" does not exist", relation->name));
  relation->uncommitted |= is_uncommitted(tuple);
  ReleaseSysCache(tuple);
  const ForeignTable* table = GetForeignTable(relation->relid);
  relation->server = table->serverid;
  relation->host = HostOptions();
  relation->definition = read_table_options(table->options, &relation->host);
}

// Can the filter be cut into slices for so many servers?
void check_slices(const FilterRelation* relation) {
  const Parameters& parameters = relation->definition.parameters;
  if (relation->server_count < 2) return;
  if (parameters.slices < static_cast<uint32>(relation->server_count))
    ereport(ERROR, errcode(ERRCODE_INVALID_TABLE_DEFINITION),
            errmsg("filter \"%s\" has fewer slices than servers", relation->name),
            errdetail("Slices: %u; servers: %d.", parameters.slices, relation->server_count),
            errhint("Raise option slices, or leave it out."));
  if (parameters.key_shift != 0)
    ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
            errmsg("filter \"%s\" cannot be cut into slices on several servers", relation->name),
            errdetail("Its fingerprints are the keys themselves."));
}

[[noreturn]] void raise_servers(const FilterRelation* relation, const char* server,
                                const char* detail) {
  ereport(ERROR, errcode(ERRCODE_INVALID_TABLE_DEFINITION),
          errmsg("filter \"%s\" cannot be held by server \"%s\"", relation->name, server),
          errdetail("%s", detail));
  pg_unreachable();
}

// The servers that hold the state.
void read_servers(FilterRelation* relation) {
  const ForeignServer* own = GetForeignServer(relation->server);
  List* names = read_server_names(&relation->host);
  const bool own_is_remote = read_server_options(own->options).is_remote;
  if (own_is_remote && names != NIL)
    ereport(ERROR, errcode(ERRCODE_INVALID_TABLE_DEFINITION),
            errmsg("filter \"%s\" has both option servers and a server that is another Postgres",
                   relation->name),
            errhint("Create it on SERVER streamfilter, or leave out option servers."));
  relation->servers = static_cast<Oid*>(palloc(sizeof(Oid) * Max(1, list_length(names))));
  if (own_is_remote) relation->servers[relation->server_count++] = relation->server;
  ListCell* cell;
  foreach (cell, names) {
    const char* name = static_cast<const char*>(lfirst(cell));
    const ForeignServer* server = GetForeignServerByName(name, false);
    if (server->fdwid != own->fdwid) raise_servers(relation, name, "It is of another wrapper.");
    if (!read_server_options(server->options).is_remote)
      raise_servers(relation, name, "It has none of the options host, port and dbname.");
    for (int i = 0; i < relation->server_count; ++i)
      if (relation->servers[i] == server->serverid)
        raise_servers(relation, name, "It is named twice.");
    relation->servers[relation->server_count++] = server->serverid;
  }
  check_slices(relation);
  if (is_remote(relation) && relation->host.parent != nullptr)
    ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
            errmsg("filter \"%s\" cannot have a parent", relation->name),
            errdetail("Its state is on other servers; of a tree, only the root can be there."));
}

void read_columns(FilterRelation* relation, int attributes) {
  relation->columns =
      static_cast<FilterColumn*>(palloc0(sizeof(FilterColumn) * Max(attributes, 1)));
  relation->keys = static_cast<FilterColumn**>(palloc0(sizeof(FilterColumn*) * Max(attributes, 1)));
  for (int i = 1; i <= attributes; ++i) {
    HeapTuple tuple = SearchSysCache2(ATTNUM, ObjectIdGetDatum(relation->relid), Int16GetDatum(i));
    if (!HeapTupleIsValid(tuple)) continue;
    auto* form = reinterpret_cast<Form_pg_attribute>(GETSTRUCT(tuple));
    relation->uncommitted |= is_uncommitted(tuple);
    if (!form->attisdropped) {
      FilterColumn* column = &relation->columns[relation->column_count++];
      column->attnum = form->attnum;
      column->type = form->atttypid;
      column->typmod = form->atttypmod;
      column->collation = form->attcollation;
      column->name = pstrdup(NameStr(form->attname));
      column->role = read_column_options(GetForeignColumnOptions(relation->relid, i));
    }
    ReleaseSysCache(tuple);
  }
}

void assign_roles(FilterRelation* relation) {
  for (int i = 0; i < relation->column_count; ++i) {
    FilterColumn* column = &relation->columns[i];
    if (column->role == Role::key) {
      relation->keys[relation->key_count++] = column;
      continue;
    }
    FilterColumn*& place = column->role == Role::importance ? relation->importance : relation->time;
    if (place != nullptr)
      ereport(ERROR, errcode(ERRCODE_INVALID_TABLE_DEFINITION),
              errmsg("columns \"%s\" and \"%s\" of filter \"%s\" have the same role", place->name,
                     column->name, relation->name));
    place = column;
  }
  if (relation->key_count == 0)
    ereport(ERROR, errcode(ERRCODE_INVALID_TABLE_DEFINITION),
            errmsg("filter \"%s\" has no key column", relation->name),
            errhint("Every column without a role is part of the key; give at least one."));
}

// What the state depends on: the parameters (wishes, NULL policy and a random seed aside) and the
// types of the columns.
uint64 signature_of(const FilterRelation* relation) {
  Parameters parameters = relation->definition.parameters;
  parameters.keys = 0;
  parameters.fpr = 0;
  parameters.nulls = Nulls::distinct;
  if (!relation->definition.seed_given) parameters.seed = 0;
  uint64 signature = hash_bytes(&parameters, sizeof parameters, relation->definition.seed_given);
  for (int i = 0; i < relation->column_count; ++i) {
    const FilterColumn* column = &relation->columns[i];
    const uint64 parts[] = {signature, static_cast<uint64>(column->role), getBaseType(column->type),
                            column->collation};
    signature = hash_columns(parts, lengthof(parts), 0);
  }
  return signature;
}

}  // namespace

bool is_filter(Oid relid) {
  HeapTuple tuple = SearchSysCache1(FOREIGNTABLEREL, ObjectIdGetDatum(relid));
  if (!HeapTupleIsValid(tuple)) return false;
  const Oid server = reinterpret_cast<Form_pg_foreign_table>(GETSTRUCT(tuple))->ftserver;
  ReleaseSysCache(tuple);
  const ForeignDataWrapper* wrapper = GetForeignDataWrapper(GetForeignServer(server)->fdwid);
  return is_own_function(wrapper->fdwhandler, "streamfilter_fdw_handler");
}

FilterRelation* read_filter_relation(Oid relid) {
  auto* relation = static_cast<FilterRelation*>(palloc0(sizeof(FilterRelation)));
  relation->relid = relid;
  int attributes;
  read_class(relation, &attributes);
  read_definition(relation);
  read_servers(relation);
  read_columns(relation, attributes);
  assign_roles(relation);
  relation->signature = signature_of(relation);
  return relation;
}

void adopt_seed(FilterRelation* relation, uint64 seed) {
  relation->definition.parameters.seed = seed;
  relation->definition.seed_given = true;
  relation->signature = signature_of(relation);
}

uint64 memory_of_server(Oid server, Oid except) {
  uint64 sum = 0;
  Relation catalog = table_open(ForeignTableRelationId, AccessShareLock);
  SysScanDesc scan = systable_beginscan(catalog, InvalidOid, false, nullptr, 0, nullptr);
  HeapTuple tuple;
  while (HeapTupleIsValid(tuple = systable_getnext(scan))) {
    auto* form = reinterpret_cast<Form_pg_foreign_table>(GETSTRUCT(tuple));
    if (form->ftserver != server || form->ftrelid == except) continue;
    HostOptions host;
    const Definition definition =
        read_table_options(GetForeignTable(form->ftrelid)->options, &host);
    if (host.servers == nullptr) sum += definition.parameters.memory;
  }
  systable_endscan(scan);
  table_close(catalog, AccessShareLock);
  return sum;
}

uint64 memory_limit_of_server(Oid server) {
  return read_server_options(GetForeignServer(server)->options).memory_limit;
}

}  // namespace streamfilter::pg
