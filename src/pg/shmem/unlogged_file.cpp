// The file in which unlogged filters, and the counters of all filters, survive a clean restart. The
// postmaster writes it when everything else has stopped, and reads it before anything else starts.
// The file belongs to the shutdown's checkpoint: after a crash, a restored backup or a promotion,
// the last checkpoint is another one, and filters start empty. pg_upgrade copies relations only, so
// an administrator copies the old data directory's file under another name. Nothing in the file
// depends on the size of the server's blocks.
#include "pg/server/postgres.hpp"

extern "C" {
#include <fcntl.h>
#include <unistd.h>

#include "access/xlog_internal.h"
#include "catalog/pg_control.h"
#include "port/pg_crc32c.h"
}

#include "core/filter/packed_header.hpp"
#include "pg/server/no_raise.hpp"
#include "pg/shmem/filter_directory.hpp"
#include "pg/shmem/server_health.hpp"
#include "pg/shmem/unlogged_file.hpp"

namespace streamfilter::pg {
namespace {

constexpr char kFile[] = "streamfilter.unlogged";
constexpr char kUpgraded[] = "streamfilter.unlogged.upgrade";
constexpr char kReading[] = "streamfilter.unlogged.reading";
constexpr char kWaiting[] = "streamfilter.unlogged.waiting";
constexpr char kSetAside[] = "streamfilter.unlogged.aside";
constexpr char kTemporary[] = "streamfilter.unlogged.tmp";
constexpr uint64 kFileMagic = 0x31554c4653ULL;  // "SFLU1": the last character is the version
constexpr int kVersionShift = 32;

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
  uint32 has_header;
  int64 life;
  uint64 key_signature;  // 0: the filter is on other servers
  uint64 size;           // of the block; 0: none here
  uint64 block;          // where it begins in the file
  TimestampTz saved;
  uint64 block_sum;
  uint64 sum;  // of the fields above
};

// Follows its record. Behind the last one lie the blocks: what is damaged costs its own filter.
struct StatisticsRecord {
  SavedStatistic saved[kMaxSavedStatistics];
  uint64 count;
  uint64 sum;
};

template <typename Record>
uint64 sum_of_record(const Record& record) {
  return hash_bytes(&record, offsetof(Record, sum), kFileMagic);
}

// PostgreSQL's own function raises errors, so this reads the file itself.
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

// For logged filters only the counters. Skips filters that a prepared transaction may have emptied:
// after the restart nobody would know.
bool is_kept(const FilterSlot* slot) {
  return slot->state == SlotState::counted ||
         (slot->state == SlotState::live &&
          pg_atomic_read_u32(&slot->unfinished.prepared_removals) == 0);
}

// What a standby followed and nobody has used since its promotion has lost its keys, untold.
bool has_block(const FilterSlot* slot) {
  return slot->waits != 0 ||
         (slot->state == SlotState::live && !slot->saved.logged && !slot->standby.follows);
}

// The file, while it is written.
struct FileWriter {
  FILE* file;
  FILE* waiting;      // the former one, with what did not fit; nullptr: there is none
  uint64 next_block;  // where it will begin
  TimestampTz now;
};

uint64 place_of_record(uint64 number) {
  return sizeof(FileHeader) + number * (sizeof(FilterRecord) + sizeof(StatisticsRecord));
}

bool read_record(FILE* file, uint64 number, FilterRecord* record) {
  return file != nullptr &&
         fseeko(file, static_cast<off_t>(place_of_record(number)), SEEK_SET) == 0 &&
         fread(record, sizeof *record, 1, file) == 1 && record->sum == sum_of_record(*record);
}

bool write_block(const FileWriter& writer, const FilterSlot* slot) {
  if (slot->waits == 0)
    return !has_block(slot) ||
           fwrite(block_of(slot), block_bytes(block_of(slot)->parameters), 1, writer.file) == 1;
  FilterRecord record;
  bool good = read_record(writer.waiting, slot->waits - 1, &record) &&
              fseeko(writer.waiting, static_cast<off_t>(record.block), SEEK_SET) == 0;
  char bytes[BLCKSZ];
  for (uint64 done = 0, size; good && done < record.size; done += size) {
    size = Min(record.size - done, sizeof bytes);
    good = fread(bytes, size, 1, writer.waiting) == 1 && fwrite(bytes, size, 1, writer.file) == 1;
  }
  return good;
}

bool write_records(FILE* file, FilterRecord& record, const Statistics& stats) {
  record.sum = sum_of_record(record);
  StatisticsRecord counted{};
  counted.count = static_cast<uint64>(save_statistics(stats, counted.saved));
  counted.sum = sum_of_record(counted);
  return fwrite(&record, sizeof record, 1, file) == 1 &&
         fwrite(&counted, sizeof counted, 1, file) == 1;
}

bool write_filter(FileWriter* writer, const FilterSlot* slot) {
  FilterRecord record{};
  record.database = slot->database;
  record.relation = slot->relation;
  record.server = slot->server;
  record.key_signature = slot->key_signature;
  record.life = slot->saved.identity;
  record.has_header = pg_atomic_read_u32(&slot->saved.has_header);
  record.saved = writer->now;
  if (slot->waits != 0) {
    if (!read_record(writer->waiting, slot->waits - 1, &record)) return false;
  } else if (has_block(slot)) {
    const Header* header = block_of(slot);
    record.size = block_bytes(header->parameters);
    record.block_sum = checksum(header);
  }
  record.block = writer->next_block;
  writer->next_block += record.size;
  return write_records(writer->file, record, slot->stats);
}

// A filter on other servers has no slot here.
void write_work(Oid database, Oid relation, const FilterWork& work, void* file) {
  FilterRecord record{};
  record.database = database;
  record.relation = relation;
  Statistics stats;
  start_statistics(&stats, work.since);
  stats.counts.set(work.counts);
  write_records(static_cast<FILE*>(file), record, stats);
}

// Calls f(slot) for all slots that the file has, until it returns false.
template <typename Function>
bool for_each_kept(Function f) {
  for (int i = 0; i < shared_state->slot_count; ++i)
    if (is_kept(&shared_state->slots[i]) && !f(&shared_state->slots[i])) return false;
  return true;
}

bool write_filters(FILE* file, FILE* waiting, const FileHeader& header) {
  if (fwrite(&header, sizeof header, 1, file) != 1) return false;
  FileWriter writer = {file, waiting, place_of_record(header.count), GetCurrentTimestamp()};
  if (!for_each_kept([&](const FilterSlot* slot) { return write_filter(&writer, slot); }))
    return false;
  visit_filter_work(write_work, file);
  return for_each_kept([&](const FilterSlot* slot) { return write_block(writer, slot); }) &&
         !ferror(file) && fflush(file) == 0 && pg_fsync(fileno(file)) == 0;
}

// A rename is durable only with its directory.
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
  FILE* waiting = fopen(kWaiting, PG_BINARY_R);
  const bool written = write_filters(file, waiting, header);
  const int error = errno;
  const bool closed = fclose(file) == 0;
  if (waiting != nullptr) fclose(waiting);
  if (!written) errno = error;
  return written && closed && rename(kTemporary, kFile) == 0 && sync_folder();
}

