// Carries ALTER, RENAME, SET SCHEMA, DROP and functions on a whole filter to the relations on its
// servers, within one transaction with the local statement. A rollback undoes all of it. COMMIT
// fails if one of the servers is lost before.
#pragma once

#include "pg/remote/remote_filter.hpp"

namespace streamfilter::pg {

// Gives conflict, persistence and the producer's description to each part. Raises 08006 if a server
// is lost.
void alter_parts(const FilterRelation* relation);

// `schema` and `name` are the former ones.
void rename_parts(const FilterRelation* relation, const char* schema, const char* name);

// A function of the extension with a filter as its argument, and its effect, for messages.
struct PartFunction {
  const char *name, *what;
};

// Calls the function for each part, and returns the sum of results. Raises 08006 if a server is
// lost.
uint64 call_parts(const FilterRelation* relation, const PartFunction& function);

// Call before the filter is dropped. Parts that belong to other filters stay, with a NOTICE.
void drop_parts(const FilterRelation* relation);

}  // namespace streamfilter::pg
