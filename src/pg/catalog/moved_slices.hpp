// Slices that have left a relation which holds slices of another server's filter. Its option
// `moved` says where each went, as "slice:server@epoch, ...". Slices are counted as in that
// relation, from 0; servers as in option servers of the producer, from 1. Every move gives the
// slice its next epoch; its first place has epoch 0.
#pragma once

#include "pg/server/postgres.hpp"

namespace streamfilter::pg {

struct MovedSlice {
  uint32 slice;
  uint32 server;  // from 0
  uint32 epoch;
};

struct MovedSlices {
  const MovedSlice* entries = nullptr;  // ordered by slice
  int count = 0;
};

// SQLSTATE of a call for a slice that has left: 55SF1.
constexpr int kSliceMoved = MAKE_SQLSTATE('5', '5', 'S', 'F', '1');
constexpr char kSliceMovedCode[] = "55SF1";

// Allocates in the current memory context. False: the text is not such a list.
bool read_moved_slices(const char* text, MovedSlices* result);

// The same for a list in which a slice may come several times.
bool read_made_places(const char* text, MovedSlices* result);

// nullptr: the slice is still there.
const MovedSlice* find_moved_slice(const MovedSlices& moved, uint32 slice);

// The list with one entry added or changed.
const char* add_moved_slice(const MovedSlices& moved, const MovedSlice& entry);

// Name of the relation with one moved slice. Raises 42622 if it is too long.
const char* name_of_moved_slice(const char* filter, uint32 slice, uint32 epoch);

}  // namespace streamfilter::pg
