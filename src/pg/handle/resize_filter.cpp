#include "pg/server/postgres.hpp"

#include "core/filter/filter.hpp"
#include "core/filter/resize.hpp"
#include "pg/handle/filter_handle.hpp"
#include "pg/handle/resize_filter.hpp"
#include "pg/handle/slot_lifecycle.hpp"
#include "pg/handle/tree.hpp"
#include "pg/server/progress.hpp"
#include "pg/storage/restore_ranges.hpp"
#include "pg/storage/state_heaps.hpp"
#include "pg/transaction/apply_changes.hpp"
#include "pg/transaction/prepared_transactions.hpp"
#include "pg/transaction/transaction_changes.hpp"

namespace streamfilter::pg {
namespace {

struct Resizing {
  const FilterRelation* relation;
  const Parameters* parameters;
  FilterSlot* former;
  const Header* state;  // of the former slot, with this transaction's changes
};

// Nobody else can change it: the relation is locked.
const Header* state_to_keep(const FilterSlot* slot) {
  const Header* block = block_of(slot);
  const TransactionChanges* changes = find_changes(slot, slot->generation);
  if (changes == nullptr || changes->log.count == 0) return block;
  auto* copy =
      static_cast<Header*>(MemoryContextAllocHuge(CurrentMemoryContext, block->parameters.memory));
  memcpy(static_cast<void*>(copy), block, block->parameters.memory);
  apply_changes(&changes->log, copy, nullptr);
  return copy;
}

void fill(FilterSlot* slot, void* arg) {
  const auto* resizing = static_cast<const Resizing*>(arg);
  const Parameters& parameters = *resizing->parameters;
  Header* block = block_of(slot);
  format_header(block, parameters);
  Progress progress(Command::resize, slot->relation, "resizing");
  progress.begin("copying", parameters.slices, "slices");
  const Size scratch_bytes =
      parameters.slice_bytes * scratch_slices(resizing->state->parameters, parameters);
  void* scratch = MemoryContextAllocHuge(CurrentMemoryContext, scratch_bytes);
  for (uint32 i = 0; i < parameters.slices; ++i) {
    format_slice(block, i);
    resize_slice(block, i, resizing->state, scratch);
    progress.advance(1);
  }
  pfree(scratch);
  progress.end();
  take_over_counts(slot, resizing->former);
  begin_saved(slot, resizing->relation, parameters);
}

}  // namespace

void take_over_counts(FilterSlot* slot, const FilterSlot* former) {
  take_over_statistics(&slot->stats, former->stats);
  pg_atomic_write_u64(
      &slot->saved.next_number,
      pg_atomic_read_u64(const_cast<pg_atomic_uint64*>(&former->saved.next_number)));
}

void begin_saved(FilterSlot* slot, const FilterRelation* relation, const Parameters& parameters) {
  SavedState* saved = &slot->saved;
  saved->logged = relation->options.persistence == Persistence::logged;
  saved->identity =
      identity_of(asked_signature(relation, parameters.keys, parameters.fpr), parameters.seed);
  saved->ran.count = -1;
  // What is saved of an unlogged one's former state goes with its first change.
  pg_atomic_write_u32(&saved->has_header, saved->logged ? 0 : 1);
}

void warn_of_rate(const FilterRelation* relation, const Header* header) {
  const double fpr = relation->definition.wanted_fpr(), expected = fpr_to_come(header);
  if (expected <= fpr) return;
  ereport(WARNING, errmsg("filter \"%s\" will exceed its false-positive rate", relation->name),
          keys_expire(header->parameters)
              ? errdetail("It keeps its keys. Until they have left the window, its false-positive "
                          "rate is up to %.2g instead of %g.",
                          expected, fpr)
              : errdetail("It keeps its keys. With %llu keys, its false-positive rate will be %.2g "
                          "instead of %g.",
                          static_cast<unsigned long long>(header->parameters.keys), expected, fpr),
          errhint("To have the promised rate, TRUNCATE the filter and fill it anew, for example "
                  "with streamfilter_warm()."));
}

bool resized_parameters(const FilterRelation* relation, const FilterSlot* former,
                        const Parameters& from, Parameters* parameters, Problem& problem) {
  if (former->key_signature != key_signature(relation)) {
    problem.set(Error::mismatch, "the keys are of other columns now");
    return problem.add_detail("Its keys are of other columns now.");
  }
  if (!resized_parameters(from, relation->options.asked, parameters, problem)) return false;
  // The asked-for options may have changed; they are compared with what is saved.
  parameters->keys = relation->definition.parameters.keys;
  parameters->nulls = relation->definition.parameters.nulls;
  return true;
}

namespace {

constexpr uint64 kLarge = 256 * 1024 * 1024;  // seconds, for most kinds

void tell_of_procedure(const FilterRelation* relation, const Parameters& parameters) {
  if (parameters.memory < kLarge) return;
  ereport(NOTICE,
          errmsg("all who use filter \"%s\" wait until its state is copied", relation->name),
          errhint("CALL streamfilter_resize(...) copies it while rows come."));
}

}  // namespace

bool resize_filter(const FilterRelation* relation, Problem& problem) {
  // A prepared transaction releases the relation before its keys are in the filter.
  if (shared_state != nullptr) resolve_prepared();
  FilterSlot* former = latest_slot(relation);
  // All filters of a tree have one shape, exactly as their definitions derive it.
  if (former == nullptr || is_in_tree(relation->relid)) return false;
  await_all_slices(former, relation);
  const Header* state = state_to_keep(former);
  Parameters parameters{};
  // The state that this transaction has emptied must not come back.
  if (is_empty(state) && peek_slot(relation) == nullptr) return false;
  if (!resized_parameters(relation, former, state->parameters, &parameters, problem) ||
      !can_take_over(state, {0, state->parameters.slices}, parameters, problem))
    return false;
  tell_of_procedure(relation, parameters);
  flush_counters();
  const bool is_copy = state != block_of(former);
  Resizing resizing = {relation, &parameters, former, state};
  FilterSlot* slot = attach_filled(relation, parameters, fill, &resizing);
  warn_of_rate(relation, block_of(slot));
  if (is_copy) pfree(const_cast<Header*>(state));
  begin_changes(slot, block_of(slot), slot->saved.logged)->saving.needs_image = true;
  return true;
}

}  // namespace streamfilter::pg
