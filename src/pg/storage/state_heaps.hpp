// The two heaps with the state of logged filters: a log of changes, and images of whole filters.
// They are ordinary relations, so that rollback, crash recovery, standbys and backups treat them
// like user tables.
//
// A filter's saved state is its latest image, if there is one, and the rows of the log. Rows of
// both carry the identity of a life (saved_definition.hpp). The log's newest header says which one
// counts; no row of another is brought into the filter. A committed change is in the image, in the
// log, or in both:
//
// - An image deletes the log rows that its snapshot sees. These are committed, but their changes
//   come into the filter only after that. So begin_save takes the snapshot first, then brings in
//   changes of prepared transactions that have ended, and waits for all who have entered their
//   commit (LogState::commits). Only then slices are copied.
// - Who commits later may be in a slice that is copied later still. The rows stay in the log, and
//   are replayed on an image that has their changes: to bring in a change twice does no harm.
// - The image comes with the transaction that writes it, or not at all. Others wait for its lock on
//   the filter: a filter has one writer of images, and an image is never mixed. Several filters are
//   locked in the order of their OIDs. CALL streamfilter_resize() writes the image of its copy, of
//   another life, without that lock, and takes it when the image is to count. On the heaps nobody
//   holds a lock that keeps others from writing.
//
// Changes are replayed by their rows' numbers, which a counter in shared memory gives. Numbers of
// changes that commute say nothing; others are numbered in the order in which they are brought in
// (arrivals.hpp). A reset makes useless what has a lower number, and the image.
#pragma once

extern "C" {
#include "utils/snapshot.h"
}

#include "pg/storage/saved_rows.hpp"

namespace streamfilter::pg {

enum class StateTable : uint8 { log, image };

constexpr AttrNumber kNumberColumn = 3;  // of both

// Opens the heap of the filter's extension; nullptr if the filter is being dropped. Raises 42P01 if
// there is no such heap.
Relation open_state_table(StateTable table, Oid filter, LOCKMODE lock);

// A step of kRelationSteps.
void on_heap_change(Oid relation);

// Opens the log for a transaction that writes to it; nullptr if its lock is not free.
Relation try_to_open_log(Oid filter);

// Do the heaps exist? Not if the filter or the extension is being dropped.
bool has_state_tables(Oid filter);

// Schema of the heaps and of everything else that users do not call; InvalidOid without extension.
Oid schema_of_internals();

// Is it one of the extension's heaps, in its place?
bool is_state_table(Oid relation);

// Opens both heaps or none. Closing them keeps the locks.
struct StateTables {
  Relation images;
  Relation log;
};
bool open_state_tables(Oid filter, LOCKMODE lock, StateTables* tables);
void close_state_tables(const StateTables& tables);

// Opens the heaps of all filters of the database under an AccessExclusiveLock; then gives both new,
// empty storage, as TRUNCATE does, without reading them.
void open_all_saved(StateTables* tables);
void empty_state_tables(const StateTables& tables);

// Sees what is committed by now, whatever the isolation level; also within a parallel query.
Snapshot register_latest_snapshot();

struct IndexScan;
struct PageScan;

// The filter's rows in a heap, by its index if there is one. A damaged page counts as empty, with a
// WARNING.
class StateScan {
 public:
  // Restricts a scan to image rows with these numbers: see has_image_order.
  struct Chunks {
    int32 first, last;
  };
  StateScan(Relation table, Oid filter, Snapshot snapshot, const Chunks* chunks = nullptr);
  HeapTuple next();  // nullptr after the last one
  void end();

 private:
  Relation table_;
  Oid filter_;
  // One of them.
  IndexScan* places_ = nullptr;
  PageScan* pages_ = nullptr;
  TableScanDesc rows_ = nullptr;
  int settings_;  // nest level of settings
};

// Is a range of chunks to be had without the others? Not without a valid index.
bool has_image_order(Relation images);

// Adds a row; needs a RowExclusiveLock. Returns the bytes of its tuple. The rows of a filter lie
// together: *last_page is that of its latest row, plus 1; 0: not known.
Size write_state_row(Relation table, const LogRow& row, pg_atomic_uint32* last_page);
void write_state_row(Relation table, const ImageRow& row);

// False: damaged.
bool read_state_row(Relation table, HeapTuple tuple, LogRow* row);
bool read_state_row(Relation table, HeapTuple tuple, ImageRow* row);

// Deletes the filter's rows that the snapshot sees. The caller has locked the filter against others
// that do so. Returns the deleted bytes.
uint64 delete_rows(Relation table, Oid filter, Snapshot snapshot);

}  // namespace streamfilter::pg
