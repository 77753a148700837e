// A filter on another server that a table of postgres_fdw stands for. That wrapper has the
// connection, its options and its transaction; here a key is a row that is inserted into the table,
// and was seen if none arrived. The values travel, not a hash: the filter there hashes them.
#pragma once

#include "core/format/element.hpp"
#include "pg/catalog/filter_relation.hpp"

namespace streamfilter::pg {

struct PostgresFdwFilter;

// In the current memory context, as is the relation. Connects to nothing.
PostgresFdwFilter* make_postgres_fdw_filter(const FilterRelation* relation);

// Rows by the hashes of their keys, or where nobody has hashed these, by a number: the last
// thousand can be asked for.
uint64 next_number(PostgresFdwFilter* fdw_filter);
void keep_row(PostgresFdwFilter* fdw_filter, const Datum* values, const bool* isnull, uint64 hash);

// Was the key of a row that was kept seen? It is inserted, once the transaction of postgres_fdw
// commits. These raise what that wrapper raises, 42809 if no filter is there, and 55000 if the row
// was not kept.
bool test_and_insert_postgres_fdw_key(PostgresFdwFilter* fdw_filter, const Element& element);
bool test_postgres_fdw_key(PostgresFdwFilter* fdw_filter, const Element& element);

// Called by the coordinator (pg/commit). What was prepared on the other servers by this
// transaction, or by one subtransaction, is given back before postgres_fdw commits there; or has
// gone with it.
void end_insertions();
void end_insertions_of(SubTransactionId subtransaction);
void forget_insertions();
void forget_insertions_of(SubTransactionId subtransaction);

// Called when postgres_fdw is used first, so that somebody can be called before it from then on.
extern void (*on_first_insertion)();

}  // namespace streamfilter::pg
