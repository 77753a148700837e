// Chunks of pages are found by a hash, without a lock; they are given to a database, or to another
// file of its log, under the lock. A heap gets another file under an AccessExclusiveLock, so two
// files of it are not in use at a time, and a database is dropped when nobody is in it.
#include "pg/server/postgres.hpp"

#include "core/base/hash.hpp"
#include "pg/server/settings.hpp"
#include "pg/shmem/log_pages.hpp"

namespace streamfilter::pg {
namespace {

constexpr char kTranche[] = "streamfilter_log_pages";
constexpr uint32 kPages = 256;  // of a chunk
constexpr uint32 kLeast = 64;   // chunks
constexpr uint32 kPlaces = 8;   // where a chunk can be
constexpr uint64 kKnown = uint64{1} << 63;

struct Chunk {
  pg_atomic_uint64 owner;  // database and number of the chunk; 0: nobody
  pg_atomic_uint32 file;   // what the words are about; 0: nothing
  pg_atomic_uint64 words[kPages * PageFilters::kWords];
};

struct LogPages {
  LWLock* lock;
  Chunk chunks[FLEXIBLE_ARRAY_MEMBER];
};

LogPages* shared = nullptr;

// For a log of twice the reserved memory, in less than a hundredth of it.
uint32 chunk_count() { return Max(static_cast<uint32>(shared_memory_kb) / 1024, kLeast); }

Size bytes() {
  return add_size(offsetof(LogPages, chunks), mul_size(sizeof(Chunk), chunk_count()));
}

uint64 page_owner(Oid database, BlockNumber page) {
  return static_cast<uint64>(database) << 32 | page / kPages;
}

Oid database_of(uint64 owner) { return static_cast<Oid>(owner >> 32); }

// The chunks of one database do not compete for places, as long as there are enough.
Chunk* place_of(uint64 owner, uint32 number) {
  const uint32 count = chunk_count();
  const uint64 first = mix64(database_of(owner)) % count + static_cast<uint32>(owner);
  return &shared->chunks[(first + number * (count / kPlaces + 1)) % count];
}

// Among the places of one owner's chunk, that which `owner` has, or nobody (0); nullptr: none.
Chunk* find_place(uint64 of, uint64 owner) {
  for (uint32 i = 0; i < kPlaces; ++i)
    if (Chunk* chunk = place_of(of, i); pg_atomic_read_u64(&chunk->owner) == owner) return chunk;
  return nullptr;
}

// nullptr: nothing is known.
Chunk* find_chunk(Oid file, BlockNumber page) {
  static Chunk* latest = nullptr;  // most rows lie near the one before
  if (shared == nullptr) return nullptr;
  const uint64 owner = page_owner(MyDatabaseId, page);
  if (latest == nullptr || pg_atomic_read_u64(&latest->owner) != owner)
    latest = find_place(owner, owner);
  return latest != nullptr && pg_atomic_read_u32(&latest->file) == file ? latest : nullptr;
}

// Nobody may take what is known of one file for another's.
void forget(Chunk* chunk) {
  pg_atomic_write_u32(&chunk->file, InvalidOid);
  pg_memory_barrier();
  for (pg_atomic_uint64& word : chunk->words) pg_atomic_write_u64(&word, 0);
  pg_memory_barrier();
}

int word_of(Oid filter) { return static_cast<int>(mix64(filter) % PageFilters::kWords); }
uint64 bit_of(Oid filter) { return uint64{1} << (mix64(filter) >> 32) % 63; }

pg_atomic_uint64* word_at(Chunk* chunk, BlockNumber page, int word) {
  return &chunk->words[page % kPages * PageFilters::kWords + static_cast<uint32>(word)];
}

}  // namespace

void PageFilters::add(Oid filter) { words_[word_of(filter)] |= bit_of(filter); }

PageRows rows_on_page(Oid file, BlockNumber page, Oid filter) {
  Chunk* chunk = find_chunk(file, page);
  const uint64 word =
      chunk == nullptr ? 0 : pg_atomic_read_u64(word_at(chunk, page, word_of(filter)));
  if ((word & kKnown) == 0) return PageRows::unknown;
  return (word & bit_of(filter)) != 0 ? PageRows::some : PageRows::none;
}

void note_page(Oid file, BlockNumber page, const PageFilters& filters) {
  Chunk* chunk = find_chunk(file, page);
  for (int i = 0; chunk != nullptr && i < PageFilters::kWords; ++i)
    pg_atomic_write_u64(word_at(chunk, page, i), filters.word(i) | kKnown);
}

bool make_room_for_page(Oid file, BlockNumber page) {
  if (shared == nullptr) return false;
  if (find_chunk(file, page) != nullptr) return true;
  const uint64 owner = page_owner(MyDatabaseId, page);
  const LockHeld held(shared->lock, LW_EXCLUSIVE);
  Chunk* chunk = find_place(owner, owner);
  if (chunk == nullptr) chunk = find_place(owner, 0);
  if (chunk != nullptr &&
      (pg_atomic_read_u64(&chunk->owner) != owner || pg_atomic_read_u32(&chunk->file) != file)) {
    forget(chunk);
    pg_atomic_write_u64(&chunk->owner, owner);
    pg_atomic_write_u32(&chunk->file, file);
  }
  return chunk != nullptr;
}

void note_row(Oid file, BlockNumber page, Oid filter) {
  Chunk* chunk = find_chunk(file, page);
  if (chunk == nullptr) return;
  pg_atomic_uint64* word = word_at(chunk, page, word_of(filter));
  const uint64 known = pg_atomic_read_u64(word), bit = bit_of(filter);
  if ((known & kKnown) != 0 && (known & bit) == 0) pg_atomic_fetch_or_u64(word, bit);
}

void forget_log_pages(Oid database) {
  const LockHeld held(shared->lock, LW_EXCLUSIVE);
  for (uint32 i = 0; i < chunk_count(); ++i) {
    Chunk* chunk = &shared->chunks[i];
    if (database_of(pg_atomic_read_u64(&chunk->owner)) != database) continue;
    forget(chunk);
    pg_atomic_write_u64(&chunk->owner, 0);
  }
}

void request_log_pages() {
  RequestAddinShmemSpace(bytes());
  RequestNamedLWLockTranche(kTranche, 1);
}

void start_log_pages() {
  if (!attach_shared(shared, "streamfilter log pages", bytes())) return;
  memset(static_cast<void*>(shared), 0, bytes());
  shared->lock = &GetNamedLWLockTranche(kTranche)->lock;
}

}  // namespace streamfilter::pg
