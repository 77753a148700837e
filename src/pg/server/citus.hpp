// Facts about Citus, if its library is loaded. Links to nothing of it, but asks settings and SQL
// functions.
#pragma once

namespace streamfilter::pg {

// Is its library loaded?
bool is_citus_loaded();

// A number for the distributed transaction that this session works for, different from all others;
// 0: none. Reads catalogs.
uint64 distributed_transaction();

// The number that Citus appends to names of a shard's objects: "events_102008". 0: the name does
// not end with one.
uint64 shard_in_name(const char* name);

}  // namespace streamfilter::pg
