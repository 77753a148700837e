// The two heaps that hold the state of logged filters: the log of what transactions have added, and
// images of whole filters. They are ordinary relations, so rollback, crash recovery, standbys and
// backups treat them as they treat the user's tables; that is the whole point of them.
#pragma once

extern "C" {
#include "access/genam.h"
#include "utils/rel.h"
#include "utils/snapshot.h"
}

#include "pg/storage/saved_rows.hpp"

namespace streamfilter::pg {

enum class StateTable : uint8 { log, image };

constexpr AttrNumber kNumberColumn = 3;  // of both

// Opens the heap of the extension that the filter belongs to; nullptr if the filter is being
// dropped. Raises 42P01 if there is no such heap.
Relation open_state_table(StateTable table, Oid filter, LOCKMODE lock);

// The log as a transaction that writes to it has it; nullptr: its lock is not to be had at once.
Relation try_to_open_log(Oid filter);

// Are the heaps there? Not if the filter or the extension is being dropped.
bool has_state_tables(Oid filter);

// Where these heaps are, and all else that users do not call; InvalidOid: there is no extension.
Oid schema_of_internals();

// Is it one of the heaps of the extension, in its place?
bool is_state_table(Oid relation);

// Opens both heaps or none. Closing them gives no lock back.
struct StateTables {
  Relation images;
  Relation log;
};
bool open_state_tables(Oid filter, LOCKMODE images, LOCKMODE log, StateTables* tables);
void close_state_tables(const StateTables& tables);

// The heaps for all filters of the database; gives both new, empty storage, as TRUNCATE would: they
// are not read for that, but locked with an AccessExclusiveLock.
void open_all_saved(StateTables* tables, LOCKMODE lock);
void empty_state_tables(const StateTables& tables);

// What has been committed by now, whatever the isolation level; also within a parallel query.
Snapshot register_latest_snapshot();

// The filter's rows in a heap, by its index if it has one. A page that is damaged counts as empty,
// with a WARNING.
class StateScan {
 public:
  // Of images, those of these numbers: see has_image_order.
  struct Chunks {
    int32 first, last;
  };
  StateScan(Relation table, Oid filter, Snapshot snapshot, const Chunks* chunks = nullptr);
  HeapTuple next();  // nullptr after the last one
  void end();

 private:
  Relation table_;
  Oid filter_;
  SysScanDesc scan_;
  int settings_;  // the nest level of settings
};

// Is a range of chunks to be had without the others? Not before version 1.2.
bool has_image_order(Relation images);

// Adds a row; needs a RowExclusiveLock. Returns the bytes of its tuple.
Size write_row(Relation table, const LogRow& row);
void write_row(Relation table, const ImageRow& row);

// False: damaged.
bool read_row(Relation table, HeapTuple tuple, LogRow* row);
bool read_row(Relation table, HeapTuple tuple, ImageRow* row);

// The identity in a row of either heap.
int64 identity_in(Relation table, HeapTuple tuple);

// Deletes the filter's rows that the snapshot sees, but for those of identity `except`, if given.
// The caller holds a ShareUpdateExclusiveLock on the table of images. Returns the bytes of the
// rows.
uint64 delete_rows(Relation table, Oid filter, Snapshot snapshot, const int64* except = nullptr);

// What ties rows to a filter's state: its definition and its seed.
int64 identity_of(uint64 signature, uint64 seed);

}  // namespace streamfilter::pg
