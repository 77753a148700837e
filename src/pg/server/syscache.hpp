// Rows of system catalogs: by OID, as the server's caches have them, or by a scan.
#pragma once

extern "C" {
#include "access/genam.h"
#include "access/stratnum.h"
#include "utils/fmgroids.h"
}

#include <initializer_list>
#include <type_traits>

namespace streamfilter::pg {

// Calls read(row, tuple), unless there is no such row: then false.
template <typename Row, typename Read>
bool read_catalog(SysCacheIdentifier cache, Oid oid, Read&& read,
                  AttrNumber column = InvalidAttrNumber) {
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
Value read_field(SysCacheIdentifier cache, Oid oid, Value Row::*field,
                 std::type_identity_t<Value> otherwise) {
  read_catalog<Row>(cache, oid, [&](const Row& row, HeapTuple) { otherwise = row.*field; });
  return otherwise;
}

// Is there a row with this key, of one column or two?
inline bool is_in_catalog(SysCacheIdentifier cache, Datum key, Datum second = 0) {
  return SearchSysCacheExists(cache, key, second, 0, 0);
}

// A copy of the row, to be changed; nullptr if there is no such row.
inline HeapTuple copy_of_row(SysCacheIdentifier cache, Oid oid) {
  return SearchSysCacheCopy(cache, ObjectIdGetDatum(oid), 0, 0, 0);
}

struct WantedOid {
  int column;
  Oid oid;
};

// Calls read(row, tuple, columns) for each row that has the one or two OIDs, by an index on these
// columns; without a snapshot, as the catalog is now.
template <typename Row, typename Read>
void scan_catalog(Oid catalog, Oid index, std::initializer_list<WantedOid> wanted, Read&& read,
                  Snapshot snapshot = nullptr) {
  ScanKeyData keys[2];
  int count = 0;
  for (const WantedOid& key : wanted)
    ScanKeyInit(&keys[count++], static_cast<AttrNumber>(key.column), BTEqualStrategyNumber, F_OIDEQ,
                ObjectIdGetDatum(key.oid));
  Relation table = table_open(catalog, AccessShareLock);
  SysScanDesc scan = systable_beginscan(table, index, OidIsValid(index), snapshot, count, keys);
  while (HeapTuple tuple = systable_getnext(scan))
    read(*reinterpret_cast<const Row*>(GETSTRUCT(tuple)), tuple, RelationGetDescr(table));
  systable_endscan(scan);
  table_close(table, AccessShareLock);
}

// The same for all rows.
template <typename Row, typename Read>
void scan_catalog(Oid catalog, Read&& read) {
  scan_catalog<Row>(catalog, InvalidOid, {}, read);
}

}  // namespace streamfilter::pg
