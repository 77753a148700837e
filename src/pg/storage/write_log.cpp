#include "pg/server/postgres.hpp"

#include "pg/storage/saved_definition.hpp"
#include "pg/storage/write_log.hpp"

namespace streamfilter::pg {
namespace {

// The data of a row; there is one writer at a time.
char buffer[kRowData];

// Collects changes of the same sort and writes a row when they are as many as fit.
class LogWriter {
 public:
  LogWriter(Relation table, TransactionChanges* changes)
      : table_(table),
        slot_(changes->slot),
        latest_(&changes->saving.latest),
        row_{changes->slot->relation,       ChangeType::add, 0,
             changes->slot->saved.identity, buffer,          0} {}

  void add(ChangeType change, const Element& element) {
    const Size size = change_size(change);
    if (change != row_.change || row_.size + size > kRowData) flush();
    row_.change = change;
    write_change(buffer + row_.size, change, element);
    row_.size += size;
  }

  void flush() {
    if (row_.size > 0) write(row_);
    row_.size = 0;
  }

  void write_reset() {
    LogRow row = row_;
    row.change = ChangeType::reset;
    row.size = 0;
    write(row);
  }

  uint64 bytes() const { return bytes_; }

 private:
  void write(LogRow& row) {
    CHECK_FOR_INTERRUPTS();
    row.number = static_cast<int64>(pg_atomic_fetch_add_u64(&slot_->log.next_number, 1));
    bytes_ += write_state_row(table_, row, &slot_->log.last_page);
    *latest_ = row.number;
  }

  Relation table_;
  FilterSlot* slot_;
  int64* latest_;
  uint64 bytes_ = 0;
  LogRow row_;
};

ChangeType sort_of(const ChangeLog* log, const Change* change) {
  if (change->is(ChangeType::erase)) return ChangeType::erase;
  if (!change->is(ChangeType::add)) return ChangeType::promote;
  return log->has_roles ? ChangeType::roles : ChangeType::add;
}

}  // namespace

Size write_log_header(Relation table, FilterSlot* slot, ChangeType change, const Header* header,
                      int64 former) {
  const SavedHeader saved{slot->key_signature, former};
  const PackedHeader packed(header->parameters);
  const char* collations = collations_of(slot->relation);
  const Size start = sizeof saved + packed.size, length = Min(strlen(collations), kRowData - start);
  memcpy(buffer, &saved, sizeof saved);
  memcpy(buffer + sizeof saved, packed.bytes, packed.size);
  memcpy(buffer + start, collations, length);
  const auto number = static_cast<int64>(pg_atomic_fetch_add_u64(&slot->log.next_number, 1));
  return write_state_row(
      table, LogRow{slot->relation, change, number, slot->saved.identity, buffer, start + length},
      &slot->log.last_page);
}

void write_log_records(Relation table, TransactionChanges* changes) {
  const ChangeLog* log = &changes->log;
  // Not before the lock is held: a save waits for transactions that have entered, and holds a lock.
  changes->saving.epoch = enter_phase(&changes->slot->log.commits);
  changes->saving.committing = true;
  LogWriter writer(table, changes);
  if (pg_atomic_read_u32(&changes->slot->saved.has_header) == 0)
    changes->saving.logged_bytes +=
        write_log_header(table, changes->slot, ChangeType::header, changes->header);
  uint32 start = 0;
  if (log->last_reset != kNoChange) {
    writer.write_reset();
    start = log->last_reset + 1;
  }
  const bool renewing = changes->window.extends;
  ChangeReader reader(log, start);
  for (uint32 i = start; i < log->count; ++i) {
    const Change* change = reader.next();
    if (change->is(ChangeType::add) || change->is(ChangeType::erase) ||
        change->is(ChangeType::promote) || (renewing && change->is(ChangeType::repeat)))
      writer.add(sort_of(log, change), reader.element());
  }
  writer.flush();
  changes->saving.logged_bytes += writer.bytes();
}

}  // namespace streamfilter::pg
