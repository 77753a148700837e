// Copies a filter to another size while sessions use it, slice by slice into another slot. Changes
// that transactions bring into the filter meanwhile go into the copy, too, where it has the slice
// already.
//
// Nothing is lost or reordered: a session that brings in changes first enters, then gives them to
// the copy, then to the filter. If the copy has the slice, the changes are applied; if the slice is
// next, they are noted; otherwise they are ignored. The copier declares a slice the next one, waits
// for sessions that have entered before, and reads the filter, which then has their changes. Later
// changes are noted, and may be in what it reads as well: applying a change twice does no harm.
//
//   | before  | begins  | next slice | slice done | overflowed | ends |
//   |---------|---------|------------|------------|------------|------|
//   | none    | between |            |            |            | none |
//   | between |         | noting     |            |            | none |
//   | noting  |         |            | between    | between    | none |
//
// The copier moves it: to and from `noting`, and `copied` with it, under the next slice's lock,
// under which others read both; else under no lock, when nobody has the copy.
#pragma once

#include "pg/shmem/change_type.hpp"
#include "pg/shmem/filter_directory.hpp"

namespace streamfilter::pg {

enum class CopyState : uint8 { none, between, noting };
enum class CopyEvent : uint8 { begins, next_slice, slice_done, overflowed, ends };

// By event: from which states, the first to the last, it leads to which.
constexpr struct {
  CopyState first, last, to;
} kCopyMoves[] = {
    {CopyState::none, CopyState::none, CopyState::between},
    {CopyState::between, CopyState::between, CopyState::noting},
    {CopyState::noting, CopyState::noting, CopyState::between},
    {CopyState::noting, CopyState::noting, CopyState::between},
    {CopyState::none, CopyState::noting, CopyState::none},
};

struct CopyNote {
  Element element;
  ChangeType type;
};

// A ring, read and written under the lock of the next slice.
struct CopyNotes {
  uint32 capacity, first, count;
  bool overflowed;
  CopyNote notes[FLEXIBLE_ARRAY_MEMBER];
};

// The copy, for sessions that have entered StateCopy::applying, as who brings in changes must;
// until they leave, nothing may raise, or wait for more than short locks. nullptr: there is none.
FilterSlot* copy_of(FilterSlot* slot);

// Tells who resizes the filter, if anybody does, that the copy is of no more use.
void spoil_copy(FilterSlot* slot);

// What to do with changes of a copy's slice, whose lock is held.
enum class CopyGate : uint8 { skip, note, apply };
CopyGate copy_gate(FilterSlot* copy, uint32 slice);
void note_change(FilterSlot* copy, ChangeType type, const Element& element);

// Adds a new key or promotes one, for sessions that have entered.
void change_copy(FilterSlot* copy, ChangeType type, const Element& element);

// Promotes a key that was found.
void promote_in_copy(FilterSlot* slot, const Element& element);

// ---- for the copier

// Makes the slot `copy`, whose notes may take `notes` bytes behind its parameters' memory, the copy
// of `slot`. False: that is being copied already.
bool begin_copy(FilterSlot* slot, FilterSlot* copy, uint64 note_bytes);

// Waits until all sessions that had entered have left. Calls `between` meanwhile, which may raise.
void wait_for_applying(FilterSlot* slot, void (*between)());

// From now on changes of this slice, the next one, are noted.
void begin_slice(FilterSlot* copy, uint32 slice);

// Applies up to `most` notes by apply(note), under the lock. If there are none, the slice is
// finished, and noting ends.
enum class Noted : uint8 { done, more, overflowed };
Noted apply_notes(FilterSlot* copy, uint32 slice, void (*apply)(Header* header, const CopyNote&));

// Ends copying: nobody uses the copy afterwards. Cannot fail.
void end_copy(FilterSlot* copy);

}  // namespace streamfilter::pg
