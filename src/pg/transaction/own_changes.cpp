#include "pg/server/postgres.hpp"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "pg/transaction/own_changes.hpp"
#include "pg/transaction/own_changes_memory.hpp"

namespace streamfilter::pg {
namespace {

constexpr int kFirstBits = 4, kSecondBits = 7;  // most transactions bring one key
// As many as the largest index can tell apart; the levels have room for more.
constexpr uint32 kMaxChanges = (uint32{1} << 31) / 4 * 3 - 1;
static_assert(kMaxChanges < ChangeLog::kFirst * ((uint64{1} << ChangeLog::kLevels) - 1));

struct Location {
  int level;
  uint32 offset;
};

Location locate(uint32 position) {
  const int level = pg_leftmost_one_pos32(position / ChangeLog::kFirst + 1);
  return {level, position - ChangeLog::kFirst * ((1u << level) - 1)};
}

bool is_indexed(const Change* change) {
  return change->is(ChangeType::add) || change->is(ChangeType::repeat) ||
         change->is(ChangeType::erase);
}

// Mixed, because keys may be integers instead of hashes (fingerprint 'integer').
uint32 tag_of(uint64 hash) { return static_cast<uint32>(mix64(hash) >> 32); }

constexpr Size kLineSize = 64;
constexpr uint32 kLineSlots = kLineSize / sizeof(IndexSlot);
static_assert((uint32{1} << kFirstBits) >= kLineSlots);

// The first slot of a key's home line.
uint32 home_of(const ChangeLog* log, uint32 tag) {
  return (tag >> (32 - log->index_bits)) & ~(kLineSlots - 1);
}

uint32 last_slot(const ChangeLog* log) { return (uint32{1} << log->index_bits) - 1; }

uint32 max_indexed(const ChangeLog* log) { return last_slot(log) / 4 * 3; }

// The first slot, from a line on, with one of these bits. Two bits per slot of a line: unused, and
// has (or had) the tag. Computed for all slots at once, because the number of steps is
// unpredictable.
constexpr uint32 kUnused = 0x5555;
uint32 find_in_line(const ChangeLog* log, uint32 line, uint32 tag, uint32 wanted) {
  for (;; line = (line + kLineSlots) & last_slot(log)) {
    const IndexSlot* slots = &log->index[line];
#ifdef __SSE2__
    const __m128i sought = _mm_set_epi32(static_cast<int>(tag), 0, static_cast<int>(tag), 0);
    const auto compare = [&](int i) {
      return _mm_cmpeq_epi32(_mm_load_si128(reinterpret_cast<const __m128i*>(slots) + i), sought);
    };
    const __m128i equal = _mm_packs_epi16(_mm_packs_epi32(compare(0), compare(1)),
                                          _mm_packs_epi32(compare(2), compare(3)));
    const uint32 bits = static_cast<uint32>(_mm_movemask_epi8(equal)) & wanted;
#else
    uint32 bits = 0;
    for (uint32 i = 0; i < kLineSlots; ++i)
      bits |= (uint32{slots[i].next == 0} | uint32{slots[i].tag == tag} << 1) << 2 * i;
    bits &= wanted;
#endif
    if (likely(bits != 0)) return line + static_cast<uint32>(pg_rightmost_one_pos32(bits)) / 2;
  }
}

// The first slot that is unused or has the tag.
uint32 find_tag(const ChangeLog* log, uint32 tag) {
  return find_in_line(log, home_of(log, tag), tag, PG_UINT32_MAX);
}

Size index_bytes(int bits) { return (sizeof(IndexSlot) << bits) + kLineSize; }

void make_index(ChangeLog* log, int bits) {
  log->index_memory = allocate_for_log(index_bytes(bits));
  log->index = reinterpret_cast<IndexSlot*>(TYPEALIGN(kLineSize, log->index_memory));
  log->index_bits = bits;
  memset(static_cast<void*>(log->index), 0, sizeof(IndexSlot) << bits);
}

// Keys keep their order, so a walk through old and new index goes side by side.
void grow_index(ChangeLog* log) {
  const IndexSlot* old = log->index;
  void* old_memory = log->index_memory;
  const int old_bits = log->index_bits;
  make_index(log, Max(old_bits + 1, kSecondBits));
  for (Size i = 0; i < Size{1} << old_bits; ++i)
    if (old[i].next != 0)
      log->index[find_in_line(log, home_of(log, old[i].tag), 0, kUnused)] = old[i];
  free_for_log(old_memory, index_bytes(old_bits));
}

// Frees a slot without breaking the runs behind it.
void remove_from_index(ChangeLog* log, uint32 hole) {
  const uint32 mask = last_slot(log);
  for (uint32 at = (hole + 1) & mask; log->index[at].next != 0; at = (at + 1) & mask) {
    const uint32 home = home_of(log, log->index[at].tag);
    if (((at - home) & mask) < ((at - hole) & mask)) continue;
    log->index[hole] = log->index[at];
    hole = at;
  }
  log->index[hole].next = 0;
  --log->indexed;
}

}  // namespace

void init_log(ChangeLog* log, bool has_roles) {
  log->has_roles = has_roles;
  log->last_reset = log->last_merge = kNoChange;
  make_index(log, kFirstBits);
}

void make_room(ChangeLog* log) {
  if (log->count >= kMaxChanges)
    ereport(ERROR, errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
            errmsg("a transaction cannot change a filter more than %u times", kMaxChanges),
            errhint("Commit in between."));
  const Location at = locate(log->count);
  const Size entries = static_cast<Size>(ChangeLog::kFirst) << at.level;
  if (log->levels[at.level] == nullptr)
    log->levels[at.level] = static_cast<Change*>(allocate_for_log(sizeof(Change) * entries));
  if (log->has_roles && log->roles[at.level] == nullptr)
    log->roles[at.level] =
        static_cast<ChangeLog::Roles*>(allocate_for_log(sizeof(ChangeLog::Roles) * entries));
  if (log->indexed >= max_indexed(log)) grow_index(log);
  const uint32 unindexed = max_indexed(log) - log->indexed;
  const uint32 unused = static_cast<uint32>(entries) - at.offset;
  log->next = log->levels[at.level] + at.offset;
  if (log->has_roles) log->next_roles = log->roles[at.level] + at.offset;
  log->room = Min(Min(unused, unindexed), kMaxChanges - log->count);
}

Change* append_change(ChangeLog* log, ChangeType type, const Element& element, IndexHint hint) {
  const uint32 position = log->count++;
  --log->room;
  Change* change = log->next++;
  if (unlikely(log->has_roles)) *log->next_roles++ = {element.importance, element.time};
  *change = {element.hash, kNoChange, static_cast<uint32>(type), 0, 0, 0};
  if (unlikely(!is_indexed(change))) {
    if (type == ChangeType::promote) return change;
    uint32* last = type == ChangeType::reset ? &log->last_reset : &log->last_merge;
    change->previous = *last;
    *last = position;
    return change;
  }
  if (unlikely(hint.index_bits != log->index_bits)) hint = find_key(log, element.hash);
  change->previous = hint.last;
  log->indexed += hint.last == kNoChange;
  if (hint.last != kNoChange) change_at(log, hint.last)->repeated = type == ChangeType::repeat;
  log->index[hint.slot] = {position + 1, hint.tag};
  return change;
}

// The index leads to the change of the key before this one, its last.
static void go_back_in_index(ChangeLog* log, const Change* last) {
  const uint32 at = find_key(log, last->hash).slot;
  if (last->previous == kNoChange) {
    remove_from_index(log, at);
  } else {
    log->index[at].next = last->previous + 1;
    change_at(log, last->previous)->repeated = 0;
  }
}

void undo_change(ChangeLog* log) {
  const Change* change = change_at(log, log->count - 1);
  if (is_indexed(change))
    go_back_in_index(log, change);
  else if (change->is(ChangeType::reset))
    log->last_reset = change->previous;
  else if (change->is(ChangeType::merge))
    log->last_merge = change->previous;
  --log->count;
  log->room = 0;
}

void withdraw_changes(ChangeLog* log, uint32 position) {
  Change* added = change_at(log, position);
  for (uint32 at = find_key(log, added->hash).last; at != position;) {
    Change* repeat = change_at(log, at);
    at = repeat->previous;
    go_back_in_index(log, repeat);
    repeat->type = static_cast<uint32>(ChangeType::withdrawn);
  }
  go_back_in_index(log, added);
  added->type = static_cast<uint32>(ChangeType::withdrawn);
  while (log->count > position && change_at(log, log->count - 1)->is(ChangeType::withdrawn))
    undo_change(log);
}

void prefetch_index(const ChangeLog* log, uint64 hash, Prefetches& prefetches) {
  prefetches.add(&log->index[home_of(log, tag_of(hash))]);
}

void prefetch_change(const ChangeLog* log, const IndexHint& guess, Prefetches& prefetches) {
  if (guess.last != kNoChange) prefetches.add(change_at(log, guess.last));
}

IndexHint guess_key(const ChangeLog* log, uint64 hash) {
  const uint32 tag = tag_of(hash), at = find_tag(log, tag);
  return {log->index[at].next - 1, tag, at, log->index_bits};  // kNoChange is -1
}

// The guessed place stays valid until the index grows or a change is undone.
IndexHint confirm_key(const ChangeLog* log, uint64 hash, const IndexHint& guess) {
  const bool found =
      is_good(log, guess) && (guess.last == kNoChange || change_at(log, guess.last)->hash == hash);
  return likely(found) ? guess : find_key(log, hash);
}

IndexHint find_key(const ChangeLog* log, uint64 hash) {
  const IndexSlot* index = log->index;
  const uint32 tag = tag_of(hash);
  for (uint32 at = find_tag(log, tag);; at = (at + 1) & last_slot(log)) {
    const IndexSlot slot = index[at];
    if (slot.next == 0) return {kNoChange, tag, at, log->index_bits};
    if (slot.tag == tag && change_at(log, slot.next - 1)->hash == hash)
      return {slot.next - 1, tag, at, log->index_bits};
  }
}

Change* change_at(const ChangeLog* log, uint32 position) {
  const Location at = locate(position);
  return &log->levels[at.level][at.offset];
}

Element element_at(const ChangeLog* log, uint32 position) {
  const Location at = locate(position);
  return element_of(&log->levels[at.level][at.offset],
                    log->has_roles ? &log->roles[at.level][at.offset] : nullptr);
}

void ChangeReader::enter_level() {
  const Location at = locate(position_);
  left_ = (ChangeLog::kFirst << at.level) - at.offset;
  position_ += left_;
  change_ = log_->levels[at.level] + at.offset - 1;
  if (log_->has_roles) roles_ = log_->roles[at.level] + at.offset - 1;
}

}  // namespace streamfilter::pg
