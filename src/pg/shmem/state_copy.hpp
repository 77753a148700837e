// A filter gets another size while its users go on: its state is copied slice by slice into another
// slot, and what transactions bring into the filter meanwhile goes into the copy, too, as far as
// that has come.
//
// Nothing gets lost between the two, and nothing comes in another order: who brings changes in
// enters, then gives them to the copy, then to the filter. Where the copy has the slice, they are
// applied; where the slice is next, they are noted; else nothing is done. The copier says that a
// slice is next, waits for those who have entered before, and reads the filter: they are in what it
// reads. What others bring in is noted, and may be in it as well: to apply a change twice does no
// harm.
#pragma once

#include "core/format/layout.hpp"

extern "C" {
#include "port/atomics.h"
}

namespace streamfilter::pg {

struct FilterSlot;

// What a change does: one of ChangeType (own_changes.hpp), or a key that was found is seen again.
constexpr uint8 kAddition = 0, kPromotion = 255;

struct CopyNote {
  Element element;
  uint8 type;
};

// A ring; read and written under the lock of the slice that is next.
struct CopyNotes {
  uint32 capacity, first, count;
  bool overflowed;
  CopyNote notes[FLEXIBLE_ARRAY_MEMBER];
};

struct StateCopy {
  // Of a slot that is copied.
  pg_atomic_uint32 to;           // the number of the slot of the copy + 1; 0: it is not copied
  pg_atomic_uint32 spoiled;      // it was emptied, or the like
  pg_atomic_uint32 applying[2];  // those who bring changes in, by parity of the phase
  pg_atomic_uint32 phase;
  // Of a copy. The lock of the slice that is next is held where these two change.
  pg_atomic_uint32 copied;  // slices that it has: all below this one
  pg_atomic_uint32 noting;  // is the next one being copied?
  CopyNotes* notes;
  FilterSlot* of;
  uint64 generation_of;
};

void reset_state_copy(StateCopy* copy);

// Around changes that are brought in: nothing in between may wait for more than short locks, or
// raise.
uint32 enter_apply(FilterSlot* slot);
void leave_apply(FilterSlot* slot, uint32 phase);

// Where the changes go as well, for those who have entered; nullptr: nowhere.
FilterSlot* copy_of(FilterSlot* slot);

// What to do with changes of a slice of the copy, whose lock is held.
enum class CopyGate : uint8 { skip, note, apply };
CopyGate copy_gate(FilterSlot* copy, uint32 slice);
void note_change(FilterSlot* copy, uint8 type, const Element& element);

// A new key of a prepared transaction, for those who have entered.
void insert_into_copy(FilterSlot* copy, const Element& element);

// A key was found, and seen again.
void promote_in_copy(FilterSlot* slot, const Element& element);

// ---- for the copier

// The slot of a copy whose notes may take so many bytes behind its parameters' memory becomes that
// of `slot`. False: this is copied already.
bool begin_copy(FilterSlot* slot, FilterSlot* copy, uint64 note_bytes);

// Until all who had entered are through. `between` is called while it waits, and may raise.
void wait_for_applying(FilterSlot* slot, void (*between)());

// From now on changes of the slice, which is the next one, are noted.
void begin_slice(FilterSlot* copy, uint32 slice);

// Applies up to so many notes by apply(note), under the lock. Nothing was noted: the slice is
// there, and nothing is noted any more.
enum class Noted : uint8 { done, more, overflowed };
Noted apply_notes(FilterSlot* copy, uint32 slice, void (*apply)(Header* header, const CopyNote&));

// The filter is copied no longer: nobody looks at the copy afterwards. Cannot fail.
void end_copy(FilterSlot* copy);

}  // namespace streamfilter::pg
