// What can be known of Citus, where its library is loaded. Nothing here is linked to it: settings
// and SQL functions say it.
#pragma once

namespace streamfilter::pg {

// Is its library loaded?
bool is_citus_loaded();

// The distributed transaction that this session works for, as a number that tells it from others;
// 0: none. Looks into catalogs.
uint64 distributed_transaction();

// The number that Citus appends to the names of what belongs to a shard: "events_102008". 0: the
// name does not end with one.
uint64 shard_in_name(const char* name);

}  // namespace streamfilter::pg
