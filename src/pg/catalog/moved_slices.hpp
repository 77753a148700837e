// Slices that have left a relation which holds slices of a filter elsewhere: option `moved` of that
// relation says where each of them went, as "slice:server@epoch, ...". Slices are counted as in
// that relation, from 0; servers as in option servers of the producer, from 1. Every move of a
// slice gives it the next epoch; that of the place where it lay at first is 0.
#pragma once

#include "pg/server/postgres.hpp"

namespace streamfilter::pg {

struct MovedSlice {
  uint32 slice;
  uint32 server;  // from 0
  uint32 epoch;
};

struct MovedSlices {
  const MovedSlice* entries = nullptr;  // by their slices
  int count = 0;
};

// What those who ask for a slice that has left are told: 55SF1.
constexpr int kSliceMoved = MAKE_SQLSTATE('5', '5', 'S', 'F', '1');
constexpr char kSliceMovedCode[] = "55SF1";

// In the current memory context. False: the text is not such a list.
bool read_moved_slices(const char* text, MovedSlices* result);

// nullptr: the slice is still there.
const MovedSlice* find_moved_slice(const MovedSlices& moved, uint32 slice);

// The text of the list with one more entry, or one that has another place now.
const char* add_moved_slice(const MovedSlices& moved, const MovedSlice& entry);

// The relation that holds one slice after a move. Raises 42622 if its name is too long.
const char* name_of_moved_slice(const char* filter, uint32 slice, uint32 epoch);

}  // namespace streamfilter::pg
