#include "pg/server/postgres.hpp"

extern "C" {
#include "utils/guc.h"
}

#include "pg/catalog/owner_code.hpp"

namespace streamfilter::pg {

Caller become_owner(Oid filter, Oid owner) {
  Caller caller;
  GetUserIdAndSecContext(&caller.user, &caller.security);
  SetUserIdAndSecContext(owner, caller.security | SECURITY_RESTRICTED_OPERATION);
  caller.guc_level = NewGUCNestLevel();
  char* schema = get_namespace_name(get_rel_namespace(filter));
  char* path = psprintf("pg_catalog, %s, pg_temp", schema ? quote_identifier(schema) : "pg_temp");
  static_cast<void>(set_config_option("search_path", path, PGC_USERSET, PGC_S_SESSION,
                                      GUC_ACTION_SAVE, true, 0, false));
  pfree(path);
  if (schema) pfree(schema);
  return caller;
}

void return_to(const Caller& caller) {
  AtEOXact_GUC(false, caller.guc_level);
  SetUserIdAndSecContext(caller.user, caller.security);
}

}  // namespace streamfilter::pg
