// Code that a filter's owner has chosen to run for each key (checks of a domain, a cast to a type,
// a hash function) runs as that owner, in a security-restricted operation, with only the filter's
// schema in search_path: so neither can the owner act as the role that adds a key, nor that role as
// the owner.
#pragma once

namespace streamfilter::pg {

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
