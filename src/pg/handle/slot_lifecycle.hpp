// How filters in shared memory come and go with the transactions that define them.
#pragma once

#include "pg/catalog/filter_relation.hpp"
#include "pg/shmem/filter_directory.hpp"

namespace streamfilter::pg {

// The slot of a filter; if there is none yet, it is built and filled with what is saved, if
// anything is. The caller holds a lock on the relation, which keeps the slot in place. Raises 53200
// if memory, slots or memory_limit do not allow it.
FilterSlot* attach_slot(const FilterRelation* relation);

// The slot if there is one with this definition, else nullptr.
FilterSlot* peek_slot(const FilterRelation* relation);

// The seed of a filter that has state; false: it has none.
bool peek_seed(const FilterRelation* relation, uint64* seed);

// The state that this transaction has built last for a filter, or has found; its definition may be
// another one. nullptr: there is none.
FilterSlot* latest_slot(const FilterRelation* relation);

// A slot for the definition, which `fill` fills, in place of the latest one: of those before, the
// ones are freed that no savepoint can bring back. Raises as attach_slot.
FilterSlot* attach_filled(const FilterRelation* relation, const Parameters& parameters,
                          void (*fill)(FilterSlot* slot, void* arg), void* arg);

// A slot of so many bytes beside that of the filter, for a copy of its state in another size
// (state_copy.hpp), which this transaction makes: the definition is the one that the filter is to
// have. Its memory comes by back_copy, for which no lock on the relation is needed. Both raise as
// attach_slot.
FilterSlot* add_copy(const FilterRelation* relation, uint64 size);
void back_copy(const FilterSlot* copy, const FilterRelation* relation);

// The copy is what this transaction has built for the definition that it is about to write. Nobody
// else may use the filter.
void define_copy(FilterSlot* copy);

// At commit of the current transaction, frees the state of a relation or of a whole database.
void drop_at_commit(Oid database, Oid relation);

// At commit, what a trigger has counted is forgotten.
void drop_trigger_at_commit(Oid database, Oid trigger);

// Before the commit of a transaction that may have altered a filter several times: frees the states
// that it has built for definitions other than the last one, which `read` reads (nullptr: it cannot
// be read).
void free_obsolete_states(FilterRelation* (*read)(Oid));

// The rest is called by the coordinator (pg/commit) when the transaction, or a subtransaction of
// it, ends. Only prepare_definitions raises: it hands what is to be done, and the keys, over to
// prepared_transactions.hpp. False: there is nothing.
void commit_definitions();
void roll_back_definitions();
bool prepare_definitions();
void leave_prepared_definitions();
void keep_definitions_of(SubTransactionId subtransaction, SubTransactionId parent);
void roll_back_definitions_of(SubTransactionId subtransaction);

}  // namespace streamfilter::pg
