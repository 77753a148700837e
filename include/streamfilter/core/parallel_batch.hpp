// A block of a stream, worked off by any number of workers at once (sqf.txt, section 5.2), with the
// answers and the final bytes that one worker gets who takes the elements in their order.
//
// The slices of a filter are filters of their own: rows, counters, generator. So elements are grouped
// by slice, a slice belongs to one worker, and in it elements are taken in the order of their
// positions. A bucket needs no `pos` for that, and no block number: what the paper's workers find out
// afterwards by comparing positions cannot happen here.
//
// Memory is the caller's, and so are the threads: core knows none. Holds for every kind. Where keys
// lie in several slices (placement.hpp), all of a batch is the first slice's, for one worker.
#pragma once

#include "streamfilter/core/filter.hpp"

namespace streamfilter {

// An element and its place in the stream, unique in its batch.
struct Arrival {
  Element element;
  std::int64_t position;
};

struct Batch {
  const Arrival* arrivals;  // in any order
  std::uint32_t count;
  std::uint32_t* order;   // `count` of them: indexes of arrivals, slice by slice
  std::uint32_t* starts;  // one more than there are slices: where in `order` each begins
  bool* seen;             // `count` answers, by index of the arrival
};

// Fills `order` and `starts`. Within a slice the arrivals keep their order.
void group_by_slice(const Parameters& parameters, const Batch& batch) noexcept;

// Inserts what belongs to one slice, by position, and stores the answers. Different slices may be
// worked on at the same time.
void insert_slice(Header* header, const Batch& batch, std::uint32_t slice) noexcept;

// The share of worker 0 ≤ worker < workers: each slice is in exactly one of them.
void insert_share(Header* header, const Batch& batch, std::uint32_t worker,
                  std::uint32_t workers) noexcept;

}  // namespace streamfilter
