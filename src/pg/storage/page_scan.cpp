#include "pg/server/postgres.hpp"

extern "C" {
#include "access/heapam.h"
#include "access/tableam.h"
#include "access/xlog.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
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

}  // namespace streamfilter::pg
