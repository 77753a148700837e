// A sample of the keys of a query, with all their rows.
#pragma once

#include "core/advise/forecast.hpp"
#include "pg/server/progress.hpp"

namespace streamfilter::pg {

struct Sample {
  SampledRows rows;
  int64 read;        // rows that have a key
  bool is_complete;  // the query has no more
};

// Runs the query, whose one column is the key, and keeps the hashes of as large a sample as fits;
// its rate is a power of 1/2, not below `least`. Where that is not enough, reading ends early. SPI
// must be connected.
Sample sample_rows(const char* query, double least, const char* function, Progress* progress);

}  // namespace streamfilter::pg
