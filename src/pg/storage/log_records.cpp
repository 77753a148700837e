#include "pg/server/postgres.hpp"

extern "C" {
#include "access/table.h"
}

#include <new>

#include "core/filter/filter.hpp"
#include "pg/storage/log_records.hpp"

namespace streamfilter::pg {
namespace {

struct RolesRecord {
  uint64 hash;
  double importance;
  int64 time;
};
static_assert(sizeof(RolesRecord) == 24);

Size record_size(LogChange change) {
  return change == LogChange::roles ? sizeof(RolesRecord) : sizeof(uint64);
}

// Collects changes of the same sort and writes a row when they are as many as fit.
class LogWriter {
 public:
  LogWriter(Relation table, const TransactionChanges* changes)
      : table_(table),
        slot_(changes->slot),
        row_{changes->slot->relation,
             LogChange::add,
             0,
             identity_of(changes->slot->signature, changes->header->parameters.seed),
             buffer_,
             0} {}

  void add(LogChange change, const Element& element) {
    const Size size = record_size(change);
    if (change != row_.change || row_.size + size > kRowData) flush();
    row_.change = change;
    if (change == LogChange::roles) {
      const RolesRecord record = {element.hash, element.importance, element.time};
      memcpy(buffer_ + row_.size, &record, size);
    } else {
      memcpy(buffer_ + row_.size, &element.hash, size);
    }
    row_.size += size;
  }

  void flush() {
    if (row_.size > 0) write(row_);
    row_.size = 0;
  }

  void write_reset() {
    LogRow row = row_;
    row.change = LogChange::reset;
    row.size = 0;
    write(row);
  }

  uint64 bytes() const { return bytes_; }

 private:
  void write(LogRow& row) {
    CHECK_FOR_INTERRUPTS();
    row.number = static_cast<int64>(pg_atomic_fetch_add_u64(&slot_->saved.next_number, 1));
    write_row(table_, row);
    bytes_ += SizeofHeapTupleHeader + 32 + row.size;
  }

  Relation table_;
  FilterSlot* slot_;
  uint64 bytes_ = 0;
  LogRow row_;
  char buffer_[kRowData];
};

LogChange sort_of(const ChangeLog* log, const Change* change) {
  if (change->is(ChangeType::erase)) return LogChange::erase;
  return log->has_roles ? LogChange::roles : LogChange::add;
}

}  // namespace

void write_log_header(Relation table, FilterSlot* slot, LogChange change, const Header* header) {
  const auto number = static_cast<int64>(pg_atomic_fetch_add_u64(&slot->saved.next_number, 1));
  write_row(table, LogRow{slot->relation, change, number,
                          identity_of(slot->signature, header->parameters.seed),
                          reinterpret_cast<const char*>(header), sizeof(Header)});
}

void write_log_records(TransactionChanges* changes) {
  const ChangeLog* log = &changes->log;
  Relation table = open_state_table(StateTable::log, changes->slot->relation, RowExclusiveLock);
  if (table == nullptr) return;
  auto* writer = new (palloc(sizeof(LogWriter))) LogWriter(table, changes);
  if (pg_atomic_read_u32(&changes->slot->saved.has_header) == 0)
    write_log_header(table, changes->slot, LogChange::header, changes->header);
  uint32 start = 0;
  if (log->last_reset != kNoChange) {
    writer->write_reset();
    start = log->last_reset + 1;
  }
  for (uint32 i = start; i < log->count; ++i) {
    const Change* change = change_at(log, i);
    if (change->is(ChangeType::add) || change->is(ChangeType::erase))
      writer->add(sort_of(log, change), element_at(log, i));
  }
  writer->flush();
  changes->saving.logged_bytes = writer->bytes();
  pfree(writer);
  table_close(table, NoLock);
}

uint64 count_changes(const LogRow& row) {
  switch (row.change) {
    case LogChange::header:
    case LogChange::image: return 0;
    case LogChange::reset: return 1;
    default: return row.size / record_size(row.change);
  }
}

LoggedChange change_at(const LogRow& row, uint64 position) {
  LoggedChange result{row.change, {}};
  if (row.change == LogChange::roles) {
    RolesRecord record;
    memcpy(&record, row.data + position * sizeof record, sizeof record);
    result.element.hash = record.hash;
    result.element.importance = record.importance;
    result.element.time = record.time;
  } else if (row.change != LogChange::reset) {
    memcpy(&result.element.hash, row.data + position * sizeof(uint64), sizeof(uint64));
  }
  return result;
}

bool is_sound(const LogRow& row) {
  switch (row.change) {
    case LogChange::header:
    case LogChange::image: return row.size == sizeof(Header);
    case LogChange::reset: return row.size == 0;
    case LogChange::add:
    case LogChange::roles:
    case LogChange::erase: return row.size > 0 && row.size % record_size(row.change) == 0;
  }
  return false;
}

}  // namespace streamfilter::pg
