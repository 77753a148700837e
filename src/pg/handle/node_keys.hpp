// How a key meets one filter alone, as a node of a tree: here or on other servers, whatever its
// tree, and without counting the answer. All of these need use_filter first. What is said of
// claim_local_key and put_local_key (local_filter.hpp) holds for the likes of them here.
#pragma once

#include "pg/handle/filter_handle.hpp"

namespace streamfilter::pg {

bool remember_node_key(FilterHandle* filter, const Element& element);
bool claim_node_key(FilterHandle* filter, const Element& element);
void put_node_key(FilterHandle* filter, const Element& element);
bool test_node_key(const FilterHandle* filter, const Element& element);
void merge_into_node(FilterHandle* filter, const Header* value, int64 slice);

}  // namespace streamfilter::pg
