// Types have code: casts, checks of domains, hash functions. Trusted code can only have been made
// by a superuser, so it matters little as whom it runs.
#pragma once

namespace streamfilter::pg {

// Is the function built in, or written in C?
bool is_trusted_function(Oid function);

// Is it a base type, or an array of one? Creators of other types may give them casts and checks.
bool is_trusted_type(Oid type);

}  // namespace streamfilter::pg
