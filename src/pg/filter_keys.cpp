#include "streamfilter/pg/pg.hpp"

#include "streamfilter/pg/filter_keys.hpp"
#include "streamfilter/pg/local_keys.hpp"
#include "streamfilter/pg/remote_keys.hpp"

namespace streamfilter::pg {

void prefetch_key(const NamedFilter* filter, const Element& element) {
  if (filter->remote == nullptr) prefetch_local_key(filter, element);
}

bool remember_key(NamedFilter* filter, const Element& element) {
  bool seen;
  if (filter->remote != nullptr)
    remember_remote_keys(filter, &element, 1, &seen);
  else
    seen = remember_local_key(filter, element);
  count_judged(filter, seen);
  return seen;
}

void remember_keys(NamedFilter* filter, const Element* elements, int count, bool* seen) {
  if (filter->remote == nullptr) {
    for (int i = 0; i < count; ++i) seen[i] = remember_key(filter, elements[i]);
    return;
  }
  if (count > 0) remember_remote_keys(filter, elements, count, seen);
  for (int i = 0; i < count; ++i) count_judged(filter, seen[i]);
}

bool test_key(NamedFilter* filter, const Element& element) {
  const bool seen = filter->remote != nullptr ? test_remote_key(filter, element)
                                              : test_local_key(filter, element);
  count_tested(filter);
  return seen;
}

bool erase_key(NamedFilter* filter, const Element& element) {
  return filter->remote != nullptr ? erase_remote_key(filter, element)
                                   : erase_local_key(filter, element);
}

void reset_filter(NamedFilter* filter) {
  filter->remote != nullptr ? reset_remote_filter(filter) : reset_local_filter(filter);
}

void merge_into_filter(NamedFilter* filter, const Header* value) {
  require_local(filter, "streamfilter_merge");
  merge_into_local_filter(filter, value);
}

Header* copy_filter(NamedFilter* filter) {
  require_local(filter, "streamfilter_value");
  return copy_local_filter(filter);
}

}  // namespace streamfilter::pg
