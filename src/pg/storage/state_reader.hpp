// Reads the saved state of a filter: log, image, and keys of prepared transactions.
#pragma once

extern "C" {
#include "utils/resowner.h"
}

#include "pg/catalog/filter_relation.hpp"
#include "pg/server/progress.hpp"
#include "pg/shmem/filter_directory.hpp"
#include "pg/storage/state_heaps.hpp"

struct Tuplesortstate;
struct TupleTableSlot;

namespace streamfilter::pg {

// Sorts rows of the log by number, within maintenance_work_mem and beyond that in temporary files.
// Lives in the current memory context and resource owner, which clean up after errors.
class RowSort {
 public:
  explicit RowSort(Relation table);
  RowSort(const RowSort&) = delete;
  RowSort& operator=(const RowSort&) = delete;

  // Also within a subtransaction.
  void put(HeapTuple tuple);

  // After the last put: the next row, valid until the next call. False: there are no more.
  bool next(LogRow* row);

  void end();

 private:
  Relation table_;
  ResourceOwner owner_;
  Tuplesortstate* sort_;
  TupleTableSlot *put_slot_, *next_slot_;
  HeapTuple copy_ = nullptr;
  bool sorted_ = false;
  int settings_;  // nest level of settings
};

// The newest of the log's rows without keys, whose data is copied, and totals of all rows. `filter`
// is 0 where there is none.
struct LogRows {
  LogRow header{};  // decides whose state is saved
  LogRow reset{};
  uint64 all = 0;
  uint64 bytes = 0;
  uint64 damaged = 0;
};

struct SavedImage {
  bool found = false;            // one of this definition
  const char* damage = nullptr;  // or why it cannot be used
  bool placed = false;           // something of it is in the block
  int32 chunks = 0;              // that there are, says its header
  int32 read = 0;                // of them, by all calls of read_image
  int64 identity = 0;
  TimestampTz saved = 0;
  Parameters parameters{};
};

// Chunks that lie side by side, on their way into fresh memory: few calls bring it many pages.
struct ChunkRun {
  char* bytes = nullptr;
  char* place = nullptr;
  Size size = 0;
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
  PlayedRows* played = nullptr;  // on a standby: these rows of the log are skipped, others added;
                                 // it may be promoted meanwhile
  Progress* progress = nullptr;
  MemoryContext context = nullptr, caller = nullptr;
  const StateScan::Chunks* chunks = nullptr;  // given: of the image only these
  int64 life = 0;                             // given: images of others are skipped
  int64 former = 0;                           // SavedHeader::former of the newest header
  RowSort* sort = nullptr;  // gets all rows of the log; nullptr: only LogRows are wanted
  // Results.
  uint64 next_number = 1;     // that follows those of all rows
  uint64 latest = 0;          // the number of the latest one that is committed
  uint32 last_page = 0;       // with one of them, plus 1; 0: there is none
  bool has_prepared = false;  // transactions that are prepared have written to it
  LogRows log;
  LogRow prepared{};  // the newest header that a prepared transaction has written
  SavedImage image;
  ChunkRun run;
};

// Locks and opens the heaps, in a memory context of its own. False: there are none (yet, or any
// more). `sorts`: all rows of the log are wanted.
bool begin_reading(StateReading* reading, FilterSlot* slot, const FilterRelation* relation,
                   const char* what, bool sorts = true);
void end_reading(StateReading* reading);

// Puts keys of transactions that were prepared before the server started back in flight. No other
// unfinished transaction can have written to this filter's log, because its state is only being
// built, or was only read so far. Call it before taking the snapshot: a transaction that commits in
// between is then in both. Without a slot only the numbers of their rows are wanted.
void read_prepared(StateReading* reading);
void read_log(StateReading* reading);
// The slices of the block must be zeroed, and its header have the definition.
void read_image(StateReading* reading);
// The damage that shows after all of an image was read; nullptr: none.
const char* damage_of_whole(const SavedImage& image);

// Calls one of these functions, and returns the error that damaged bytes may cause; nullptr: none.
// Uses a subtransaction, which a parallel query does not allow: there, errors remain errors.
const char* try_to_read(void (*read)(StateReading*), StateReading* reading);

// As take_parameters of saved_definition.hpp.
const char* take_parameters(const LogRow& row, const FilterRelation* relation, Parameters* result);

// Replays one change that is no reset.
void replay_change(FilterSlot* slot, Header* block, const LoggedChange& change);

// Is the row of this life?
inline bool is_of_life(const StateReading& reading, const LogRow& row, int64 life) {
  return row.identity == life || (row.identity == reading.former && reading.former != 0);
}

// Plays the rows that were read, those of the number `from` and above, on a filter that others may
// be reading.
void replay_rows(const StateReading& reading, Header* block, int64 from, int64 identity);

// Also for streamfilter_stats.state, until the next image.
void warn_damaged(FilterSlot* slot, const FilterRelation* relation, const char* what,
                  const char* detail);

// For a reading on a standby: what was played before, or, of nullptr, nothing.
PlayedRows* copy_played(const PlayedRows* from);
// After one: keeps it, and up to which WAL position was replayed.
void keep_played(FilterSlot* slot, const StateReading& reading, XLogRecPtr replayed);

}  // namespace streamfilter::pg
