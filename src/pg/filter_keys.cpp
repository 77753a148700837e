#include "streamfilter/pg/pg.hpp"

#include "streamfilter/pg/filter_keys.hpp"
#include "streamfilter/pg/local_keys.hpp"

namespace streamfilter::pg {

void prefetch_keys(const NamedFilter* filter, const Element* elements, const bool* has_key,
                   int count) {
  prefetch_local_keys(filter, elements, has_key, count);
}

bool remember_key(NamedFilter* filter, const Element& element) {
  const bool seen = remember_local_key(filter, element);
  count_judged(filter, seen);
  return seen;
}

bool test_key(NamedFilter* filter, const Element& element) {
  const bool seen = test_local_key(filter, element);
  count_tested(filter);
  return seen;
}

bool erase_key(NamedFilter* filter, const Element& element) {
  return erase_local_key(filter, element);
}

void reset_filter(NamedFilter* filter) { reset_local_filter(filter); }

void merge_into_filter(NamedFilter* filter, const Header* value) {
  merge_into_local_filter(filter, value);
}

Header* copy_filter(NamedFilter* filter) { return copy_local_filter(filter); }

}  // namespace streamfilter::pg
