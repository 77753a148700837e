// Sends a filter's definition: the producer of a stream sends it to the servers that will hold its
// slices (Koloniari et al. 2011, section 3.1), and the first producer makes the relation there.
#include "pg/server/postgres.hpp"

extern "C" {
#include "catalog/namespace.h"
#include "catalog/pg_foreign_server.h"
#include "foreign/foreign.h"
#include "lib/stringinfo.h"
#include "nodes/makefuncs.h"
#include "nodes/parsenodes.h"
#include "storage/lmgr.h"
#include "tcop/dest.h"
#include "tcop/utility.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/inval.h"
}

#include "core/filter/definition_text.hpp"
#include "core/filter/options.hpp"
#include "pg/catalog/filter_options.hpp"
#include "pg/catalog/filter_relation.hpp"
#include "pg/catalog/lookup.hpp"
#include "pg/catalog/option_list.hpp"
#include "pg/catalog/slice_origin.hpp"
#include "pg/ddl/remote_ddl.hpp"
#include "pg/handle/filter_handle.hpp"
#include "pg/handle/tree.hpp"
#include "pg/remote/remote_filter.hpp"
#include "pg/server/named_row.hpp"

namespace streamfilter::pg {
namespace {

constexpr char kServer[] = "streamfilter";

// What a producer wants; nullptr: the default.
struct SliceRelation {
  const char* definition;
  const char* conflict;
  const char* persistence;
  const char* producer;
};

// An argument of the functions that producers call; nullptr: NULL.
const char* text_argument(FunctionCallInfo fcinfo, int number) {
  return PG_ARGISNULL(number) ? nullptr : text_to_cstring(PG_GETARG_TEXT_PP(number));
}

List* add_option(List* options, const char* name, const char* value) {
  if (value == nullptr) return options;
  return lappend(
      options, makeDefElem(pstrdup(name), reinterpret_cast<Node*>(makeString(pstrdup(value))), -1));
}

List* options_of(const Definition& definition) {
  List* options = NIL;
  for (ListedOptions given(definition); given.next();)
    options = add_option(options, given.name(), given.value());
  return options;
}

// The definition contains the seed.
void check_right_to_define(const FilterRelation* relation) {
  if (pg_class_aclmask(relation->relid, GetUserId(), ACL_INSERT | ACL_SELECT, ACLMASK_ANY) == 0)
    aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_FOREIGN_TABLE, relation->name);
}

// Does the relation hold slices of another server's filter?
void check_relation(const FilterRelation* relation) {
  if (!is_remote(relation) && relation->options.producer != nullptr && relation->key_count == 1 &&
      relation->column_count == 1 && relation->columns[0].type == INT8OID)
    return;
  ereport(ERROR, errcode(ERRCODE_WRONG_OBJECT_TYPE),
          errmsg("filter \"%s\" exists, but does not hold slices of a filter on another server",
                 relation->name),
          errhint("Give one of the two filters another name or schema."));
}

// Locks a relation with slices of another server's filter exclusively: transactions that have used
// it have ended. Raises 42501 unless the user owns it, 42809 if it is no such relation.
FilterHandle* lock_slices(Oid relid) {
  require_own_filter(relid);
  LockRelationOid(relid, AccessExclusiveLock);
  FilterHandle* filter = filter_handle(relid);
  use_filter(filter, Use::define);
  if (filter->relation->options.producer == nullptr)
    ereport(ERROR, errcode(ERRCODE_WRONG_OBJECT_TYPE),
            errmsg("filter \"%s\" does not hold slices of a filter on another server",
                   filter->relation->name));
  return filter;
}

// Runs CREATE FOREIGN TABLE for a relation with slices of another server's filter as if it had been
// typed, including its event triggers. Made of parse nodes, not of text, because the definition
// comes from another server.
void make_slice_relation(RangeVar* name, const SliceRelation& wanted) {
  auto* create = makeNode(CreateForeignTableStmt);
  create->base.relation = name;
  create->base.tableElts = list_make1(makeColumnDef("hash", INT8OID, -1, InvalidOid));
  create->base.oncommit = ONCOMMIT_NOOP;
  create->servername = pstrdup(kServer);
  create->options = options_of(definition_in(wanted.definition));
  create->options = add_option(create->options, "conflict", wanted.conflict);
  create->options = add_option(create->options, "persistence", wanted.persistence);
  create->options = add_option(create->options, "producer", wanted.producer);

  auto* statement = makeNode(PlannedStmt);
  statement->commandType = CMD_UTILITY;
  statement->canSetTag = false;
  statement->utilityStmt = reinterpret_cast<Node*>(create);
  statement->stmt_location = -1;
  ProcessUtility(statement, "CREATE FOREIGN TABLE of a filter on another server", false,
                 PROCESS_UTILITY_QUERY, nullptr, nullptr, None_Receiver, nullptr);
  CommandCounterIncrement();
}

// Lets only one of several sessions make a relation, without blocking anybody else. Raises 42501
// without USAGE on the server of filters.
void lock_slice_relations() {
  const Oid server = GetForeignServerByName(kServer, false)->serverid;
  const AclResult right = SF_SERVER_ACLCHECK(server, GetUserId(), ACL_USAGE);
  if (right != ACLCHECK_OK) aclcheck_error(right, OBJECT_FOREIGN_SERVER, kServer);
  LockDatabaseObject(ForeignServerRelationId, server, 0, ShareUpdateExclusiveLock);
  AcceptInvalidationMessages();
}

// Adds an option to those of an ALTER FOREIGN TABLE, unless it has the value already. nullptr: it
// stays as it is.
void append_change(StringInfo changes, List* before, const char* name, const char* value) {
  const char* old = find_option(before, name);
  if (value == nullptr || (old != nullptr && strcmp(old, value) == 0)) return;
  appendStringInfo(changes, "%s%s %s %s", changes->len > 0 ? ", " : "",
                   old != nullptr ? "SET" : "ADD", name, quote_literal_cstr(value));
}

}  // namespace
}  // namespace streamfilter::pg