// Writes the whole file, or leaves none.
void write_file(int code, Datum) {
  if (code != 0 || shared_state == nullptr) return;
  const NoRaise marked;
  uint64 count = 0;
  for_each_kept([&count](const FilterSlot*) { return ++count > 0; });
  visit_filter_work([](Oid, Oid, const FilterWork&, void* all) { ++*static_cast<uint64*>(all); },
                    &count);
  ControlFileData control;
  if (count == 0 || !read_control_file(&control) || control.state != DB_SHUTDOWNED) return;
  FileHeader header = {kFileMagic, control.system_identifier, control.checkPoint, count, 0};
  header.sum = sum_of_record(header);
  if (write_durably(header)) return;
  write_stderr("could not write file \"%s\", unlogged filters will be empty: %s\n", kFile,
               strerror(errno));
  unlink(kTemporary);
  unlink(kFile);
}

// Reads the statistics behind a record into a slot that has been reset.
bool read_statistics(FILE* file, Statistics* stats) {
  StatisticsRecord counted;
  if (fread(&counted, sizeof counted, 1, file) != 1 || counted.sum != sum_of_record(counted) ||
      counted.count > lengthof(counted.saved))
    return false;
  load_statistics(stats, counted.saved, static_cast<int>(counted.count));
  return true;
}

