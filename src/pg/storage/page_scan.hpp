// A filter's rows in the log: page by page, without the pages that have none (log_pages.hpp). On a
// standby, where WAL adds rows that nobody sees come, all pages are read.
#pragma once

extern "C" {
#include "access/skey.h"
#include "utils/snapshot.h"
}

namespace streamfilter::pg {

struct PageScan;

// The file that a relation has now.
Oid file_of(Relation relation);

// `key` finds the filter's rows. The scan sees what is on the pages by now.
PageScan* begin_page_scan(Relation log, Oid filter, Snapshot snapshot, ScanKey key);
HeapTuple next_row(PageScan* scan);  // nullptr after the last one
void end_page_scan(PageScan* scan);

// ---- by index -----------------------------------------------------------------------------------

// A filter's rows in the order of an index. A restore reads gigabytes, so the pages go through a
// ring of few buffers and stay as they are: a hint bit would write each of them once more, and into
// the WAL where pages have checksums.

struct IndexScan;

// The first key is of the index's first column, others of its second.
IndexScan* begin_index_scan(Relation table, Oid index, Snapshot snapshot, ScanKey keys, int count);
HeapTuple next_row(IndexScan* scan);  // nullptr after the last one; valid until the next call
void end_index_scan(IndexScan* scan);

}  // namespace streamfilter::pg
