// What ALTER, RENAME, SET SCHEMA, DROP and functions about a whole filter do to the relations on
// its servers, those of slices that have moved included: all in one transaction with the statement
// here, whose rollback undoes them. COMMIT fails if one of the servers is lost before it.
#pragma once

#include "pg/remote/remote_filter.hpp"

namespace streamfilter::pg {

// What an ALTER has to do there.
enum class Reach : uint8 {
  compare,  // the parts have to agree, as far as servers can be reached
  alter,    // they are to become what the definition says: all have to be reached
};

// What the definition here derives, but the state on the servers fixes: it has to be given.
struct FixedOptions {
  const char* kind = nullptr;  // nullptr, 0: it is what it was
  uint32 slices = 0;
  uint64 k = 0;
};

// Raises 08006 if a server is lost.
FixedOptions find_fixed_options(const FilterRelation* relation);

// Raises 0A000 where a part cannot become that without losing what it knows, 55000 where parts do
// not agree, 08006 if a server is lost.
void alter_parts(const FilterRelation* relation, Reach reach);

// The filter had this schema and name before.
void rename_parts(const FilterRelation* relation, const char* schema, const char* name);

// A function of the extension whose argument is a filter, and what it does, for messages.
struct PartFunction {
  const char *name, *what;
};

// Calls it for each of the parts; returns the sum of what they return. Raises 08006 if a server is
// lost.
uint64 call_parts(const FilterRelation* relation, const PartFunction& function);

// The filter is about to be dropped. What belongs to others there stays, with a NOTICE.
void drop_parts(const FilterRelation* relation);

}  // namespace streamfilter::pg
