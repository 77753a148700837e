// A sample of a query's keys, with all their rows.
#pragma once

#include "core/advise/forecast.hpp"
#include "pg/server/progress.hpp"

namespace streamfilter::pg {

struct Sample {
  SampledRows rows;
  int64 read;        // rows with a key
  bool is_complete;  // the query was read to its end
};

// Runs the query, whose only column is the key, and keeps the hashes of as large a sample as fits;
// its rate is a power of 1/2, not below `least`. If even that does not fit, reading ends early. SPI
// must be connected.
Sample sample_rows(const char* query, double least, const char* function, Progress* progress);

}  // namespace streamfilter::pg
