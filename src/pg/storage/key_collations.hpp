// The collations of a filter's keys, as they are saved with its state: what is equal, and how it
// is hashed, can be another with another version of them.
#pragma once

namespace streamfilter::pg {

// A line for each key whose collation does not come with the server: column, collation, its OID,
// its version when it was created or refreshed, and the version of what is installed. palloc'ed.
const char* collations_of(Oid filter);

}  // namespace streamfilter::pg
