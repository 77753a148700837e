// Unlogged filters outlive a clean restart in a file, which the postmaster writes when everything
// else has stopped and reads before anything else starts. The file belongs to the checkpoint that
// the shutdown wrote: any other past of the data directory (a crash, a backup, a promotion) finds
// another last checkpoint, and starts with empty filters. After pg_upgrade, which carries over
// relations only, somebody brings the file of the old data directory under another name.
#include "pg/server/postgres.hpp"

extern "C" {
#include <fcntl.h>
#include <unistd.h>

#include "access/xlog.h"
#include "access/xlog_internal.h"
#include "catalog/pg_control.h"
#include "port/pg_crc32c.h"
#include "storage/fd.h"
#include "storage/ipc.h"
#include "utils/timestamp.h"
}

#include "core/filter/filter.hpp"
#include "pg/server/no_raise.hpp"
#include "pg/shmem/filter_directory.hpp"
#include "pg/shmem/unlogged_file.hpp"

namespace streamfilter::pg {
namespace {

constexpr char kFile[] = "streamfilter.unlogged";
constexpr char kUpgraded[] = "streamfilter.unlogged.upgrade";
constexpr char kSetAside[] = "streamfilter.unlogged.aside";
constexpr char kTemporary[] = "streamfilter.unlogged.tmp";
constexpr uint64 kFileMagic = 0x32554c4653ULL;     // "SFLU2"
constexpr uint64 kOldFileMagic = 0x31554c4653ULL;  // "SFLU1", of version 1.0: no FoundRecord

struct FileHeader {
  uint64 magic;
  uint64 system;      // identifier of the cluster
  uint64 checkpoint;  // of the shutdown
  uint64 count;       // of filters
  uint64 sum;         // of the fields above
};

struct FilterRecord {
  Oid database;
  Oid relation;
  Oid server;
  uint32 asked;  // 0 in files of version 1.0
  uint64 signature;
  uint64 size;
  TimestampTz created;
  TimestampTz last_reset;
  TimestampTz saved;
  uint64 tested, accepted, discarded, accesses, hits, rolled_back, waits, overflowed;
  uint64 block_sum;
  uint64 sum;  // of the fields above
};

// Follows it; the block follows this one.
struct FoundRecord {
  uint64 found_at[kMaxRanks];
  uint64 missed_at[kFillSteps + 1];
  uint64 sum;
};

template <typename Record>
uint64 sum_of(const Record& record) {
  return hash_bytes(&record, offsetof(Record, sum), kOldFileMagic);
}

// The server's own function for this raises.
bool read_control_file(ControlFileData* control) {
  const int file = open(XLOG_CONTROL_FILE, O_RDONLY | PG_BINARY, 0);
  if (file < 0) return false;
  const bool whole = read(file, control, sizeof *control) == sizeof *control;
  close(file);
  pg_crc32c sum;
  INIT_CRC32C(sum);
  COMP_CRC32C(sum, control, offsetof(ControlFileData, crc));
  FIN_CRC32C(sum);
  return whole && EQ_CRC32C(sum, control->crc);
}

// The last checkpoint, if it is that of a shutdown.
bool read_checkpoint(uint64* system, uint64* checkpoint) {
  ControlFileData control;
  if (!read_control_file(&control)) return false;
  *system = control.system_identifier;
  *checkpoint = control.checkPoint;
  return control.state == DB_SHUTDOWNED;
}

bool is_kept(const FilterSlot* slot) {
  return slot->state == SlotState::live && !slot->saved.logged;
}

bool write_filter(FILE* file, FilterSlot* slot, TimestampTz now) {
  const Header* header = block_of(slot);
  FilterRecord record{};
  record.database = slot->database;
  record.relation = slot->relation;
  record.server = slot->server;
  record.signature = slot->signature;
  record.asked = slot->asked;
  record.size = slot->size;
  record.created = slot->created;
  record.last_reset = slot->last_reset;
  record.saved = now;
  record.tested = pg_atomic_read_u64(&slot->tested);
  record.accepted = pg_atomic_read_u64(&slot->accepted);
  record.discarded = pg_atomic_read_u64(&slot->discarded);
  record.accesses = pg_atomic_read_u64(&slot->accesses);
  record.hits = pg_atomic_read_u64(&slot->hits);
  record.rolled_back = pg_atomic_read_u64(&slot->rolled_back);
  record.waits = pg_atomic_read_u64(&slot->waits);
  record.overflowed = pg_atomic_read_u64(&slot->overflowed);
  record.block_sum = checksum(header);
  record.sum = sum_of(record);
  FoundRecord found;
  for (unsigned i = 0; i < kMaxRanks; ++i)
    found.found_at[i] = pg_atomic_read_u64(&slot->found_at[i]);
  for (unsigned i = 0; i <= kFillSteps; ++i)
    found.missed_at[i] = pg_atomic_read_u64(&slot->missed_at[i]);
  found.sum = sum_of(found);
  return fwrite(&record, sizeof record, 1, file) == 1 &&
         fwrite(&found, sizeof found, 1, file) == 1 && fwrite(header, slot->size, 1, file) == 1;
}

bool write_filters(FILE* file, const FileHeader& header) {
  if (fwrite(&header, sizeof header, 1, file) != 1) return false;
  const TimestampTz now = GetCurrentTimestamp();
  for (int i = 0; i < shared_state->slot_count; ++i)
    if (is_kept(&shared_state->slots[i]) && !write_filter(file, &shared_state->slots[i], now))
      return false;
  return fflush(file) == 0 && pg_fsync(fileno(file)) == 0;
}

// What has been renamed is lasting with its folder only.
bool sync_folder() {
  const int folder = open(".", O_RDONLY, 0);
  if (folder < 0) return false;
  const bool good = pg_fsync(folder) == 0 || errno == EBADF || errno == EINVAL;
  close(folder);
  return good;
}

bool write_durably(const FileHeader& header) {
  FILE* file = fopen(kTemporary, PG_BINARY_W);
  if (file == nullptr) return false;
  const bool written = write_filters(file, header);
  const int error = errno;
  const bool closed = fclose(file) == 0;
  if (!written) errno = error;
  return written && closed && rename(kTemporary, kFile) == 0 && sync_folder();
}

// Writes the file or leaves none.
void write_file(int code, Datum) {
  if (code != 0 || shared_state == nullptr) return;
  const NoRaise marked;
  uint64 count = 0;
  for (int i = 0; i < shared_state->slot_count; ++i) count += is_kept(&shared_state->slots[i]);
  FileHeader header{};
  if (count == 0 || !read_checkpoint(&header.system, &header.checkpoint)) return;
  header.magic = kFileMagic;
  header.count = count;
  header.sum = sum_of(header);
  if (write_durably(header)) return;
  write_stderr("could not write file \"%s\", unlogged filters will be empty: %s\n", kFile,
               strerror(errno));
  unlink(kTemporary);
  unlink(kFile);
}

// Reads one filter into a slot. False: the rest of the file is of no use.
bool read_filter(FILE* file, bool has_found) {
  FilterRecord record;
  if (fread(&record, sizeof record, 1, file) != 1 || record.sum != sum_of(record)) return false;
  FoundRecord found{};
  if (has_found && (fread(&found, sizeof found, 1, file) != 1 || found.sum != sum_of(found)))
    return false;
  const auto skip = [&] { return fseeko(file, static_cast<off_t>(record.size), SEEK_CUR) == 0; };
  // One that has been used since the upgrade.
  if (find_slot(record.database, record.relation, SlotState::live) != nullptr) return skip();
  FilterSlot* slot = find_free_slot();
  Header* header = slot != nullptr ? find_space(record.size) : nullptr;
  if (header != nullptr) {
    slot->block = header;
    slot->size = record.size;
  }
  const bool has_memory = header != nullptr && back_slot(slot, [] {}) == 0;
  if (header != nullptr && !has_memory) {  // but perhaps a part of it
    free_slot(slot);
    give_back_slots();
  }
  if (!has_memory) {
    ereport(LOG, errmsg("not enough room for an unlogged filter of %llu bytes, it will be empty",
                        static_cast<unsigned long long>(record.size)));
    return skip();
  }
  Problem problem;
  if (fread(header, record.size, 1, file) != 1 || !check(header, record.size, problem) ||
      checksum(header) != record.block_sum) {
    free_slot(slot);
    return false;
  }
  slot->database = record.database;
  slot->relation = record.relation;
  slot->server = record.server;
  slot->signature = record.signature;
  slot->asked = record.asked;
  slot->generation = shared_state->next_generation++;
  slot->created = record.created;
  slot->last_reset = record.last_reset;
  pg_atomic_write_u64(&slot->tested, record.tested);
  pg_atomic_write_u64(&slot->accepted, record.accepted);
  pg_atomic_write_u64(&slot->discarded, record.discarded);
  pg_atomic_write_u64(&slot->accesses, record.accesses);
  pg_atomic_write_u64(&slot->hits, record.hits);
  pg_atomic_write_u64(&slot->rolled_back, record.rolled_back);
  pg_atomic_write_u64(&slot->waits, record.waits);
  pg_atomic_write_u64(&slot->overflowed, record.overflowed);
  for (unsigned i = 0; i < kMaxRanks; ++i)
    pg_atomic_write_u64(&slot->found_at[i], found.found_at[i]);
  for (unsigned i = 0; i <= kFillSteps; ++i)
    pg_atomic_write_u64(&slot->missed_at[i], found.missed_at[i]);
  // The filter was used before: if it becomes a logged one, that starts with an image.
  pg_atomic_write_u64(&slot->applied, 1);
  slot->saved.last_saved = record.saved;
  // As for any unlogged filter: something may still be saved in the heaps.
  pg_atomic_write_u32(&slot->saved.has_header, 1);
  slot->saved.restored = GetCurrentTimestamp();
  slot->state = SlotState::live;
  return true;
}

// Does the server start to replay the log of another one? Then its tables will change.
bool replays() {
  return access(RECOVERY_SIGNAL_FILE, F_OK) == 0 || access(STANDBY_SIGNAL_FILE, F_OK) == 0;
}

// Is it the file of the last shutdown?
bool is_of_this_past(const FileHeader& header) {
  uint64 system, checkpoint;
  return !replays() && read_checkpoint(&system, &checkpoint) && header.system == system &&
         header.checkpoint == checkpoint;
}

// Was it brought from another data directory? One of this server's own could be of any past.
bool is_of_old_cluster(const FileHeader& header) {
  ControlFileData control;
  return !replays() && read_control_file(&control) && header.system != control.system_identifier;
}

void read_file(const char* name, bool (*belongs)(const FileHeader&)) {
  FILE* file = AllocateFile(name, PG_BINARY_R);
  if (file == nullptr) return;
  FileHeader header;
  bool good = fread(&header, sizeof header, 1, file) == 1 && header.sum == sum_of(header) &&
              (header.magic == kFileMagic || header.magic == kOldFileMagic) && belongs(header);
  for (uint64 i = 0; good && i < header.count; ++i)
    good = read_filter(file, header.magic == kFileMagic);
  FreeFile(file);
  if (good) return;
  ereport(
      LOG, errmsg("file \"%s\" is damaged or of another past", name),
      errdetail("Unlogged filters that it does not hold, or not soundly, are empty. The file is "
                "set aside as \"%s\".",
                kSetAside));
  rename(name, kSetAside);
}

void read_files() {
  read_file(kFile, is_of_this_past);
  if (!IsBinaryUpgrade) read_file(kUpgraded, is_of_old_cluster);
  give_back_slots();  // those whose bytes were damaged
  // A crash must not find them.
  unlink(kFile);
  unlink(kTemporary);
  if (!IsBinaryUpgrade) unlink(kUpgraded);
}

}  // namespace

void start_unlogged_file() {
  if (IsUnderPostmaster) return;
  read_files();
  on_shmem_exit(write_file, static_cast<Datum>(0));
}

}  // namespace streamfilter::pg
