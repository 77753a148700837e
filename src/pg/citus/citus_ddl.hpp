// Lets statements about a filter reach all nodes of Citus in one transaction, or fail.
#pragma once

#include "pg/server/hooks.hpp"

namespace streamfilter::pg {

// A step before all others: keeps writers of all nodes out while a statement locks filters
// (citus_nodes.hpp).
void close_gates(UtilityCall* call);

// A step: after TRUNCATE and DROP of filters, ALTER of their options, RENAME, SET SCHEMA, GRANT and
// REVOKE, the other nodes do the same. Before other ALTERs raises 0A000, with what to type.
void send_to_nodes(UtilityCall* call);

// Call after one of our functions was called for a filter, or for all (InvalidOid, no argument):
// calls it on the other nodes, too.
void call_on_other_nodes(Oid filter, Oid function);

}  // namespace streamfilter::pg
