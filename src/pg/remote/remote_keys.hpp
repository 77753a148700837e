// How keys meet a filter whose state is on other servers. Counts nothing but messages. Option
// lost_slice decides about unreachable slices. Raises the other servers' errors, such as 40P01, and
// 55P03 when another transaction there holds a key for too long.
#pragma once

#include "pg/remote/remote_filter.hpp"

namespace streamfilter::pg {

// Were the keys seen? Inserts them at commit.
void test_and_insert_remote_keys(RemoteFilter* remote, const Element* elements, int count,
                                 bool* seen);

// Was the key seen, by committed transactions or by this one?
bool test_remote_key(RemoteFilter* remote, const Element& element);

// Forgets a key at commit; false if it was not there.
bool erase_remote_key(RemoteFilter* remote, const Element& element);

// Takes back a key that was new. A server that is lost meanwhile has rolled it back.
void take_back_remote_key(RemoteFilter* remote, const Element& element);

// Empties the filter at commit. Raises 08006 if a server is unreachable.
void reset_remote_filter(RemoteFilter* remote);

// The state of a filter on one server as a value of this type; 08006 if the server is unreachable.
Datum fetch_remote_value(RemoteFilter* remote, Oid type);

}  // namespace streamfilter::pg
