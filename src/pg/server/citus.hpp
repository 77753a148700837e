// What can be known of Citus, where its library is loaded. Nothing here is linked to it: settings
// and SQL functions say it.
#pragma once

namespace streamfilter::pg {

// Is its library loaded?
bool is_citus_loaded();

// The number that Citus appends to the names of what belongs to a shard: "events_102008". 0: the
// name does not end with one.
uint64 shard_in_name(const char* name);

}  // namespace streamfilter::pg