// A slot for the record; nullptr: there is none, or no room for the block.
FilterSlot* make_slot_for(const FilterRecord& record) {
  FilterSlot* slot = find_free_slot();
  if (slot == nullptr || (record.size > 0 && !take_space(slot, record.size))) return nullptr;
  enter_slot(slot, record.database, record.relation,
             record.size > 0 ? SlotState::building : SlotState::counted);
  if (back_slot(slot, [] {}) == 0) return slot;
  free_slot(slot);  // it may be partly filled
  give_back_slots();
  return nullptr;
}

bool read_block(FILE* file, FilterSlot* slot, const FilterRecord& record) {
  Problem problem;
  Header* header = slot->block;
  return fseeko(file, static_cast<off_t>(record.block), SEEK_SET) == 0 &&
         fread(static_cast<void*>(header), record.size, 1, file) == 1 &&
         check(header, record.size, problem) && checksum(header) == record.block_sum;
}

void start_live(FilterSlot* slot, const FilterRecord& record) {
  // Above all numbers that rows of this life had: a row takes longer than a microsecond.
  const auto number = static_cast<uint64>(record.saved);
  pg_atomic_write_u64(&slot->log.next_number, number);
  raise_count(slot, number - 1);
  // The filter was used before: if it becomes logged, it starts with an image.
  pg_atomic_write_u64(&slot->applied, 1);
  slot->saved.last_saved = record.saved;
  slot->saved.identity = record.life;
  pg_atomic_write_u32(&slot->saved.has_header, record.has_header);
  slot->saved.restored = GetCurrentTimestamp();
}

bool is_any_waiting = false;

// Reads one filter into a slot. False: it is damaged.
bool read_filter(FILE* file, uint64 number) {
  FilterRecord record;
  if (!read_record(file, number, &record)) return false;
  Statistics stats;
  start_statistics(&stats, GetCurrentTimestamp());
  if (!read_statistics(file, &stats)) return false;
  if (record.key_signature == 0) {
    put_filter_work(record.database, record.relation,
                    {stats.counts.read(), time_in(stats.stats_reset)});
    return true;
  }
  // Used since the upgrade already.
  if (find_slot(record.database, record.relation, SlotState::live) != nullptr) return true;
  FilterSlot* slot = make_slot_for(record);
  const bool waits = slot == nullptr && record.size > 0;
  if (waits) {
    ereport(
        LOG, errmsg("not enough room for an unlogged filter of %llu bytes", llu(record.size)),
        errdetail("Its bytes stay in \"%s\", and its use says which setting to raise.", kWaiting));
    // Also beyond max_filters: who uses it needs a place, and these bytes none.
    slot = find_free_slot(true);
    if (slot != nullptr) enter_slot(slot, record.database, record.relation, SlotState::counted);
  }
  if (slot == nullptr) return true;
  slot->waits = waits ? static_cast<uint32>(number) + 1 : 0;
  is_any_waiting |= waits;
  if (record.size > 0 && !waits && !read_block(file, slot, record)) {
    free_slot(slot);
    ereport(LOG, errmsg("the bytes of unlogged filter %u of database %u in \"%s\" are damaged",
                        record.relation, record.database, kFile));
    return false;
  }
  slot->server = record.server;
  slot->key_signature = record.key_signature;
  memcpy(static_cast<void*>(&slot->stats), &stats, sizeof stats);
  slot->size = record.size;
  if (record.size == 0 || waits) return true;
  slot->generation = shared_state->next_generation++;
  start_live(slot, record);
  move_slot(slot, SlotState::live);
  return true;
}

// Is it the file of the last shutdown? Or, after pg_upgrade, of another data directory: one of this
// server's own could be of any age.
bool is_expected(const FileHeader& header, bool upgraded) {
  ControlFileData control;
  if (starts_in_recovery() || !read_control_file(&control)) return false;
  if (header.system != control.system_identifier) return upgraded;
  return !upgraded && control.state == DB_SHUTDOWNED && header.checkpoint == control.checkPoint;
}

