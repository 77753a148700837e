// What the relations on the servers of a filter have to be: each has its share of the filter.
#pragma once

#include "pg/remote/filter_parts.hpp"

namespace streamfilter::pg {

// What a server says that it has; false: this version cannot read it.
bool read_found(const char* text, Parameters* result);

// The definition of the relation on one of the servers that held slices at first.
const char* definition_on(const RemoteFilter* remote, int server);

// The same of a relation that holds one slice by itself.
const char* definition_of_slice(const RemoteFilter* remote);

// The option k of the kind; nullptr: it has none.
const OptionSpec* find_k(const Parameters& parameters);

// Is a relation of so many slices, as its server describes it, what is asked for here? Only what
// was given counts: the rest may have been derived by another version, or for another size. Its
// memory may be a little less.
bool is_as_asked(const RemoteFilter* remote, uint32 slices, const char* found);

// Is it what version 1.0 has made on a server?
bool is_of_before(const RemoteFilter* remote, int server, const char* found);

// What a relation of so many slices is to become: only what is given here, so that the server can
// derive the rest in the way that keeps what it knows.
const char* request_for(const RemoteFilter* remote, uint32 slices);

}  // namespace streamfilter::pg
