// Rows of system catalogs by OID, as the server's caches have them.
#pragma once

extern "C" {
#include "access/htup_details.h"
#include "utils/syscache.h"
}

#include <type_traits>

namespace streamfilter::pg {

// Calls read(row, tuple), unless there is no such row: then false.
template <typename Row, typename Read>
bool read_catalog(int cache, Oid oid, Read&& read, AttrNumber column = InvalidAttrNumber) {
  HeapTuple tuple = AttributeNumberIsValid(column)
                        ? SearchSysCache2(cache, ObjectIdGetDatum(oid), Int16GetDatum(column))
                        : SearchSysCache1(cache, ObjectIdGetDatum(oid));
  if (!HeapTupleIsValid(tuple)) return false;
  read(*reinterpret_cast<const Row*>(GETSTRUCT(tuple)), tuple);
  ReleaseSysCache(tuple);
  return true;
}

// One field of the row; `otherwise` if there is no such row.
template <typename Row, typename Value>
Value read_field(int cache, Oid oid, Value Row::*field, std::type_identity_t<Value> otherwise) {
  read_catalog<Row>(cache, oid, [&](const Row& row, HeapTuple) { otherwise = row.*field; });
  return otherwise;
}

}  // namespace streamfilter::pg
