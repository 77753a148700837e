#include "pg/server/postgres.hpp"

extern "C" {
#include "access/genam.h"
#include "access/heapam.h"
#include "access/relscan.h"
#include "access/transam.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/snapmgr.h"
}

#include "pg/storage/index_scan.hpp"

namespace streamfilter::pg {

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
