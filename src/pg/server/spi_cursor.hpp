// Queries that set-returning functions run for the user: one SELECT, read by a cursor in batches.
#pragma once

extern "C" {
#include "utils/portal.h"
}

namespace streamfilter::pg {

// Prepares the query and opens a cursor for it; SPI must be connected. Raises 34000 unless it is
// one SELECT; `function` names the caller in that message.
Portal open_query(const char* query, const char* function);

// Tells a user who waits how far a function has come: a NOTICE every few seconds, none for work
// that is done in two. Call it between batches; gives way to interrupts.
class Progress {
 public:
  explicit Progress(const char* function);
  void add(uint64 rows);

 private:
  const char* function_;
  uint64 rows_ = 0;
  TimestampTz start_;
  TimestampTz next_;
};

}  // namespace streamfilter::pg
