#include "pg/server/postgres.hpp"

extern "C" {
#include "access/genam.h"
#include "access/relscan.h"
}

#include "pg/shmem/log_pages.hpp"
#include "pg/storage/page_scan.hpp"

namespace streamfilter::pg {

struct PageScan {
  Relation log;
  Oid filter;
  TableScanDesc rows;  // of a run of pages
  bool leaves_out;     // pages without rows
  bool in_run;
  BlockNumber next, end;  // pages
};

namespace {

constexpr BlockNumber kLongestRun = 64;  // pages, which the server still has in memory
constexpr AttrNumber kFilterColumn = 1;

// False: the row is damaged.
bool add_filter(Relation log, Page page, ItemId item, PageFilters* filters) {
  HeapTupleData tuple;
  tuple.t_len = ItemIdGetLength(item);
  if (ItemIdGetOffset(item) + tuple.t_len > BLCKSZ || tuple.t_len < SizeofHeapTupleHeader)
    return false;
  tuple.t_data = reinterpret_cast<HeapTupleHeader>(PageGetItem(page, item));
  if (tuple.t_data->t_hoff + sizeof(Oid) > tuple.t_len) return false;
  bool isnull;
  const Datum value = heap_getattr(&tuple, kFilterColumn, RelationGetDescr(log), &isnull);
  if (!isnull) filters->add(DatumGetObjectId(value));
  return !isnull;
}

// Of all rows, visible or not. False: not known.
bool find_filters(Relation log, Page page, PageFilters* filters) {
  if (PageIsNew(page)) return false;
  const OffsetNumber last = PageGetMaxOffsetNumber(page);
  for (OffsetNumber at = FirstOffsetNumber; at <= last; at = OffsetNumberNext(at)) {
    const ItemId item = PageGetItemId(page, at);
    if (ItemIdIsNormal(item) && !add_filter(log, page, item, filters)) return false;
  }
  return true;
}

void learn_page(Relation log, BlockNumber number) {
  Buffer buffer = ReadBuffer(log, number);
  LockBuffer(buffer, BUFFER_LOCK_SHARE);
  PageFilters filters;
  if (find_filters(log, BufferGetPage(buffer), &filters)) note_page(file_of(log), number, filters);
  UnlockReleaseBuffer(buffer);
}

bool is_left_out(const PageScan* scan, BlockNumber page) {
  if (!scan->leaves_out) return false;
  const Oid file = file_of(scan->log);
  PageRows rows = rows_on_page(file, page, scan->filter);
  if (rows == PageRows::unknown && make_room_for_page(file, page)) {
    CHECK_FOR_INTERRUPTS();
    learn_page(scan->log, page);
    rows = rows_on_page(file, page, scan->filter);
  }
  return rows == PageRows::none;
}

// Begins with the next pages that follow each other; false: there are none.
bool begin_run(PageScan* scan) {
  while (scan->next < scan->end && is_left_out(scan, scan->next)) ++scan->next;
  if (scan->next >= scan->end) return false;
  const BlockNumber first = scan->next++;
  if (!scan->leaves_out) scan->next = scan->end;
  while (scan->next < scan->end && scan->next - first < kLongestRun &&
         !is_left_out(scan, scan->next))
    ++scan->next;
  heap_rescan(scan->rows, nullptr, false, false, false, false);
  heap_setscanlimits(scan->rows, first, scan->next - first);
  return true;
}

}  // namespace

Oid file_of(Relation relation) { return SF_FILE_NUMBER(relation); }

PageScan* begin_page_scan(Relation log, Oid filter, Snapshot snapshot, ScanKey key) {
  auto* scan = static_cast<PageScan*>(palloc(sizeof(PageScan)));
  scan->log = log;
  scan->filter = filter;
  scan->rows = table_beginscan_strat(log, snapshot, 1, key, true, false);
  scan->leaves_out = !RecoveryInProgress();
  scan->in_run = false;
  scan->next = 0;
  scan->end = RelationGetNumberOfBlocks(log);
  return scan;
}

HeapTuple next_row(PageScan* scan) {
  for (;;) {
    CHECK_FOR_INTERRUPTS();
    HeapTuple tuple = scan->in_run ? heap_getnext(scan->rows, ForwardScanDirection) : nullptr;
    if (tuple != nullptr) return tuple;
    scan->in_run = begin_run(scan);
    if (!scan->in_run) return nullptr;
  }
}

void end_page_scan(PageScan* scan) {
  table_endscan(scan->rows);
  pfree(scan);
}

// ---- by index -----------------------------------------------------------------------------------

struct IndexScan {
  Relation table, index;
  Snapshot snapshot;
  IndexScanDesc places;
  BufferAccessStrategy ring;
  Buffer buffer;
  HeapTupleData tuple;
};

namespace {

bool sees(Snapshot snapshot, TransactionId xid) {
  return !XidInMVCCSnapshot(xid, snapshot) && TransactionIdDidCommit(xid);
}

// Inserted and perhaps deleted, each as a whole, by others.
bool is_plain(HeapTupleHeader row) {
  constexpr uint16 kOthers = HEAP_MOVED | HEAP_XMAX_IS_MULTI | HEAP_XMAX_LOCK_ONLY;
  return (row->t_infomask & kOthers) == 0 &&
         !TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetRawXmin(row)) &&
         !TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetRawXmax(row));
}

