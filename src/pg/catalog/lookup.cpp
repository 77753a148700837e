#include "pg/server/postgres.hpp"

extern "C" {
#include "catalog/pg_foreign_data_wrapper.h"
#include "catalog/pg_operator.h"
}

#include "pg/catalog/filter_relation.hpp"
#include "pg/catalog/lookup.hpp"
#include "pg/key/hash_method.hpp"
#include "pg/server/fault_points.hpp"
#include "pg/server/no_raise.hpp"

namespace streamfilter::pg {

void raise_gone(Oid relation) {
  ereport(ERROR, errcode(ERRCODE_UNDEFINED_TABLE),
          errmsg("relation with OID %u does not exist", relation));
}

const char* qualified_name(Oid relation) {
  stop_at(FaultPoint::lookup);
  const char* name = get_rel_name(relation);
  if (name == nullptr) raise_gone(relation);
  return quote_qualified_identifier(get_namespace_name(get_rel_namespace(relation)), name);
}

const char* name_of_role(Oid role) {
  const char* name = GetUserNameFromId(role, true);
  return name != nullptr ? name : "?";
}

Oid owner_of(Oid relation) {
  stop_at(FaultPoint::lookup);
  return read_field(RELOID, relation, &FormData_pg_class::relowner, InvalidOid);
}

const char* equality_operator(Oid type) {
  const char* text = nullptr;
  read_catalog<FormData_pg_operator>(
      OPEROID, lookup_type_cache(type, TYPECACHE_EQ_OPR)->eq_opr,
      [&](const FormData_pg_operator& row, HeapTuple) {
        text = psprintf("OPERATOR(%s.%s)", quote_identifier(get_namespace_name(row.oprnamespace)),
                        NameStr(row.oprname));
      });
  return text;
}

bool is_owner(Oid relation, Oid role) {
  const Oid owner = owner_of(relation);
  return OidIsValid(owner) && has_privs_of_role(role, owner);
}

void require_own_filter(Oid relation) {
  stop_at(FaultPoint::lookup);
  const char* name = get_rel_name(relation);
  if (name == nullptr) raise_gone(relation);
  if (!is_filter(relation))
    ereport(ERROR, errcode(ERRCODE_WRONG_OBJECT_TYPE), errmsg("\"%s\" is not a filter", name));
  const Oid owner = owner_of(relation);
  if (!OidIsValid(owner)) raise_gone(relation);
  if (!has_privs_of_role(GetUserId(), owner))
    aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_FOREIGN_TABLE, name);
}

const ForeignServer* server_of_oid(Oid server) {
  stop_at(FaultPoint::lookup);
  const ForeignServer* found = GetForeignServerExtended(server, FSV_MISSING_OK);
  if (found == nullptr)
    ereport(ERROR, errcode(ERRCODE_UNDEFINED_OBJECT),
            errmsg("server with OID %u does not exist", server));
  return found;
}

bool has_user_mapping(Oid role, Oid server) {
  for (const Oid user : {role, InvalidOid})
    if (is_in_catalog(USERMAPPINGUSERSERVER, ObjectIdGetDatum(user), ObjectIdGetDatum(server)))
      return true;
  return false;
}

// ---- the extension ------------------------------------------------------------------------------

namespace {

enum class Presence : uint8 { unknown, absent, here };

Presence presence = Presence::unknown;

bool has_own_wrapper() {
  bool found = false;
  scan_catalog<FormData_pg_foreign_data_wrapper>(
      ForeignDataWrapperRelationId, [&](const auto& row, HeapTuple, TupleDesc) {
        found = found || is_own_function(row.fdwhandler, "streamfilter_fdw_handler");
      });
  return found;
}

pg_noinline bool look_for_extension() {
  if (!OidIsValid(MyDatabaseId) || !IsTransactionState()) return true;
  // Set before the look-up, so that a change meanwhile makes the next call look again.
  presence = Presence::absent;
  const bool found = has_own_wrapper();
  if (found) presence = Presence::here;
  return found;
}

}  // namespace

void on_wrapper_change(Datum, SF_SYSCACHE_ID, uint32) {
  if (presence == Presence::absent) presence = Presence::unknown;
}

bool is_extension_here() {
  if (likely(presence != Presence::unknown)) return presence == Presence::here;
  return look_for_extension();
}

// ---- questions that must stay secret ------------------------------------------------------------

static char* column_text(HeapTuple function, AttrNumber column) {
  bool isnull;
  const Datum value = SysCacheGetAttr(PROCOID, function, column, &isnull);
  return isnull ? nullptr : TextDatumGetCString(value);
}

static bool names_us(HeapTuple function) {
  char* source = column_text(function, Anum_pg_proc_prosrc);
  const bool found = source != nullptr && strcasestr(source, "streamfilter_") != nullptr;
  if (source != nullptr) pfree(source);
  return found;
}

static bool calls_volatile(HeapTuple function) {
  char* body = column_text(function, Anum_pg_proc_prosqlbody);
  return body != nullptr && contain_volatile_functions(static_cast<Node*>(stringToNode(body)));
}

bool asks_in_secret(Oid function) {
  if (is_trusted_function(function)) return false;
  bool asks = false;
  read_catalog<FormData_pg_proc>(
      PROCOID, function, [&](const FormData_pg_proc& row, HeapTuple tuple) {
        asks =
            row.provolatile != PROVOLATILE_VOLATILE && (names_us(tuple) || calls_volatile(tuple));
      });
  return asks;
}

// ---- changes of tables --------------------------------------------------------------------------

static HTAB* watches = nullptr;

void on_table_change(Oid table) {
  const NoRaise marked;
  if (watches == nullptr) return;
  if (OidIsValid(table)) {
    if (auto* watch = static_cast<TableWatch*>(hash_search(watches, &table, HASH_FIND, nullptr)))
      ++watch->changes;
    return;
  }
  for_each_entry<TableWatch>(watches, [](TableWatch* watch) { ++watch->changes; });
}

void on_schema_change(Datum, SF_SYSCACHE_ID, uint32) { on_table_change(InvalidOid); }

const TableWatch* watch_table(Oid table) {
  if (watches == nullptr)
    watches = make_hash_table<Oid, TableWatch>("streamfilter tables with triggers", 16);
  bool found;
  auto* watch = static_cast<TableWatch*>(hash_search(watches, &table, HASH_ENTER, &found));
  if (!found) watch->changes = 0;
  return watch;
}

}  // namespace streamfilter::pg
