// Definitions of the relations on a filter's servers: each has its share of the filter.
#pragma once

#include "pg/remote/filter_parts.hpp"

namespace streamfilter::pg {

// Reads a definition that another server has sent: false, or an error, where this version cannot.
// Only the first completes it.
bool read_found(const char* text, Parameters* result);
Definition definition_in(const char* text);

// Definition of the relation on one of its servers.
const char* definition_on(const RemoteFilter* remote, int server);

// Option k of the kind; nullptr if it has none.
const OptionSpec* find_k(const Parameters& parameters);

// Does a relation of `slices` slices, as its server describes it, fit the local definition? Only
// given options count: another version may have derived the others, or for another size. Its memory
// may be a little less.
bool is_as_asked(const RemoteFilter* remote, uint32 slices, const char* found);

}  // namespace streamfilter::pg
