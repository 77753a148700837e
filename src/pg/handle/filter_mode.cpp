#include "pg/server/postgres.hpp"

extern "C" {
#include "catalog/pg_parameter_acl.h"
#include "utils/acl.h"
}

#include "pg/catalog/filter_options.hpp"
#include "pg/handle/filter_mode.hpp"
#include "pg/server/settings.hpp"

namespace streamfilter::pg {
namespace {

constexpr char kSetting[] = "streamfilter.mode";

const char* role_name(Oid role) {
  const char* name = GetUserNameFromId(role, true);
  return name != nullptr ? name : "?";
}

}  // namespace

void init_filter_modes() {
  on_mode_change = [] { ++handle_epoch; };
}

void resolve_mode(FilterHandle* filter, bool judges) {
  const FilterMode own = filter->relation->options.mode;
  filter->mode_overridden = false;
  if (!judges) {
    filter->mode = FilterMode::enforce;
  } else if (!enabled) {
    filter->mode = FilterMode::off;
  } else {
    filter->mode = session_mode.given ? session_mode.mode : own;
    filter->mode_overridden = filter->mode != own && OidIsValid(session_mode.set_by);
  }
}

// Whoever owns the filter can alter its mode, and whoever owns the table can disable the trigger;
// to others the right can be granted.
bool may_override_mode(const FilterHandle* filter, Oid table_owner) {
  const Oid role = session_mode.set_by;
  return has_privs_of_role(role, filter->relation->owner) ||
         (OidIsValid(table_owner) && has_privs_of_role(role, table_owner)) ||
         pg_parameter_aclcheck(kSetting, role, ACL_SET) == ACLCHECK_OK;
}

void raise_mode_denied(const FilterHandle* filter, Oid table_owner) {
  const char* role = role_name(session_mode.set_by);
  ereport(ERROR, errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
          errmsg("permission denied to use filter \"%s\" in mode %s", filter->relation->name,
                 name_of(filter->mode)),
          OidIsValid(table_owner)
              ? errdetail("Role \"%s\" has set %s, but owns neither the filter nor the table.",
                          role, kSetting)
              : errdetail("Role \"%s\" has set %s, but does not own the filter.", role, kSetting),
          errhint("RESET %s, or have a superuser GRANT SET ON PARAMETER %s TO %s.", kSetting,
                  kSetting, quote_identifier(role)));
  pg_unreachable();
}

}  // namespace streamfilter::pg
