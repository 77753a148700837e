// Where the keys of a filter go: to the state here (judge_key.cpp), to that on other servers
// (remote_keys.cpp), or through a tree of filters (tree_keys.cpp). A handle knows it from its
// loading on, by two tables of functions.
#include "pg/server/postgres.hpp"

#include "pg/handle/filter_keys.hpp"
#include "pg/handle/judge_key.hpp"
#include "pg/handle/tree_keys.hpp"
#include "pg/remote/remote_keys.hpp"

namespace streamfilter::pg {

namespace {

void count_answers(FilterHandle* filter, const bool* has_key, int count, Outcome of_repeats,
                   const bool* seen) {
  int answers = 0, repeats = 0;
  for (int i = 0; i < count; ++i) {
    answers += has_key[i];
    repeats += has_key[i] && seen[i];
  }
  count_answers(filter, answers, repeats, of_repeats);
  count_rows(filter, RowCount::null_keys, count - answers);
}

// ---- on other servers --------------------------------------------------------------------------

Verdict judge_on_servers(FilterHandle* filter, const Element& element, Intent intent) {
  bool seen;
  switch (intent) {
    case Intent::test: seen = test_remote_key(filter->remote, element); break;
    case Intent::erase: seen = erase_remote_key(filter->remote, element); break;
    case Intent::take_back: take_back_remote_key(filter->remote, element); return Verdict::fresh;
    default: test_and_insert_remote_keys(filter->remote, &element, 1, &seen);
  }
  return seen ? Verdict::seen : Verdict::fresh;
}

// Those that have a key, without gaps.
void judge_all_on_servers(FilterHandle* filter, const Element* elements, const bool* has_key,
                          int count, Outcome of_repeats, bool* seen) {
  auto* keys = allocate<Element>(count);
  int asked = 0;
  for (int i = 0; i < count; ++i)
    if (has_key[i]) keys[asked++] = elements[i];
  if (asked > 0) test_and_insert_remote_keys(filter->remote, keys, asked, seen);
  pfree(keys);
  for (int i = count - 1; i >= 0; --i) seen[i] = has_key[i] && seen[--asked];
  count_answers(filter, has_key, count, of_repeats, seen);
}

void reset_on_servers(FilterHandle* filter) { reset_remote_filter(filter->remote); }

// ---- in a tree ---------------------------------------------------------------------------------

// The memory of so many keys is on its way at once, some cache lines each: as many as a core can
// wait for.
constexpr int kFetchedAtOnce = 16;

// While some are judged, the memory of the next ones is on its way.
void judge_in_order(FilterHandle* filter, const Element* elements, const bool* has_key, int count,
                    Outcome of_repeats, bool* seen) {
  for (int i = 0; i < count; ++i) {
    if (i % kFetchedAtOnce == 0)
      prefetch_keys(filter, elements + i, has_key + i, Min(kFetchedAtOnce, count - i));
    seen[i] = has_key[i] &&
              judge_key(filter, elements[i], Intent::insert_fetched, of_repeats) != Verdict::fresh;
    if (!has_key[i]) count_row(filter, RowCount::null_keys);
  }
}

void judge_all_in_tree(FilterHandle* filter, const Element* elements, const bool* has_key,
                       int count, Outcome of_repeats, bool* seen) {
  if (filter->remote != nullptr)
    return judge_all_on_servers(filter, elements, has_key, count, of_repeats, seen);
  if (!has_remote_root(filter))
    return judge_in_order(filter, elements, has_key, count, of_repeats, seen);
  judge_keys_in_tree(filter, elements, has_key, count, seen);
  count_answers(filter, has_key, count, of_repeats, seen);
}

constexpr NodeOperations kHere = {
    {judge_local_key, judge_local_keys}, prefetch_local_keys, reset_local_filter};
constexpr NodeOperations kOnServers = {{judge_on_servers, judge_all_on_servers},
                                       [](const FilterHandle*, const Element*, const bool*, int) {},
                                       reset_on_servers};
constexpr KeyOperations kInTree = {judge_in_tree, judge_all_in_tree};

}  // namespace

void choose_operations(FilterHandle* filter) {
  filter->node = filter->remote != nullptr ? &kOnServers : &kHere;
  filter->keys = filter->tree != nullptr ? &kInTree : &filter->node->keys;
}

bool can_take_keys(const FilterHandle* filter) { return filter->keys == &kHere.keys; }

bool asks_servers(FilterHandle* filter) {
  return filter->remote != nullptr || has_remote_root(filter);
}

void merge_into_filter(FilterHandle* filter, const Header* value, int64 slice) {
  require_local(filter, "streamfilter_merge");
  filter->tree != nullptr ? merge_into_tree(filter, value, slice)
                          : merge_into_local_filter(filter, value, slice);
}

Header* copy_filter(FilterHandle* filter) {
  require_local(filter, "streamfilter_value");
  return copy_local_filter(filter);
}

Header* copy_filter_slice(FilterHandle* filter, uint32 slice) {
  require_local(filter, "streamfilter_export");
  return copy_local_slice(filter, slice);
}

void save_at_commit(FilterHandle* filter) {
  Saving& saving = begin_changes(filter->slot, filter->header)->saving;
  if (saving.wanted_level == 0) saving.wanted_level = GetCurrentTransactionNestLevel();
}

}  // namespace streamfilter::pg
