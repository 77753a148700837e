#include "pg/server/postgres.hpp"

extern "C" {
#include "catalog/pg_class.h"
#include "catalog/pg_operator.h"
#include "utils/acl.h"
#include "utils/typcache.h"
}

#include <initializer_list>

#include "pg/catalog/filter_relation.hpp"
#include "pg/catalog/lookup.hpp"
#include "pg/server/fault_points.hpp"
#include "pg/server/syscache.hpp"

namespace streamfilter::pg {
namespace {

[[noreturn]] void raise_gone(Oid relation) {
  ereport(ERROR, errcode(ERRCODE_UNDEFINED_TABLE),
          errmsg("relation with OID %u does not exist", relation));
  pg_unreachable();
}

}  // namespace

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

}  // namespace streamfilter::pg
