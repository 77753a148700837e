#include "pg/server/postgres.hpp"

extern "C" {
#include "catalog/pg_parameter_acl.h"
#include "utils/acl.h"
}

#include "pg/catalog/filter_options.hpp"
#include "pg/catalog/lookup.hpp"
#include "pg/handle/filter_mode.hpp"
#include "pg/server/settings.hpp"

namespace streamfilter::pg {
namespace {

constexpr char kSetting[] = "streamfilter.mode";

// The filter's owner can alter its mode, and the table's owner can disable the trigger. Others need
// a granted right.
bool may_override(const FilterRelation* relation, Oid table_owner) {
  const Oid role = session_mode.origin.set_by;
  return has_privs_of_role(role, relation->owner) ||
         (OidIsValid(table_owner) && has_privs_of_role(role, table_owner)) ||
         pg_parameter_aclcheck(kSetting, role, ACL_SET) == ACLCHECK_OK;
}

}  // namespace

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

}  // namespace streamfilter::pg
