#include "pg/server/postgres.hpp"

extern "C" {
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
}

#include "pg/catalog/own_function.hpp"

namespace streamfilter::pg {

// Only superusers make C functions, so the symbol is proof enough.
bool is_own_function(Oid function, const char* symbol) {
  HeapTuple tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
  if (!HeapTupleIsValid(tuple)) return false;
  bool own = false;
  if (reinterpret_cast<Form_pg_proc>(GETSTRUCT(tuple))->prolang == ClanguageId) {
    bool isnull;
    const Datum source = SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_prosrc, &isnull);
    if (!isnull) {
      char* name = TextDatumGetCString(source);
      own = strcmp(name, symbol) == 0;
      pfree(name);
    }
  }
  ReleaseSysCache(tuple);
  return own;
}

}  // namespace streamfilter::pg
