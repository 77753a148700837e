#include "pg/server/postgres.hpp"

#include "pg/handle/filter_keys.hpp"
#include "pg/handle/judge_key.hpp"
#include "pg/handle/node_keys.hpp"
#include "pg/handle/tree_keys.hpp"
#include "pg/remote/remote_keys.hpp"

namespace streamfilter::pg {

namespace {

bool test_and_insert(FilterHandle* filter, const Element& element) {
  return filter->tree != nullptr ? test_and_insert_in_tree(filter, element)
                                 : test_and_insert_node_key(filter, element);
}

// The memory of so many keys is on its way at once, some cache lines each: as many as a core can
// wait for.
constexpr int kFetchedAtOnce = 16;

void count_answers(FilterHandle* filter, const bool* has_key, int count, const bool* seen) {
  for (int i = 0; i < count; ++i)
    if (has_key[i]) count_answer(filter, seen[i]);
}

// Those that have a key, without gaps.
void test_and_insert_on_servers(FilterHandle* filter, const Element* elements, const bool* has_key,
                                int count, bool* seen) {
  auto* keys = static_cast<Element*>(palloc(sizeof(Element) * static_cast<Size>(Max(count, 1))));
  int asked = 0;
  for (int i = 0; i < count; ++i)
    if (has_key[i]) keys[asked++] = elements[i];
  if (asked > 0) test_and_insert_remote_keys(filter->remote, keys, asked, seen);
  pfree(keys);
  for (int i = count - 1; i >= 0; --i) seen[i] = has_key[i] && seen[--asked];
  count_answers(filter, has_key, count, seen);
}

// While some are judged, the memory of the next ones is on its way.
void test_and_insert_in_order(FilterHandle* filter, const Element* elements, const bool* has_key,
                              int count, bool* seen) {
  for (int i = 0; i < count; ++i) {
    if (i % kFetchedAtOnce == 0)
      prefetch_local_keys(filter, elements + i, has_key + i, Min(kFetchedAtOnce, count - i));
    seen[i] = has_key[i] && test_and_insert_fetched_key(filter, elements[i]);
  }
}

}  // namespace

void prefetch_keys(const FilterHandle* filter, const Element* elements, const bool* has_key,
                   int count) {
  if (filter->remote == nullptr) prefetch_local_keys(filter, elements, has_key, count);
}

bool test_and_insert_key(FilterHandle* filter, const Element& element) {
  if (filter->remote == nullptr) prefetch_local_key(filter, element);
  return test_and_insert_fetched_key(filter, element);
}

void remember_key(FilterHandle* filter, const Element& element) {
  test_and_insert(filter, element);
}

bool can_take_keys(const FilterHandle* filter) {
  return filter->remote == nullptr && filter->tree == nullptr;
}

bool take_key(FilterHandle* filter, const Element& element) {
  return reserve_local_key_at_once(filter, element);
}

void learn_key(FilterHandle* filter, const Element& element) {
  if (filter->remote != nullptr || filter->tree != nullptr) return remember_key(filter, element);
  if (!test_local_key(filter, element)) insert_local_key(filter, element);
}

bool test_and_insert_fetched_key(FilterHandle* filter, const Element& element) {
  const bool seen = test_and_insert(filter, element);
  count_answer(filter, seen);
  return seen;
}

void test_and_insert_keys(FilterHandle* filter, const Element* elements, const bool* has_key,
                          int count, bool* seen) {
  if (filter->remote != nullptr)
    return test_and_insert_on_servers(filter, elements, has_key, count, seen);
  if (has_remote_root(filter)) {
    test_and_insert_keys_in_tree(filter, elements, has_key, count, seen);
    return count_answers(filter, has_key, count, seen);
  }
  if (filter->tree != nullptr)
    return test_and_insert_in_order(filter, elements, has_key, count, seen);
  test_and_insert_local_keys(filter, elements, has_key, count, seen);
}

bool asks_servers(FilterHandle* filter) {
  return filter->remote != nullptr || has_remote_root(filter);
}

bool test_key(FilterHandle* filter, const Element& element) {
  const bool seen =
      filter->tree != nullptr ? test_in_tree(filter, element) : test_node_key(filter, element);
  count_tested(filter);
  return seen;
}

bool erase_key(FilterHandle* filter, const Element& element) {
  return filter->remote != nullptr ? erase_remote_key(filter->remote, element)
                                   : erase_local_key(filter, element);
}

void reset_filter(FilterHandle* filter) {
  filter->remote != nullptr ? reset_remote_filter(filter->remote) : reset_local_filter(filter);
}

void merge_into_filter(FilterHandle* filter, const Header* value, int64 slice) {
  require_local(filter, "streamfilter_merge");
  filter->tree != nullptr ? merge_into_tree(filter, value, slice)
                          : merge_into_node(filter, value, slice);
}

Header* copy_filter(FilterHandle* filter) {
  require_local(filter, "streamfilter_value");
  return copy_local_filter(filter);
}

Header* copy_filter_slice(FilterHandle* filter, uint32 slice) {
  require_local(filter, "streamfilter_export");
  return copy_local_slice(filter, slice);
}

}  // namespace streamfilter::pg
