#include "pg/server/postgres.hpp"

extern "C" {
#include "access/table.h"
}

#include <new>

#include "core/filter/filter.hpp"
#include "pg/storage/log_records.hpp"

namespace streamfilter::pg {
namespace {

// Collects changes of the same sort and writes a row when they are as many as fit.
class JournalWriter {
 public:
  JournalWriter(Relation table, const Pending* pending)
      : table_(table),
        slot_(pending->slot),
        row_{pending->slot->relation,
             LogChange::add,
             0,
             identity_of(pending->slot->signature, pending->header->parameters.seed),
             buffer_,
             0} {}

  void add(LogChange change, const Element& element) {
    const Size size = change_size(change);
    if (change != row_.change || row_.size + size > kRowData) flush();
    row_.change = change;
    write_change(buffer_ + row_.size, change, element);
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

LogChange sort_of(const KeyLog* log, const LogEntry* entry) {
  if (entry->change == static_cast<uint32>(Change::erase)) return LogChange::erase;
  return log->has_roles ? LogChange::roles : LogChange::add;
}

}  // namespace

void write_log_header(Relation table, FilterSlot* slot, LogChange change, const Header* header) {
  const auto number = static_cast<int64>(pg_atomic_fetch_add_u64(&slot->saved.next_number, 1));
  write_row(table, LogRow{slot->relation, change, number,
                          identity_of(slot->signature, header->parameters.seed),
                          reinterpret_cast<const char*>(header), sizeof(Header)});
}

void write_journal(Pending* pending) {
  const KeyLog* log = &pending->log;
  Relation table = open_state_table(StateTable::log, pending->slot->relation, RowExclusiveLock);
  if (table == nullptr) return;
  auto* writer = new (palloc(sizeof(JournalWriter))) JournalWriter(table, pending);
  if (pg_atomic_read_u32(&pending->slot->saved.has_header) == 0)
    write_log_header(table, pending->slot, LogChange::header, pending->header);
  uint32 start = 0;
  if (log->last_reset != kNoEntry) {
    writer->write_reset();
    start = log->last_reset + 1;
  }
  for (uint32 i = start; i < log->count; ++i) {
    const LogEntry* entry = entry_at(log, i);
    if (entry->change == static_cast<uint32>(Change::add) ||
        entry->change == static_cast<uint32>(Change::erase))
      writer->add(sort_of(log, entry), element_at(log, i));
  }
  writer->flush();
  pending->journal_bytes = writer->bytes();
  pfree(writer);
  table_close(table, NoLock);
}

}  // namespace streamfilter::pg
