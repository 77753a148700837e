// How a key meets one filter alone, as a node of a tree: here or on other servers, whatever its
// tree, and without counting the answer. All of these need use_filter first. What is said of
// reserve_local_key and insert_local_key (judge_key.hpp) holds for the likes of them here.
#pragma once

#include "pg/handle/filter_handle.hpp"

namespace streamfilter::pg {

bool test_and_insert_node_key(FilterHandle* filter, const Element& element);
bool reserve_node_key(FilterHandle* filter, const Element& element);
void insert_node_key(FilterHandle* filter, const Element& element);
bool test_node_key(const FilterHandle* filter, const Element& element);
void merge_into_node(FilterHandle* filter, const Header* value, int64 slice);

}  // namespace streamfilter::pg