// Sets no hint bits where it can do without.
bool is_visible(IndexScan* scan) {
  const HeapTupleHeader row = scan->tuple.t_data;
  if (scan->snapshot->snapshot_type != SNAPSHOT_MVCC || !is_plain(row))
    return HeapTupleSatisfiesVisibility(&scan->tuple, scan->snapshot, scan->buffer);
  if (!HeapTupleHeaderXminFrozen(row) &&
      (HeapTupleHeaderXminInvalid(row) || !sees(scan->snapshot, HeapTupleHeaderGetRawXmin(row))))
    return false;
  return (row->t_infomask & HEAP_XMAX_INVALID) != 0 ||
         !sees(scan->snapshot, HeapTupleHeaderGetRawXmax(row));
}

void read_page(IndexScan* scan, BlockNumber page) {
  if (BufferIsValid(scan->buffer)) {
    if (BufferGetBlockNumber(scan->buffer) == page) return;
    ReleaseBuffer(scan->buffer);
    scan->buffer = InvalidBuffer;
  }
  scan->buffer = ReadBufferExtended(scan->table, MAIN_FORKNUM, page, RBM_NORMAL, scan->ring);
}

// False: the page has no such row. It may be damaged.
bool find_row(IndexScan* scan, ItemPointer place) {
  Page page = BufferGetPage(scan->buffer);
  const OffsetNumber number = ItemPointerGetOffsetNumber(place);
  if (number < FirstOffsetNumber || number > PageGetMaxOffsetNumber(page)) return false;
  const ItemId item = PageGetItemId(page, number);
  if (!ItemIdIsNormal(item) || ItemIdGetLength(item) < SizeofHeapTupleHeader ||
      ItemIdGetOffset(item) + ItemIdGetLength(item) > BLCKSZ)
    return false;
  scan->tuple.t_data = reinterpret_cast<HeapTupleHeader>(PageGetItem(page, item));
  scan->tuple.t_len = ItemIdGetLength(item);
  scan->tuple.t_self = *place;
  return true;
}

}  // namespace

IndexScan* begin_index_scan(Relation table, Oid index, Snapshot snapshot, ScanKey keys, int count) {
  auto* scan = static_cast<IndexScan*>(palloc0(sizeof(IndexScan)));
  scan->table = table;
  scan->index = index_open(index, AccessShareLock);
  scan->snapshot = snapshot;
  for (int i = 0; i < count; ++i) keys[i].sk_attno = i == 0 ? 1 : 2;
  scan->places = SF_INDEX_BEGINSCAN(table, scan->index, snapshot, count);
  index_rescan(scan->places, keys, count, nullptr, 0);
  // A page that is unreadable now is no reason to forget its rows' places.
  scan->places->ignore_killed_tuples = false;
  scan->ring = GetAccessStrategy(BAS_BULKREAD);
  scan->tuple.t_tableOid = RelationGetRelid(table);
  return scan;
}

HeapTuple next_row(IndexScan* scan) {
  while (ItemPointer place = index_getnext_tid(scan->places, ForwardScanDirection)) {
    CHECK_FOR_INTERRUPTS();
    read_page(scan, ItemPointerGetBlockNumber(place));
    LockBuffer(scan->buffer, BUFFER_LOCK_SHARE);
    const bool found = find_row(scan, place) && is_visible(scan);
    LockBuffer(scan->buffer, BUFFER_LOCK_UNLOCK);
    if (found) return &scan->tuple;
  }
  return nullptr;
}

void end_index_scan(IndexScan* scan) {
  if (BufferIsValid(scan->buffer)) ReleaseBuffer(scan->buffer);
  index_endscan(scan->places);
  index_close(scan->index, AccessShareLock);
  FreeAccessStrategy(scan->ring);
  pfree(scan);
}

}  // namespace streamfilter::pg
