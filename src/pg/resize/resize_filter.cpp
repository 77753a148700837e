#include "pg/server/postgres.hpp"

#include "core/filter/resize.hpp"
#include "pg/catalog/lookup.hpp"
#include "pg/catalog/option_list.hpp"
#include "pg/handle/filter_handle.hpp"
#include "pg/handle/tree.hpp"
#include "pg/resize/resize_filter.hpp"
#include "pg/shmem/locked_work.hpp"
#include "pg/storage/restore_ranges.hpp"
#include "pg/storage/saved_definition.hpp"
#include "pg/transaction/apply_changes.hpp"
#include "pg/transaction/prepared_transactions.hpp"

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
  const TransactionChanges* changes = find_changes(slot->relation, slot, slot->generation);
  if (changes == nullptr || changes->log.count == 0) return block;
  const Size size = block_bytes(block->parameters);
  auto* copy = static_cast<Header*>(MemoryContextAllocHuge(CurrentMemoryContext, size));
  memcpy(static_cast<void*>(copy), block, size);
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
    count_work(Work::bytes, parameters.slice_bytes);
    resize_slice(block, i, resizing->state, scratch);
    progress.advance(1);
  }
  pfree(scratch);
  progress.end();
  take_over_counts(slot, resizing->former);
  begin_saved(slot, resizing->former, resizing->relation);
}

}  // namespace

void take_over_counts(FilterSlot* slot, const FilterSlot* former) {
  take_over_statistics(&slot->stats, former->stats);
  pg_atomic_write_u64(&slot->log.next_number, pg_atomic_read_u64(&former->log.next_number));
  pg_atomic_write_u64(&slot->log.bytes, pg_atomic_read_u64(&former->log.bytes));
}

void begin_saved(FilterSlot* slot, const FilterSlot* former, const FilterRelation* relation) {
  SavedState* saved = &slot->saved;
  saved->logged = relation->options.persistence == Persistence::logged;
  saved->identity = begin_life();
  pg_atomic_write_u64(&slot->applied, 1);  // it holds what is not saved: is_made_logged
  // That an unlogged one has contents is noted already, or an ALTER notes it.
  pg_atomic_write_u32(&saved->has_header,
                      saved->logged ? 0 : pg_atomic_read_u32(&former->saved.has_header));
}

namespace {

uint32 slice_of_highest_rate(const Header* header) {
  const Parameters& p = header->parameters;
  const auto rate = find_ops(p.kind)->resize.fpr_to_come;
  uint32 highest = 0;
  for (uint32 i = 1; i < p.slices; ++i)
    if (rate(p, slice_at(header, i)) > rate(p, slice_at(header, highest))) highest = i;
  return highest;
}

// Would the state keep the rate in these parameters? Converts its fullest slice; of the new block,
// no more than that is touched.
bool keeps_rate(const Header* from, const Parameters& to, double fpr) {
  constexpr Size kMostTried = 256 * 1024 * 1024;
  const FilterOps* ops = find_ops(to.kind);
  const Size scratch_bytes = to.slice_bytes * scratch_slices(from->parameters, to);
  if (ops->fpr_bound(to) > fpr || scratch_bytes > kMostTried) return false;
  constexpr int kFlags = MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM;
  auto* block = static_cast<Header*>(
      MemoryContextAllocExtended(CurrentMemoryContext, block_bytes(to), kFlags));
  void* scratch = MemoryContextAllocExtended(CurrentMemoryContext, scratch_bytes, kFlags);
  double expected = 1;
  if (block != nullptr && scratch != nullptr) {
    const uint32 index = static_cast<uint32>(static_cast<uint64>(slice_of_highest_rate(from)) *
                                             to.slices / from->parameters.slices);
    format_header(block, to);
    format_slice(block, index);
    resize_slice(block, index, from, scratch);
    expected = ops->resize.fpr_to_come(to, as_const(slice_at(block, index)));
  }
  if (block != nullptr) pfree(block);
  if (scratch != nullptr) pfree(scratch);
  return expected <= fpr;
}

// The size, a multiple of the present one, in which the state keeps the rate. nullptr: none of
// those tried.
const char* size_that_keeps(const FilterRelation* relation, const Header* header, double fpr) {
  constexpr unsigned kMultiples[] = {1, 2, 3, 4, 6, 8, 12, 16};
  // A filter may use up to a 50th less than its size, so that another is a whole multiple.
  const uint64 memory = header->parameters.memory,
               unit = std::max<uint64>(std::bit_floor(memory) / 64, 1024),
               size = (memory + unit - 1) / unit * unit;
  for (const unsigned times : kMultiples) {
    Definition asked = relation->options.asked;
    asked.parameters.memory = size * times;
    asked.give(Common::memory);
    Parameters parameters{};
    Problem ignored;
    if (!resized_parameters(header->parameters, asked, &parameters, ignored) ||
        !keeps_rate(header, parameters, fpr))
      continue;
    char* text = allocate<char>(32);
    print_size(asked.parameters.memory, text, 32);
    return text;
  }
  return nullptr;
}

int give_sizes(const FilterRelation* relation, const Header* former, const Header* header,
               double fpr) {
  if (const char* size = size_that_keeps(relation, header, fpr))
    return errhint(
        "Type: ALTER FOREIGN TABLE %s OPTIONS (SET memory '%s'). Or TRUNCATE the filter "
        "and fill it anew, for example with streamfilter_warm().",
        qualified_name(relation->relid), size);
  if (const char* size = size_that_keeps(relation, former, fpr))
    return errhint(
        "With memory '%s' instead of this size, it keeps the rate: roll back, and use "
        "that. Or TRUNCATE the filter and fill it anew, for example with "
        "streamfilter_warm().",
        size);
  return errhint(
      "To have the promised rate, TRUNCATE the filter and fill it anew, for example "
      "with streamfilter_warm().");
}

}  // namespace

