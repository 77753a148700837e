// How keys meet a filter whose state is on other servers. All of these need use_filter first, and
// count nothing but messages. What cannot be reached is judged by option lost_slice. They raise
// what the other servers raise: 40P01, 55P03 when another transaction there holds a key for too
// long, and so on.
#pragma once

#include "pg/handle/filter_handle.hpp"

namespace streamfilter::pg {

// Were the keys seen? They are remembered, once the transaction commits.
void remember_remote_keys(NamedFilter* filter, const Element* elements, int count, bool* seen);

// Was the key seen, by committed transactions or by this one?
bool test_remote_key(const NamedFilter* filter, const Element& element);

// Forgets a key at commit; false if it was not there.
bool erase_remote_key(NamedFilter* filter, const Element& element);

// Forgets everything at commit. Raises 08006 if a server is lost.
void reset_remote_filter(NamedFilter* filter);

// The state of a filter on one server as a value of this type; 0A000 if it is on several, 08006 if
// its server is lost.
Datum fetch_remote_value(NamedFilter* filter, Oid type);

}  // namespace streamfilter::pg
