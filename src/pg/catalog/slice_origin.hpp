// What a server that holds slices keeps of the filter that they are slices of, so that other
// producers need to know one of the servers only (Koloniari et al. 2011, section 3.1).
#pragma once

#include "pg/catalog/filter_relation.hpp"

namespace streamfilter::pg {

// Columns, options and servers of a filter as a JSON object, for one of its servers, in the current
// memory context:
// {"columns": [{"name", "type", "collation", "role"}], "options": {...}, "servers": [{"name",
// ...}], "position": "1", "identity": "..."}. Users and passwords are not in it. `identity`: whose
// filter it is there; nullptr: this one's.
const char* describe_producer(const FilterRelation* relation, int server,
                              const char* identity = nullptr);

// What tells a filter from another of the same name, made here before or after it, or elsewhere.
const char* identity_of_filter(Oid relid);

// Is it the identity of a filter that was in this database, and was dropped?
bool was_dropped_here(const char* identity);

// What such an object says of the options that were given: is this one among them, with this value?
// nullptr: with any. Anything may stand in its place.
bool producer_gives(const char* producer, const char* option, const char* value);

// Of slices for another server's filter: do keys have other places, on other servers?
bool has_places_elsewhere(const FilterRelation* relation);

}  // namespace streamfilter::pg
