#include "pg/server/postgres.hpp"

extern "C" {
#include "access/transam.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "utils/guc.h"
}

#include "pg/key/trusted_code.hpp"
#include "pg/server/syscache.hpp"

namespace streamfilter::pg {

bool is_trusted_function(Oid function) {
  if (function < FirstNormalObjectId) return true;
  const Oid language = read_field(PROCOID, function, &FormData_pg_proc::prolang, InvalidOid);
  return language == ClanguageId || language == INTERNALlanguageId;
}

// Only superusers make C functions, so the symbol is proof enough.
bool is_own_function(Oid function, const char* symbol) {
  bool own = false;
  read_catalog<FormData_pg_proc>(
      PROCOID, function, [&](const FormData_pg_proc& row, HeapTuple tuple) {
        bool isnull = true;
        const Datum source = row.prolang != ClanguageId
                                 ? static_cast<Datum>(0)
                                 : SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_prosrc, &isnull);
        if (isnull) return;
        char* name = TextDatumGetCString(source);
        own = strcmp(name, symbol) == 0;
        pfree(name);
      });
  return own;
}

bool is_trusted_type(Oid type) {
  if (const Oid element = get_element_type(type); OidIsValid(element)) type = element;
  if (type == RECORDOID) return false;
  return type < FirstNormalObjectId || get_typtype(type) == TYPTYPE_BASE;
}

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
