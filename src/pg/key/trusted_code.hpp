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

// Code that a filter's owner has chosen to run for each key (checks of a domain, a cast to a type,
// a hash function) runs as that owner, in a security-restricted operation, with only the filter's
// schema in search_path: so neither can the owner act as the role that adds a key, nor that role as
// the owner.
struct Caller {
  Oid user;
  int security;
  int guc_level;
};

// Switches to the owner of the filter. The abort of the (sub)transaction undoes that after an
// error.
Caller become_owner(Oid filter, Oid owner);
void return_to(const Caller& caller);

}  // namespace streamfilter::pg
