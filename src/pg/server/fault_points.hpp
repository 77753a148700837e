// Places where a test can stop a session until another one lets it go: only in a build with
// FAULTS=1. A test makes the functions itself (test/t/FaultPoints.pm); no script of the extension
// has them.
//
// Sessions that call these pass everywhere themselves.
//
//   streamfilter_fault(point text, action text)    what the next session that gets there does:
//                                                  pass, stop (a minute at most, one session),
//                                                  fail, kill; skip, before one of these: not the
//                                                  next time but the one after it
//   streamfilter_fault_reached(point text, seconds float8) → boolean
//                                                  does a session stand there, by then?
#pragma once

namespace streamfilter::pg {

enum class FaultPoint : uint8 {
  pre_commit,     // nothing has been saved yet
  commit_wait,    // COMMIT waits for a prepared transaction: nothing is marked or written
  marking,        // COMMIT shows that it draws its number among arriving transactions
  logged,         // all is in the log, and the transaction may yet fail
  committed,      // after the commit record; nothing has been done with the changes
  applied,        // they are in the filters, and still in the table of keys in flight
  resolve,        // a prepared transaction is found to have ended
  resolving,      // this session ends it, and a change of it is not in its filter
  load,           // a filter's saved state is about to be read
  restore,        // what belongs to it is known, and none of it in the filter
  replay,         // the image is read, and rows of the log are not replayed
  restore_range,  // rows may come, and not all of the filter is there
  save,           // what is saved now is known, and not written
  judge,          // the keys of a batch were looked up, and none is answered or added yet
  grow,           // the table of keys in flight is full, and no memory is taken for it yet
  lookup,         // an OID was found, and what it stands for is not read yet
  // streamfilter_resize():
  resize_slice,   // a slice was read, and is not in the copy
  resize_copied,  // all slices are in the copy, and nothing is saved
  resize_saved,   // the copy is saved, and the filter is not locked
  resize_locked,  // nobody else uses the filter, which has its former definition
  diverted,       // repeats of a batch are written, and kept rows not necessarily
  // streamfilter_settle():
  settle_confirmed,  // rows whose key is in the table are deleted
  settle_taken,      // keys of the others are taken
  settle_restored,   // rows have come back, and duplicates of them are not deleted yet
};

#ifdef STREAMFILTER_FAULTS
void stop_at(FaultPoint point);

// For shared memory.
void request_fault_points();
void start_fault_points();
#else
inline void stop_at(FaultPoint) {}
#endif

}  // namespace streamfilter::pg
