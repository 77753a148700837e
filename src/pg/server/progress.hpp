// Progress of long work: for everybody in view streamfilter_progress, and for its session as
// NOTICEs. Every session has a place in shared memory, for one piece of work at a time.
#pragma once

#include "pg/server/rows.hpp"

namespace streamfilter::pg {

enum class Command : uint8 {
  none,
  distinct,
  evaluate,
  profile,
  restore,
  resize,
  warm,
  advise,
  settle
};

// Work within the current memory context: the view shows it until the context is reset or deleted,
// also on errors. While work runs within work, the view shows the inner one.
class Progress {
 public:
  // `title` begins the notices; it must live as long as the work. `filter` may be InvalidOid.
  Progress(Command command, Oid filter, const char* title);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `phase` and `unit` are literals; total 0: not known.
  void begin(const char* phase, uint64 total, const char* unit);

  // Call it between batches: gives way to interrupts. A notice of rows every few seconds, none for
  // work that is done in two; with a total it names the seconds that are left.
  void add(uint64 count);

  // The same for bytes of a total.
  void add_bytes(uint64 count);

  // The same for other units: shown in the view only.
  void advance(uint64 count);

  // Ends the work before its memory context does.
  void end();

 private:
  bool is_notice_due(int64 now);
  double left(int64 now) const;  // seconds

  const char* title_;
  uint64 rows_ = 0;
  uint64 total_ = 0, done_ = 0;  // of this phase
  int64 start_;                  // by monotonic_us(), as the others
  int64 phase_start_ = 0;
  int64 next_;
  struct Outer* outer_ = nullptr;
};

// Reads the rows of the cursor to their end and closes it. `take` gets so many at a time, as
// SPI_tuptable, in memory of their own, until it returns false.
template <typename Take>
void read_in_batches(Portal portal, int most, Progress* progress, const Take& take) {
  MemoryContext memory = make_context("streamfilter batch of rows");
  progress->begin("reading rows", expected_rows(portal), "rows");
  for (bool goes_on = true; goes_on;) {
    SPI_cursor_fetch(portal, true, most);
    if (SPI_processed == 0) break;
    {
      const InContext batch(memory);
      goes_on = take();
    }
    MemoryContextReset(memory);
    progress->add(SPI_processed);
    SPI_freetuptable(SPI_tuptable);
  }
  SPI_cursor_close(portal);
  MemoryContextDelete(memory);
}

// Seconds until another session is done with its work on the filter, at its pace so far; negative:
// not known.
double seconds_left(Command command, Oid filter);

// For shared memory.
void request_progress();
void start_progress();

}  // namespace streamfilter::pg