// The file has another name before anything of it is read: a start that dies of what it holds does
// not leave it to the next one.
bool rename_to_read(const char* name) {
  if (rename(name, kReading) == 0) return true;
  if (errno != ENOENT)
    ereport(LOG, errcode_for_file_access(),
            errmsg("could not rename file \"%s\" to \"%s\": %m", name, kReading));
  return false;
}

void set_aside_unread() {
  if (rename(kReading, kSetAside) != 0) return;
  ereport(LOG, errmsg("file \"%s\" was not read to its end by an earlier start", kReading),
          errdetail("Unlogged filters that it holds are empty. The file is set aside as \"%s\".",
                    kSetAside));
}

bool is_of_other_version(const FileHeader& header) {
  const uint64 differs = header.magic ^ kFileMagic;
  return differs != 0 && (differs & ~(uint64{0xff} << kVersionShift)) == 0;
}

bool read_header(FILE* file, FileHeader* header) {
  return fread(header, sizeof *header, 1, file) == 1 && header->sum == sum_of_record(*header) &&
         header->magic == kFileMagic;
}

bool read_filters(FILE* file, FileHeader* header, bool upgraded) {
  bool good = read_header(file, header) && is_expected(*header, upgraded);
  const uint64 count = good ? header->count : 0;
  for (uint64 i = 0; i < count; ++i) good &= read_filter(file, i);
  return good;
}

void read_file(const char* name, bool upgraded) {
  if (!rename_to_read(name)) return;
  FILE* file = AllocateFile(kReading, PG_BINARY_R);
  if (file == nullptr)
    ereport(LOG, errcode_for_file_access(), errmsg("could not open file \"%s\": %m", kReading));
  FileHeader header{};
  const bool good = file != nullptr && read_filters(file, &header, upgraded);
  if (file != nullptr) FreeFile(file);
  if (is_any_waiting && rename(kReading, kWaiting) == 0 && good) return;
  if (good) {
    unlink(kReading);
    return;
  }
  rename(kReading, kSetAside);
  ereport(
      LOG,
      is_of_other_version(header) ? errmsg("file \"%s\" of format version %c cannot be read", name,
                                           static_cast<char>(header.magic >> kVersionShift))
                                  : errmsg("file \"%s\" is damaged or of another past", name),
      errdetail("Unlogged filters that it does not hold, or not soundly, are empty. The file is "
                "set aside as \"%s\".",
                kSetAside));
}

void read_files() {
  set_aside_unread();
  unlink(kWaiting);  // the file has it, or a crash has ended its life
  is_any_waiting = false;
  read_file(kFile, /*upgraded=*/false);
  const bool reads_upgraded = !IsBinaryUpgrade && !is_any_waiting;
  if (reads_upgraded) read_file(kUpgraded, /*upgraded=*/true);
  give_back_slots();  // slots whose bytes were damaged
  // After a crash the file must not be found.
  unlink(kFile);
  unlink(kTemporary);
  if (reads_upgraded) unlink(kUpgraded);
}

}  // namespace

void count_stored_filters() {
  uint64 count = 0;
  for (const char* name : {kFile, kUpgraded}) {
    FILE* file = fopen(name, PG_BINARY_R);
    if (FileHeader header; file != nullptr && read_header(file, &header)) count += header.count;
    if (file != nullptr) fclose(file);
  }
  stored_filters = static_cast<int>(Min(count, uint64{PG_UINT16_MAX}));
}

uint64 waiting_bytes(Oid database, Oid relation) {
  const LockHeld held(shared_state->directory_lock, LW_SHARED);
  const FilterSlot* slot = find_slot(database, relation, SlotState::counted);
  return slot != nullptr && slot->waits != 0 ? slot->size : 0;
}

bool read_waiting(FilterSlot* slot, int64 life) {
  FILE* file = AllocateFile(kWaiting, PG_BINARY_R);
  FilterRecord record;
  const bool good = read_record(file, slot->waits - 1, &record) && record.life == life &&
                    record.size <= slot->size && read_block(file, slot, record);
  if (file != nullptr) FreeFile(file);
  if (good) start_live(slot, record);
  return good;
}

void start_unlogged_file() {
  if (IsUnderPostmaster) return;
  read_files();
  on_shmem_exit(write_file, static_cast<Datum>(0));
}

}  // namespace streamfilter::pg
