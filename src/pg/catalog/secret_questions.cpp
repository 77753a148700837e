#include "pg/server/postgres.hpp"

extern "C" {
#include "access/htup_details.h"
#include "catalog/pg_proc.h"
#include "nodes/nodes.h"
#include "optimizer/optimizer.h"
#include "utils/builtins.h"
}

#include "pg/catalog/secret_questions.hpp"
#include "pg/key/trusted_code.hpp"
#include "pg/server/syscache.hpp"

namespace streamfilter::pg {
namespace {

char* column_text(HeapTuple function, AttrNumber column) {
  bool isnull;
  const Datum value = SysCacheGetAttr(PROCOID, function, column, &isnull);
  return isnull ? nullptr : TextDatumGetCString(value);
}

bool names_us(HeapTuple function) {
  char* source = column_text(function, Anum_pg_proc_prosrc);
  const bool found = source != nullptr && strcasestr(source, "streamfilter_") != nullptr;
  if (source != nullptr) pfree(source);
  return found;
}

bool calls_volatile(HeapTuple function) {
  char* body = column_text(function, Anum_pg_proc_prosqlbody);
  return body != nullptr && contain_volatile_functions(static_cast<Node*>(stringToNode(body)));
}

}  // namespace

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

}  // namespace streamfilter::pg
