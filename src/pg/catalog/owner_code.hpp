// What a filter's owner has chosen to run for each key (checks of a domain, a cast to a type, a
// hash function) runs as that owner, in a security-restricted operation, with no search_path but
// the filter's schema: neither can the owner act as the one who adds a key, nor the other way
// round.
#pragma once

namespace streamfilter::pg {

struct Caller {
  Oid user;
  int security;
  int guc_level;
};

// Becomes the owner of the filter. An error in between is undone when its (sub)transaction aborts.
Caller become_owner(Oid filter, Oid owner);
void return_to(const Caller& caller);

}  // namespace streamfilter::pg