using namespace streamfilter;
using namespace streamfilter::pg;

// streamfilter_hashes_define(schema_name text, table_name text, wanted text, conflict text,
// persistence text, producer text, OUT definition text, OUT made boolean): makes the relation for
// the slices unless it exists, and returns its definition. If `wanted` is NULL, only looks for it:
// NULL if there is none.
SF_FUNCTION(streamfilter_hashes_define) {
  NamedRow row(fcinfo);
  const char* schema = text_argument(fcinfo, 0);
  const char* name = text_argument(fcinfo, 1);
  const char* wanted = text_argument(fcinfo, 2);
  if (schema == nullptr || name == nullptr)
    ereport(ERROR, errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
            errmsg("schema and name of a filter must not be null"));
  RangeVar* relation_name = makeRangeVar(pstrdup(schema), pstrdup(name), -1);
  // Waits for who is dropping it, and then looks again.
  Oid relid = RangeVarGetRelid(relation_name, AccessShareLock, true);
  if (!OidIsValid(relid) && wanted != nullptr) {
    lock_slice_relations();
    relid = RangeVarGetRelid(relation_name, AccessShareLock, true);
  }
  const bool made = !OidIsValid(relid) && wanted != nullptr;
  if (made) {
    make_slice_relation(relation_name, {wanted, text_argument(fcinfo, 3), text_argument(fcinfo, 4),
                                        text_argument(fcinfo, 5)});
    relid = RangeVarGetRelid(relation_name, AccessShareLock, false);
  }
  row.put("made", BoolGetDatum(made));
  if (OidIsValid(relid)) {
    const FilterRelation* relation = load_filter_relation(relid);
    check_right_to_define(relation);
    check_relation(relation);
    if (const char* producer = text_argument(fcinfo, 5); wanted != nullptr && !made)
      check_producer_agrees(relation,
                            {text_argument(fcinfo, 3), slicing_of_producer(producer), producer});
    char found[kMaxDefinitionText];
    print_definition(relation->definition.parameters, found, sizeof found);
    row.put("definition", found);
  }
  PG_RETURN_DATUM(row.datum());
}

// streamfilter_hashes_alter(filter regclass, conflict text, persistence text, producer text):
// called by the server where a filter is altered, gives new options to the relation with its
// slices. NULL leaves an option unchanged. Needs ownership.
SF_FUNCTION(streamfilter_hashes_alter) {
  if (PG_ARGISNULL(0))
    ereport(ERROR, errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
            errmsg("the filter of streamfilter_hashes_alter must not be null"));
  const Oid relid = PG_GETARG_OID(0);
  const char* producer = text_argument(fcinfo, 3);
  check_producer_agrees(lock_slices(relid)->relation, {nullptr, nullptr, producer});
  List* before = options_of_filter(relid);
  StringInfoData changes;
  initStringInfo(&changes);
  append_change(&changes, before, "conflict", text_argument(fcinfo, 1));
  append_change(&changes, before, "persistence", text_argument(fcinfo, 2));
  append_change(&changes, before, "producer", producer);
  if (changes.len > 0) alter_options(relid, changes.data);
  PG_RETURN_VOID();
}
