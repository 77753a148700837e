// Types have code: casts, checks of domains, hash functions. Trusted code can only have been made
// by a superuser, so it matters little as whom it runs.
#pragma once

namespace streamfilter::pg {

// Is the function built in, or written in C?
bool is_trusted_function(Oid function);

// Is it this extension's C function of this symbol, whatever its present name and schema? False if
// there is no such function.
bool is_own_function(Oid function, const char* symbol);

// Is it a base type, or an array of one? Creators of other types may give them casts and checks.
bool is_trusted_type(Oid type);

}  // namespace streamfilter::pg
