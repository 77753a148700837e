#include "pg/server/postgres.hpp"

#include "pg/handle/judge_key.hpp"
#include "pg/handle/node_keys.hpp"
#include "pg/remote/remote_keys.hpp"

namespace streamfilter::pg {

bool test_and_insert_node_key(FilterHandle* filter, const Element& element) {
  if (filter->remote == nullptr) return test_and_insert_local_key(filter, element);
  bool seen;
  test_and_insert_remote_keys(filter->remote, &element, 1, &seen);
  return seen;
}

bool reserve_node_key(FilterHandle* filter, const Element& element) {
  return reserve_local_key(filter, element);
}

void insert_node_key(FilterHandle* filter, const Element& element) {
  insert_local_key(filter, element);
}

bool test_node_key(const FilterHandle* filter, const Element& element) {
  return filter->remote != nullptr ? test_remote_key(filter->remote, element)
                                   : test_local_key(filter, element);
}

void merge_into_node(FilterHandle* filter, const Header* value, int64 slice) {
  merge_into_local_filter(filter, value, slice);
}

}  // namespace streamfilter::pg
