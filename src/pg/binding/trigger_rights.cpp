#include "pg/server/postgres.hpp"

extern "C" {
#include "catalog/pg_class.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_trigger.h"
}

#include "pg/binding/trigger_rights.hpp"
#include "pg/catalog/filter_relation.hpp"
#include "pg/catalog/lookup.hpp"

namespace streamfilter::pg {
namespace {

bool has_usage(Oid relation, Oid owner) {
  const Oid schema = get_rel_namespace(relation);
  return OidIsValid(schema) && SF_SCHEMA_ACLCHECK(schema, owner, ACL_USAGE) == ACLCHECK_OK;
}

bool has_rights_on(Oid relation, Oid owner, AclMode rights) {
  return pg_class_aclmask(relation, owner, rights, ACLMASK_ALL) == rights;
}

const char* list_rights(AclMode rights) {
  if (rights == ACL_TRUNCATE) return "TRUNCATE";
  if (rights == ACL_DELETE) return "DELETE";
  return (rights & ACL_DELETE) != 0 ? "INSERT, DELETE" : "INSERT";
}

void report_missing_usage(Oid relation, TableOwner owner, int level) {
  const char* schema = get_namespace_name(get_rel_namespace(relation));
  const char* role = name_of_role(owner.role);
  if (schema == nullptr) schema = "?";
  ereport(
      level, errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
      errmsg("permission denied for schema \"%s\"", schema),
      errdetail("The owner of table %s, role \"%s\", needs USAGE on the schema of \"%s\".",
                owner.table_name, role, get_rel_name(relation)),
      errhint("GRANT USAGE ON SCHEMA %s TO %s;", quote_identifier(schema), quote_identifier(role)));
}

void report_missing_right(Oid relation, TableOwner owner, AclMode rights, int level) {
  const char* name = get_rel_name(relation);
  const char* role = name_of_role(owner.role);
  const char* needed = list_rights(rights);
  const char* qualified = qualified_name(relation);
  if (is_filter(relation))
    ereport(level, errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
            errmsg("permission denied for filter \"%s\"", name),
            errdetail("The owner of table %s, role \"%s\", needs %s on the filter.",
                      owner.table_name, role, needed),
            errhint("GRANT %s ON %s TO %s;", needed, qualified, quote_identifier(role)));
  else
    ereport(
        level, errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
        errmsg("permission denied for table \"%s\"", name),
        errdetail("The owner of table %s, role \"%s\", needs INSERT on the table that repeats are "
                  "diverted to.",
                  owner.table_name, role),
        errhint("GRANT %s ON %s TO %s;", needed, qualified, quote_identifier(role)));
}

}  // namespace

AclMode needed_rights(int16 type, TriggerKind kind) {
  if (judges(kind)) return ACL_INSERT;
  if (TRIGGER_FOR_TRUNCATE(type)) return ACL_TRUNCATE;
  return TRIGGER_FOR_UPDATE(type) ? ACL_INSERT | ACL_DELETE : ACL_DELETE;
}

bool has_rights(Oid relation, Oid owner, AclMode rights) {
  return has_rights_on(relation, owner, rights) && has_usage(relation, owner);
}

bool check_rights(Oid relation, TableOwner owner, AclMode rights, int level) {
  if (!has_rights_on(relation, owner.role, rights)) {
    report_missing_right(relation, owner, rights, level);
    return false;
  }
  if (has_usage(relation, owner.role)) return true;
  report_missing_usage(relation, owner, level);
  return false;
}

bool has_all_rights(const TriggerRow* row, TriggerKind kind) {
  const Oid owner = owner_of(row->table);
  if (!OidIsValid(owner)) return false;
  const TriggerBinding& binding = row->binding;
  return (!OidIsValid(binding.filter) ||
          has_rights(binding.filter, owner, needed_rights(row->type, kind))) &&
         (!OidIsValid(binding.target) || has_rights(binding.target, owner, ACL_INSERT));
}

bool owns_both(Oid relation, Oid table) {
  const Oid owner = owner_of(relation), other = owner_of(table);
  return OidIsValid(owner) && OidIsValid(other) && is_member_of_role_nosuper(owner, other);
}

}  // namespace streamfilter::pg
