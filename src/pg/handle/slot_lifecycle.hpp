// Creates and frees filters in shared memory with the transactions that define them.
#pragma once

#include "pg/catalog/filter_relation.hpp"
#include "pg/shmem/filter_directory.hpp"

namespace streamfilter::pg {

// The slot of a filter. If there is none, builds it and fills it from the saved state, if any. The
// caller holds a lock on the relation, which keeps the slot in place. Raises 53200 if memory, slots
// or memory_limit do not allow it. `empties`: the transaction has locked the filter to empty it,
// and needs none of the state.
FilterSlot* attach_slot(const FilterRelation* relation, bool empties = false);

// The slot that the filter has for this transaction; nullptr if there is none.
FilterSlot* peek_slot(const FilterRelation* relation);
// The same, where prepared transactions have been resolved. Needs directory_lock.
FilterSlot* usable_slot(const FilterRelation* relation);

// The seed of a filter with state; false if it has none.
bool peek_seed(const FilterRelation* relation, uint64* seed);

// The same, whatever the definition says now.
FilterSlot* latest_slot(Oid relid);

// An ALTER asks for a state that the filter's cannot be made into: for this transaction it has
// none, nothing is saved of it, and at commit its slot is freed.
void start_empty(Oid relid);

// At commit the filter's slot is saved, or kept in memory only. was_kept_logged: as this
// transaction has it.
void keep_at_commit(FilterSlot* slot, bool logged);
bool is_kept_logged(const FilterSlot* slot);
// Has it made the filter logged, or filled this slot, so that an image must be saved? Asked of the
// slot and the work at commit: a savepoint takes its part of both along.
bool is_made_logged(FilterSlot* slot);

// Makes a slot for the definition, filled by `fill`, in place of the latest one. Frees earlier ones
// that no savepoint can bring back. Raises as attach_slot.
FilterSlot* attach_filled(const FilterRelation* relation, const Parameters& parameters,
                          void (*fill)(FilterSlot* slot, void* arg), void* arg);

// Makes a slot of `memory` bytes beside the filter's, for a copy of its state in another size
// (state_copy.hpp). The definition is the one that the filter will have. Raises as attach_slot.
FilterSlot* add_copy(const FilterRelation* relation, uint64 size);

// Gives a reserved slot its bytes. Needs no lock on the relation, and raises as attach_slot.
void give_memory(const FilterSlot* slot, const FilterRelation* relation);

// Declares the copy to be this transaction's state for the definition that it will write. The
// caller keeps others from using the filter.
void define_copy(FilterSlot* copy);

// Frees the state of a relation, or of a whole database, at commit.
void drop_at_commit(Oid database, Oid relation);

// Forgets a trigger's counts at commit.
void drop_trigger_at_commit(Oid trigger);

// Is it the state that this transaction leaves? Not if an ALTER has taken it over, or starts empty.
bool is_latest(const FilterSlot* slot);

// The rest is called by the coordinator (pg/commit) when the transaction, or a subtransaction of
// it, ends. Only prepare_definitions raises: it hands what is to be done, and the keys, over to
// prepared_transactions.hpp. False: there is nothing.
void commit_persistence();  // before note_saved_changes: a TRUNCATE may have followed
void commit_definitions();
void roll_back_definitions();
bool prepare_definitions();
void leave_prepared_definitions();
void keep_definitions_of(SubTransactionId subtransaction, SubTransactionId parent);
void roll_back_definitions_of(SubTransactionId subtransaction);

}  // namespace streamfilter::pg
