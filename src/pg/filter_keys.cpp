#include "streamfilter/pg/pg.hpp"

#include "streamfilter/pg/filter_keys.hpp"
#include "streamfilter/pg/local_keys.hpp"
#include "streamfilter/pg/tree_keys.hpp"

namespace streamfilter::pg {

void prefetch_keys(const NamedFilter* filter, const Element* elements, const bool* has_key,
                   int count) {
  prefetch_local_keys(filter, elements, has_key, count);
}

bool remember_key(NamedFilter* filter, const Element& element) {
  prefetch_local_key(filter, element);
  return remember_fetched_key(filter, element);
}

bool remember_fetched_key(NamedFilter* filter, const Element& element) {
  const bool seen = filter->tree != nullptr ? remember_in_tree(filter, element)
                                            : remember_node_key(filter, element);
  count_judged(filter, seen);
  return seen;
}

bool test_key(NamedFilter* filter, const Element& element) {
  const bool seen =
      filter->tree != nullptr ? test_in_tree(filter, element) : test_node_key(filter, element);
  count_tested(filter);
  return seen;
}

bool erase_key(NamedFilter* filter, const Element& element) {
  return erase_local_key(filter, element);
}

void reset_filter(NamedFilter* filter) { reset_local_filter(filter); }

void merge_into_filter(NamedFilter* filter, const Header* value, int64 slice) {
  filter->tree != nullptr ? merge_into_tree(filter, value, slice)
                          : merge_into_node(filter, value, slice);
}

Header* copy_filter(NamedFilter* filter) { return copy_local_filter(filter); }

Header* copy_filter_slice(NamedFilter* filter, uint32 slice) {
  return copy_local_slice(filter, slice);
}

bool remember_node_key(NamedFilter* filter, const Element& element) {
  return remember_local_key(filter, element);
}

bool claim_node_key(NamedFilter* filter, const Element& element) {
  return claim_local_key(filter, element);
}

void put_node_key(NamedFilter* filter, const Element& element) { put_local_key(filter, element); }

bool test_node_key(const NamedFilter* filter, const Element& element) {
  return test_local_key(filter, element);
}

void merge_into_node(NamedFilter* filter, const Header* value, int64 slice) {
  merge_into_local_filter(filter, value, slice);
}

}  // namespace streamfilter::pg
