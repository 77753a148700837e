#include "pg/server/postgres.hpp"

#include "pg/commit/save_changes.hpp"
#include "pg/handle/filter_handle.hpp"
#include "pg/storage/log_records.hpp"
#include "pg/storage/persistence.hpp"
#include "pg/transaction/transaction_changes.hpp"

namespace streamfilter::pg {
namespace {

void note_saved(Pending* pending) {
  SavedState* saved = &pending->slot->saved;
  saved->logged = pending->logged;
  if (pending->writes_header) pg_atomic_write_u32(&saved->has_header, 1);
  if (pending->drops_saved) pg_atomic_write_u32(&saved->has_header, 0);
  if (pending->saved_at == 0) return;
  saved->last_saved = pending->saved_at;
  pg_atomic_fetch_sub_u64(&saved->log_bytes,
                          Min(pending->freed_bytes, pg_atomic_read_u64(&saved->log_bytes)));
}

bool has_header(const Pending* pending) {
  return pg_atomic_read_u32(&pending->slot->saved.has_header) != 0;
}

// Does this transaction have to delete what is saved, or write an image? The log does not have
// merged values, nor what was added while the filter was unlogged.
bool replaces_saved(const Pending* pending) {
  if (!pending->logged) return has_header(pending);
  return pending->log.last_merge != kNoEntry ||
         (!has_header(pending) && pg_atomic_read_u64(&pending->slot->applied) > 0);
}

void replace_saved(Pending* pending) {
  const Oid relation = pending->slot->relation;
  if (!is_filter(relation)) return;  // this transaction has dropped it
  pending->replaced = true;
  if (!pending->logged) {
    delete_saved_state(relation);
    pending->drops_saved = true;
    return;
  }
  NamedFilter* filter = named_filter(relation);
  use_filter(filter, Use::probe);
  if (filter->slot != pending->slot) return;
  save_filter(filter, true);
  pending->writes_header = true;
}

void log_changes(Pending* pending) {
  pending->epoch = begin_commit(pending->slot);
  pending->committing = true;
  pending->writes_header = true;
  write_journal(pending);
  save_in_background_if_due(pending->slot, pending->journal_bytes);
}

bool has_changes(const Pending* pending) { return is_alive(pending) && pending->log.count > 0; }

}  // namespace

// Snapshots come first: once begin_commit was called, this transaction must not wait for one, since
// whoever takes one may be waiting for it.
void save_transaction_changes() {
  for (Pending* pending = first_pending(); pending != nullptr; pending = pending->next)
    if (has_changes(pending) && replaces_saved(pending)) replace_saved(pending);
  for (Pending* pending = first_pending(); pending != nullptr; pending = pending->next)
    if (has_changes(pending) && pending->logged && !pending->replaced) log_changes(pending);
}

void note_saved_changes() {
  for (Pending* pending = first_pending(); pending != nullptr; pending = pending->next)
    if (is_alive(pending)) note_saved(pending);
}

void end_saving() {
  for (Pending* pending = first_pending(); pending != nullptr; pending = pending->next)
    if (pending->committing && is_alive(pending)) end_commit(pending->slot, pending->epoch);
}

}  // namespace streamfilter::pg
