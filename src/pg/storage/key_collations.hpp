// Collations of a filter's keys, saved with its state: with another version of a collation, other
// keys may be equal or be hashed differently.
#pragma once

namespace streamfilter::pg {

// A line for each key column whose collation does not come with the server: column, collation, OID,
// version at its creation or refresh, and installed version. palloc'ed.
const char* collations_of(Oid filter);

}  // namespace streamfilter::pg
