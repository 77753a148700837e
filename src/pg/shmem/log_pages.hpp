// Which filters have rows on a page of the log, which all filters of a database share: so a first
// use reads pages with rows of its filter. Words of bits for each page, in shared memory, hold what
// sessions have seen there. A page that is not known must be read: after a start none is.
//
// No row is ever missed: who reads a page says what is on it while it holds the page's lock, and
// who has added a row adds its filter's bit afterwards, before the row is committed. So the row was
// there when the page was read, or the page was known when the bit came.
#pragma once

extern "C" {
#include "storage/block.h"
}

namespace streamfilter::pg {

// The filters with rows on one page; some too many, since they share bits.
class PageFilters {
 public:
  static constexpr int kWords = 4;

  void add(Oid filter);
  uint64 word(int at) const { return words_[at]; }

 private:
  uint64 words_[kWords] = {};
};

enum class PageRows : uint8 { unknown, none, some };

// What is known of a filter's rows on a page of the heap with this file, in this database.
PageRows rows_on_page(Oid file, BlockNumber page, Oid filter);

// Makes a page known. The caller holds the page's lock, and no filter is missing.
void note_page(Oid file, BlockNumber page, const PageFilters& filters);

// False: there is none left to note this page.
bool make_room_for_page(Oid file, BlockNumber page);

// A row of the filter was added to the page.
void note_row(Oid file, BlockNumber page, Oid filter);

// Call for a dropped database.
void forget_log_pages(Oid database);

// For shared memory.
void request_log_pages();
void start_log_pages();

}  // namespace streamfilter::pg
