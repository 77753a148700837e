// A filter on another server behind a foreign table of postgres_fdw, which has the connection, its
// options and its transaction. A key is a row inserted into that table, and was seen if the row
// count is 0. Values travel, not hashes: the filter there hashes them.
#pragma once

#include "core/kind/filter_kind.hpp"
#include "pg/catalog/filter_relation.hpp"

namespace streamfilter::pg {

struct PostgresFdwFilter;

// Allocates in the current memory context, like the relation. Does not connect.
PostgresFdwFilter* make_postgres_fdw_filter(const FilterRelation* relation);

// A number for a row without a hash. The last thousand rows can be asked for.
uint64 next_number(PostgresFdwFilter* fdw_filter);
void keep_row(PostgresFdwFilter* fdw_filter, const Datum* values, const bool* isnull, uint64 hash);

// Was the key of a kept row seen? It is inserted when postgres_fdw's transaction commits. These
// raise postgres_fdw's errors, 42809 if there is no filter, and 55000 if the row was not kept.
bool test_and_insert_postgres_fdw_key(PostgresFdwFilter* fdw_filter, const Element& element);
bool test_postgres_fdw_key(PostgresFdwFilter* fdw_filter, const Element& element);

// Called by the coordinator (pg/commit). Frees statements that this transaction, or one
// subtransaction, has prepared on other servers, before postgres_fdw commits there.
void end_insertions();
void end_insertions_of(SubTransactionId subtransaction);
void forget_insertions();
void forget_insertions_of(SubTransactionId subtransaction);

}  // namespace streamfilter::pg
