#include "pg/server/postgres.hpp"

#include <initializer_list>

#include "pg/shmem/locked_work.hpp"
#include "pg/shmem/state_copy.hpp"

namespace streamfilter::pg {
namespace {

constexpr uint32 kNotesTogether = 256;  // per hold of the lock
constexpr uint32 kLine = 64;            // bytes that a change is counted for

uint32 slot_number(const FilterSlot* slot) {
  return static_cast<uint32>(slot - shared_state->slots) + 1;
}

CopyState state_of(StateCopy* copy) {
  return static_cast<CopyState>(pg_atomic_read_u32(&copy->state));
}

void move_copy(StateCopy* copy, CopyEvent event) {
  const auto& move = kCopyMoves[static_cast<int>(event)];
  Assert(state_of(copy) >= move.first && state_of(copy) <= move.last);
  pg_atomic_write_u32(&copy->state, static_cast<uint32>(move.to));
}

bool is_none(pg_atomic_uint32* count) {
  pg_memory_barrier();
  return pg_atomic_read_u32(count) == 0;
}

}  // namespace

FilterSlot* copy_of(FilterSlot* slot) {
  const uint32 number = pg_atomic_read_u32(&slot->copy.to);
  return number == 0 ? nullptr : &shared_state->slots[number - 1];
}

CopyGate copy_gate(FilterSlot* copy, uint32 slice) {
  const uint32 copied = pg_atomic_read_u32(&copy->copy.copied);
  if (slice < copied) return CopyGate::apply;
  return slice == copied && state_of(&copy->copy) == CopyState::noting ? CopyGate::note
                                                                       : CopyGate::skip;
}

void note_change(FilterSlot* copy, ChangeType type, const Element& element) {
  CopyNotes* notes = copy->copy.notes;
  if (notes->count == notes->capacity) {
    notes->overflowed = true;
    return;
  }
  notes->notes[(notes->first + notes->count++) % notes->capacity] = {element, type};
}

void change_copy(FilterSlot* copy, ChangeType type, const Element& element) {
  Header* header = block_of(copy);
  const uint32 slice = slice_of(header->parameters, element.hash);
  const LockHeld held(slice_lock(copy, slice), LW_EXCLUSIVE);
  const CopyGate gate = copy_gate(copy, slice);
  unsigned rank;
  if (gate == CopyGate::note)
    note_change(copy, type, element);
  else if (gate == CopyGate::apply && type == ChangeType::promote)
    promote(header, element, rank);
  else if (gate == CopyGate::apply)
    insert_new(header, element);
}

void spoil_copy(FilterSlot* slot) {
  if (copy_of(slot) != nullptr) pg_atomic_write_u32(&slot->copy.spoiled, 1);
}

void promote_in_copy(FilterSlot* slot, const Element& element) {
  if (likely(pg_atomic_read_u32(&slot->copy.to) == 0)) return;
  const uint32 phase = enter_phase(&slot->copy.applying);
  if (FilterSlot* copy = copy_of(slot)) change_copy(copy, ChangeType::promote, element);
  leave_phase(&slot->copy.applying, phase);
}

bool begin_copy(FilterSlot* slot, FilterSlot* copy, uint64 note_bytes) {
  char* end = reinterpret_cast<char*>(block_of(copy)) + block_bytes(block_of(copy)->parameters);
  StateCopy* state = &copy->copy;
  auto* notes = reinterpret_cast<CopyNotes*>(
      TYPEALIGN64(alignof(CopyNotes), reinterpret_cast<uintptr_t>(end)));
  notes->capacity = static_cast<uint32>(
      (note_bytes - offsetof(CopyNotes, notes) - alignof(CopyNotes)) / sizeof(CopyNote));
  state->notes = notes;
  move_copy(state, CopyEvent::begins);
  pg_atomic_write_u32(&slot->copy.spoiled, 0);
  uint32 none = 0;
  pg_memory_barrier();
  if (!pg_atomic_compare_exchange_u32(&slot->copy.to, &none, slot_number(copy))) return false;
  state->of = slot;
  return true;
}

void wait_for_applying(FilterSlot* slot, void (*between)()) {
  wait_for_phases(&slot->copy.applying, [between](pg_atomic_uint32* inside) {
    while (!is_none(inside))
      if (between != nullptr)
        between();
      else
        pg_usleep(1000);
  });
}

void begin_slice(FilterSlot* copy, uint32 slice) {
  const LockHeld held(slice_lock(copy, slice), LW_EXCLUSIVE);
  CopyNotes* notes = copy->copy.notes;
  notes->first = notes->count = 0;
  notes->overflowed = false;
  move_copy(&copy->copy, CopyEvent::next_slice);
}

Noted apply_notes(FilterSlot* copy, uint32 slice, void (*apply)(Header* header, const CopyNote&)) {
  const LockHeld held(slice_lock(copy, slice), LW_EXCLUSIVE);
  StateCopy* state = &copy->copy;
  CopyNotes* notes = state->notes;
  if (notes->overflowed) {
    move_copy(state, CopyEvent::overflowed);
    return Noted::overflowed;
  }
  for (uint32 left = kNotesTogether; notes->count > 0; --left, --notes->count) {
    if (left == 0) return Noted::more;
    apply(block_of(copy), notes->notes[notes->first]);
    count_work(Work::bytes, kLine);
    notes->first = (notes->first + 1) % notes->capacity;
  }
  move_copy(state, CopyEvent::slice_done);
  pg_atomic_write_u32(&state->copied, slice + 1);
  return Noted::done;
}

// The slot may belong to another filter by now; this copy's number is unique.
void end_copy(FilterSlot* copy) {
  FilterSlot* slot = copy->copy.of;
  if (slot == nullptr) return;
  copy->copy.of = nullptr;
  uint32 own = slot_number(copy);
  if (pg_atomic_compare_exchange_u32(&slot->copy.to, &own, 0)) wait_for_applying(slot, nullptr);
  move_copy(&copy->copy, CopyEvent::ends);
}

}  // namespace streamfilter::pg