void warn_of_rate(const FilterRelation* relation, const Header* former, const Header* header) {
  const double fpr = relation->definition.wanted_fpr(), expected = fpr_to_come(header);
  if (expected <= fpr) return;
  ereport(
      WARNING, errmsg("filter \"%s\" will exceed its false-positive rate", relation->name),
      keys_expire(header->parameters)
          ? errdetail("It keeps its keys. Until they have left the window, its false-positive "
                      "rate is up to %.2g instead of %g.",
                      expected, fpr)
      : header->parameters.keys == 0
          ? errdetail("It keeps its keys. When it is full, its false-positive rate will be %.2g "
                      "instead of %g.",
                      expected, fpr)
          : errdetail("It keeps its keys. With %llu keys, its false-positive rate will be %.2g "
                      "instead of %g.",
                      llu(header->parameters.keys), expected, fpr),
      give_sizes(relation, former, header, fpr));
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

bool is_state_wanted(const FilterRelation* relation, const FilterSlot* former,
                     const Parameters* before) {
  const Parameters &own = block_of(former)->parameters, &wanted = relation->definition.parameters;
  const bool is_resized = former->state == SlotState::pending && former->copy.of != nullptr;
  return is_state_of(relation, own, former->key_signature) &&
         (is_resized || has_same_geometry(own, wanted) ||
          (before != nullptr && has_same_geometry(*before, wanted)));
}

constexpr uint64 kLarge = 256 * 1024 * 1024;  // seconds, for most kinds

static void tell_of_procedure(const FilterRelation* relation, const Parameters& parameters) {
  if (parameters.memory < kLarge) return;
  ereport(NOTICE,
          errmsg("all who use filter \"%s\" wait until its state is copied", relation->name),
          errhint("CALL streamfilter_resize(...) copies it while rows come."));
}

// What `auto` took stays, also where it would take another kind now.
static void tell_of_kind(const FilterRelation* relation, Kind kept) {
  const Kind derived = relation->definition.parameters.kind;
  if (relation->options.asked.parameters.kind != Kind::automatic || kept == derived) return;
  const char* name = find_ops(derived)->name;
  const bool is_given = find_option(options_of_filter(relation->relid), "kind") != nullptr;
  ereport(NOTICE, errmsg("filter \"%s\" stays of kind %s", relation->name, find_ops(kept)->name),
          errdetail("With these options, a new filter is of kind %s.", name),
          errhint("ALTER FOREIGN TABLE %s OPTIONS (%s kind '%s'); then fill it with "
                  "streamfilter_warm(), for it starts empty.",
                  qualified_name(relation->relid), is_given ? "SET" : "ADD", name));
}

bool resize_filter(const FilterRelation* relation, Problem& problem) {
  // A prepared transaction releases the relation before its keys are in the filter.
  if (shared_state != nullptr) resolve_prepared(relation->relid);
  FilterSlot* former = latest_slot(relation->relid);
  // All filters of a tree have one shape, exactly as their definitions derive it.
  if (former == nullptr || is_in_tree(relation->relid)) return false;
  await_all_slices(former, relation);
  const Header* state = state_to_keep(former);
  Parameters parameters{};
  if (is_empty(state)) return false;
  if (!resized_parameters(relation, former, state->parameters, &parameters, problem) ||
      !can_take_over(state, {0, state->parameters.slices}, parameters, problem))
    return false;
  tell_of_kind(relation, parameters.kind);
  tell_of_procedure(relation, parameters);
  flush_counters();
  const bool is_copy = state != block_of(former);
  Resizing resizing = {relation, &parameters, former, state};
  FilterSlot* slot = attach_filled(relation, parameters, fill, &resizing);
  warn_of_rate(relation, state, block_of(slot));
  if (is_copy) pfree(const_cast<Header*>(state));
  begin_changes(slot, block_of(slot));
  return true;
}

}  // namespace streamfilter::pg
