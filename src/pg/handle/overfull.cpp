#include "pg/server/postgres.hpp"

extern "C" {
#include "utils/builtins.h"
#include "utils/timestamp.h"
}

#include "core/filter/filter.hpp"
#include "pg/handle/overfull.hpp"
#include "pg/server/monotonic.hpp"
#include "pg/server/shared_memory.hpp"
#include "pg/shmem/loss_estimate.hpp"

namespace streamfilter::pg {
namespace {

// An estimate costs more than the rest of a row, so it is kept until keys are applied.
bool exceeds(FilterHandle* filter, const Element& element) {
  const Parameters& parameters = filter->header->parameters;
  if (parameters.k1 > 0) return exceeds_rate(filter->header, element.hash, filter->overfull.limit);
  const uint32 slice = slice_of(parameters, element.hash);
  OverfullVerdict& known = filter->overfull.verdicts[slice % lengthof(filter->overfull.verdicts)];
  const uint64 applied = pg_atomic_read_u64(&filter->slot->applied) + 1;
  if (known.applied == applied && known.slice == slice) return known.exceeds;
  const LockHeld held(slice_lock(filter->slot, slice), LW_SHARED);
  known = {applied, slice, exceeds_rate(filter->header, element.hash, filter->overfull.limit)};
  return known.exceeds;
}

// Discarded rows also move the window of rows of a full filter (timing_bloom.cpp): by accepted rows
// alone it would hardly recover.
void count_row(FilterHandle* filter, const Element& element) {
  const Parameters& parameters = filter->header->parameters;
  if (ops_of(filter->header).forgets != Forgets::after_window || parameters.k1 > 0) return;
  LWLock* lock = slice_lock(filter->slot, slice_of(parameters, element.hash));
  unsigned position;
  const LockHeld held(lock, LW_EXCLUSIVE);
  promote(filter->header, element, position);
}

bool is_log_due(FilterSlot* slot) {
  const int64 now = monotonic_us();
  uint64 last = pg_atomic_read_u64(&slot->overfull_logged);
  if (last != 0 && now - static_cast<int64>(last) < USECS_PER_MINUTE) return false;
  return pg_atomic_compare_exchange_u64(&slot->overfull_logged, &last, static_cast<uint64>(now));
}

void warn_of(const FilterHandle* filter, int level) {
  const bool passes = filter->overfull.passes;
  const double rate = filter->overfull.limit.rate / kOverfullRate;
  ereport(
      level, errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
      errmsg("filter \"%s\" holds more keys than its false-positive rate allows",
             filter->relation->name),
      passes ? errdetail("It would take more than %g of the new rows for repeats, so repeats "
                         "pass.",
                         rate)
             : errdetail("It takes more than %g of the new rows for repeats, and discards them.",
                         rate),
      errhint("Give it more memory, with ALTER FOREIGN TABLE %s OPTIONS (SET memory ...), or "
              "empty it, with TRUNCATE %s.",
              quote_identifier(filter->relation->name), quote_identifier(filter->relation->name)));
}

}  // namespace

bool passes_overfull(FilterHandle* filter, const Element& element) {
  if (!exceeds(filter, element)) return false;
  filter->overfull.met = true;
  if (!filter->overfull.passes) {
    count_row(filter, element);
    return false;
  }
  ++filter->uncounted.spared;
  ++filter->uncounted.rows[RowCount::passed_overfull];
  return true;
}

void tell_overfull(FilterHandle* filter) {
  filter->overfull.met = false;
  const bool warns = !filter->overfull.warned;
  filter->overfull.warned = true;
  if (is_log_due(filter->slot)) warn_of(filter, LOG);
  if (warns) warn_of(filter, WARNING);
}

}  // namespace streamfilter::pg
