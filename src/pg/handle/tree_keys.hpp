// How a key meets a tree of filters, having come in at one of them
// (core/filter/tree_walk.hpp). All of these need use_filter for that one and raise what it
// raises for the other nodes; answers are not counted here, but accesses and hits of every node
// are.
#pragma once

#include "pg/handle/filter_handle.hpp"

namespace streamfilter::pg {

// Was the key seen anywhere in the tree? Unless it is only tested, it is inserted at commit; the
// root decides between transactions, by its option conflict. Raises 0A000 if filters below test
// top-down. Intent::erase concerns the filter alone.
Verdict judge_in_tree(FilterHandle* filter, const Element& element, Intent intent);

// Is the state of the root on other servers? Then it is worth while to ask for many keys at once,
// in their order; those without has_key are left out, and seen[i] is false.
bool has_remote_root(FilterHandle* filter);
void judge_keys_in_tree(FilterHandle* filter, const Element* elements, const bool* has_key,
                        int count, bool* seen);

// Adds a value, or one slice of it, to the filter and its ancestors. Raises 22023 if one of them
// has other parameters, 0A000 as above.
void merge_into_tree(FilterHandle* filter, const Header* value, int64 slice);

}  // namespace streamfilter::pg
