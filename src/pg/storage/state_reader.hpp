// Reading what is saved of a filter: the log, the image, and keys of prepared transactions.
#pragma once

#include "pg/catalog/filter_relation.hpp"
#include "pg/server/progress.hpp"
#include "pg/shmem/filter_directory.hpp"
#include "pg/storage/row_sort.hpp"

namespace streamfilter::pg {

// Rows of the log that bring no keys, copied, in the order of their numbers; and what all are.
struct LogRows {
  LogRow* rows = nullptr;
  uint64 count = 0;
  uint64 places = 0;
  uint64 all = 0;  // those that bring keys, too
  uint64 bytes = 0;
  uint64 damaged = 0;
};

struct SavedImage {
  bool found = false;             // one of this definition
  const char* refused = nullptr;  // one that cannot be used, and why
  const char* damage = nullptr;
  bool placed = false;  // something of it is in the block
  int32 chunks = 0;     // that there are, says its header
  int32 read = 0;       // of them, by all calls of read_image
  int64 identity = 0;
  TimestampTz saved = 0;
  Parameters parameters{};
};

// One look at the heaps.
struct StateReading {
  StateTables tables{};
  FilterSlot* slot = nullptr;
  const FilterRelation* relation = nullptr;
  Header* block = nullptr;  // whose slices read_image fills
  bool is_fresh = false;    // the block is that of the slot, of dynamic memory that nobody has used
  uint64 room = 0;          // bytes that there are for it
  Snapshot snapshot = nullptr;
  const SavedState* seen = nullptr;  // given: of the log only what has come since (is_news)
  Progress* progress = nullptr;
  const StateScan::Chunks* chunks = nullptr;  // given: of the image only these
  RowSort* sort = nullptr;  // gets all rows of the log; nullptr: only LogRows are wanted
  // Results.
  uint64 next_number = 1;     // that follows those of all rows
  bool has_prepared = false;  // transactions that are prepared have written to it
  bool unsure = false;        // whether a row of the log was seen
  LogRows log;
  LogRows prepared;  // headers that prepared transactions have written
  SavedImage image;
};

// Puts keys of transactions that were prepared before the server started back in flight. Nobody
// else can have written to this filter's log and not have ended: its state is only being built, or
// was only read so far. Comes before the snapshot is taken: a transaction that commits in between
// is in both.
void read_prepared(StateReading* reading);
void read_log(StateReading* reading);
// The slices of the block must be zeroed, its header tell the definition.
void read_image(StateReading* reading);
// What is wrong with an image after all of it was read; nullptr: nothing.
const char* damage_of_whole(const SavedImage& image);

// Calls one of these. An error that damaged bytes may lead to becomes the result; nullptr: none. It
// takes a subtransaction, which a parallel query does not allow: there errors remain errors.
const char* try_to_read(void (*read)(StateReading*), StateReading* reading);

// The parameters of a saved header, if it is one of this definition: with the geometry that it
// says, whatever this version would derive. Otherwise why it is not; nullptr: it is.
const char* take_parameters(const char* bytes, const FilterRelation* relation, int64 identity,
                            Parameters* result);

// The newest header of the log decides whose state is saved. nullptr: there is none.
const LogRow* newest_header(const LogRows& log);

// One change of a row that was read, and that is no reset.
void replay_change(FilterSlot* slot, Header* block, const LoggedChange& change);

// Plays the rows that were read, those of the number `from` and above, on a filter that others may
// be reading.
void replay_rows(const StateReading& reading, Header* block, int64 from, int64 identity);

}  // namespace streamfilter::pg
