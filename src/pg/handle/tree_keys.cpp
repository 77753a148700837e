// A key comes in at one filter of a tree and walks up (core/filter/tree_walk.hpp). Every node is a
// filter with its own slot and changes; one hash, so one seed, serves the whole walk.
//
// - Nodes below the root are asked what is committed, or this transaction's own. A new key is
//   reserved at the root alone, whatever branch it came in by: there two transactions that add it
//   meet, by the root's option conflict.
// - A commit brings the keys into all nodes, then counts that in each (`applied`), and only then
//   takes them out of the table of keys in flight (transaction_changes.cpp). Who no longer meets
//   the key at the root finds it in all nodes of its way. Top-down tests, which look below after
//   the root was asked, compare that count (Access::reserve).
#include "pg/server/postgres.hpp"

#include "pg/handle/judge_key.hpp"
#include "pg/handle/key_builder.hpp"
#include "pg/handle/key_reservation.hpp"
#include "pg/handle/tree_keys.hpp"
#include "pg/remote/remote_keys.hpp"

namespace streamfilter::pg {
namespace {

// One walk of one key. Whatever may raise may jump out of it.
class Access {
 public:
  using Node = FilterHandle*;

  // `use` of all nodes on the way up.
  Access(const Element& element, Use use) : element_(element), use_(use) {}

  bool is_root(Node node) const { return node->relation->options.parent == nullptr; }

  Node parent(Node node) const {
    FilterHandle* parent = node->tree->parent;
    use_filter(parent, use_);
    check_seed(node, parent);
    return parent;
  }

  unsigned level(Node node) const { return static_cast<unsigned>(node->relation->level); }
  bool has_children(Node node) const { return node->tree->child_count > 0; }

  template <typename Visit>
  bool any_child(Node node, Visit visit) const {
    const TreeNode* tree = node->tree;  // as it is now; to use a child may bring news of others
    for (int i = 0; i < tree->child_count; ++i) {
      use_filter(tree->children[i], Use::test_granted);
      check_seed(tree->children[i], node);
      if (visit(tree->children[i])) return true;
    }
    return false;
  }

  // Of a row that is judged, a node that holds too much has nothing to say, and one for which the
  // event is late.
  bool test(Node node) const {
    return has(node) &&
           !(use_ == Use::insert_granted && node->remote == nullptr &&
             (lets_pass(node, element_) || comes_late(node, changes_of(node), element_)));
  }
  void insert(Node node) const { judge_local_key(node, element_, Intent::put); }

  bool test_and_insert(Node root) const {
    return root->node->keys.judge(root, element_, Intent::insert) != Verdict::fresh;
  }

  // To be called before the first look at a node: keys that arrive from now on are noticed.
  void watch(Node start) {
    Node root = start;
    while (!is_root(root)) root = parent(root);
    if (root->remote != nullptr)
      ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
              errmsg("filter \"%s\" cannot be tested top-down", root->relation->name),
              errdetail("Its state is on other servers."),
              errhint("Drop option top_down of filter \"%s\".", start->relation->name));
    applied_ = applied(root);
  }

  // A transaction that can no longer be waited for was seen on the way up, or has been counted
  // since.
  Reservation reserve(Node root) const {
    if (judge_local_key(root, element_, Intent::reserve) != Verdict::fresh)
      return Reservation::seen;
    return applied(root) == applied_ ? Reservation::fresh : Reservation::changed;
  }

  // With conflict 'discard' a key that is found may be rolled back yet. What a root says while
  // slices of it cannot be reached is a guess.
  bool is_settled(Node root) const {
    if (root->remote != nullptr && !root->remote->answered_in_full) return false;
    return root->relation->options.conflict != Conflict::discard || has(root);
  }

  void accessed(Node node) const { count_row(node, RowCount::accesses); }
  void hit(Node node) const { count_row(node, RowCount::hits); }

 private:
  bool has(Node node) const {
    return node->node->keys.judge(node, element_, Intent::test) != Verdict::fresh;
  }

  static uint64 applied(Node root) { return pg_atomic_read_u64(&root->slot->applied); }

  // The key was hashed once, for the node where it came in.
  static void check_seed(Node node, Node parent) {
    if (likely(node->rule.seed == parent->rule.seed)) return;
    ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
            errmsg("filter \"%s\" has another seed than its parent \"%s\"", node->relation->name,
                   parent->relation->name),
            errdetail("The tree has changed while it was used."), errhint("Repeat the statement."));
  }

  Element element_;
  Use use_;
  uint64 applied_ = 0;
};

// A key that comes in further up is in no node below, so top-down tests would take it for new.
void check_entry(const FilterHandle* filter) {
  if (likely(!filter->tree->searched)) return;
  ereport(
      ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
      errmsg("filter \"%s\" takes keys from its children only", filter->relation->name),
      errdetail(
          "A filter below it has option top_down, and looks for each match in the children, too."),
      errhint("Use one of the leaves of the tree, or drop option top_down."));
}

FilterHandle* root_of(FilterHandle* filter) {
  const Access access(Element{}, Use::insert_granted);
  while (!access.is_root(filter)) filter = access.parent(filter);
  return filter;
}

// A node that has not added the key has none to take back.
void take_back_in_tree(FilterHandle* filter, const Element& element) {
  const Access access(element, Use::insert_granted);
  for (FilterHandle* node = filter;; node = access.parent(node)) {
    node->node->keys.judge(node, element, Intent::take_back);
    if (access.is_root(node)) return;
  }
}

// Keys that no node below the root has: it is asked for all of them at once. Of two that are equal
// the second finds what the first one leaves, so they are not asked for together.
class Questions {
 public:
  using Walk = TreeWalk<Access>;

  // `most` of them. In the current memory context.
  Questions(FilterHandle* filter, int most) : filter_(filter) {
    const auto size = static_cast<Size>(Max(most, 1));
    elements_ = allocate<Element>(size);
    places_ = allocate<int>(size);
    answers_ = allocate<bool>(size);
    paths_ = allocate<Walk::Path>(size);
    table_size_ = pg_nextpower2_32(static_cast<uint32>(2 * size));
    table_ = allocate_zeros<int>(table_size_);
  }

  bool has(const Element& element) const { return table_[find(element.hash)] != 0; }

  // True: it is known already that the key was seen.
  bool add(const Element& element, int place) {
    Access access(element, Use::insert_granted);
    if (walk(access).is_below_root(filter_, paths_[count_])) return true;
    elements_[count_] = element;
    places_[count_] = place;
    table_[find(element.hash)] = ++count_;
    return false;
  }

  // The answers, at the places of the keys.
  void ask(bool* seen) {
    if (count_ == 0) return;
    test_and_insert_remote_keys(paths_[0].root->remote, elements_, count_, answers_);
    for (int i = 0; i < count_; ++i) {
      Access access(elements_[i], Use::insert_granted);
      seen[places_[i]] = walk(access).take_answer(paths_[i], answers_[i]);
    }
    count_ = 0;
    memset(table_, 0, sizeof(int) * table_size_);
  }

 private:
  Walk walk(Access& access) const { return Walk(access, filter_->relation->options.tree, 0); }

  // Where the key is, or would be.
  uint32 find(uint64 hash) const {
    auto i = static_cast<uint32>(hash) & (table_size_ - 1);
    while (table_[i] != 0 && elements_[table_[i] - 1].hash != hash) i = (i + 1) & (table_size_ - 1);
    return i;
  }

  FilterHandle* filter_;
  int count_ = 0;
  Element* elements_;
  int* places_;
  bool* answers_;
  Walk::Path* paths_;
  uint32 table_size_;
  int* table_;  // of keys, by hash: the number of a question, from 1
};

}  // namespace

Verdict judge_in_tree(FilterHandle* filter, const Element& element, Intent intent) {
  if (intent == Intent::erase) return filter->node->keys.judge(filter, element, intent);
  if (intent == Intent::take_back) {
    take_back_in_tree(filter, element);
    return Verdict::fresh;
  }
  const RelationOptions& options = filter->relation->options;
  bool seen;
  if (intent == Intent::test) {
    Access access(element, Use::test_granted);
    seen = TreeWalk<Access>(access, TreeKind::sparse, options.top_down).test_from(filter);
  } else {
    check_entry(filter);
    Access access(element, Use::insert_granted);
    if (options.top_down > 0) access.watch(filter);
    seen = TreeWalk<Access>(access, options.tree, options.top_down).test_and_insert(filter);
  }
  return seen ? Verdict::seen : Verdict::fresh;
}

bool has_remote_root(FilterHandle* filter) {
  if (filter->tree == nullptr || filter->relation->options.top_down > 0) return false;
  return root_of(filter)->remote != nullptr;
}

void judge_keys_in_tree(FilterHandle* filter, const Element* elements, const bool* has_key,
                        int count, bool* seen) {
  check_entry(filter);
  MemoryContext memory = make_small_context("streamfilter keys");
  MemoryContext caller = MemoryContextSwitchTo(memory);
  Questions questions(filter, count);
  for (int i = 0; i < count; ++i) {
    seen[i] = false;
    if (!has_key[i]) continue;
    if (questions.has(elements[i])) questions.ask(seen);
    seen[i] = questions.add(elements[i], i);
  }
  questions.ask(seen);
  MemoryContextSwitchTo(caller);
  MemoryContextDelete(memory);
}

void merge_into_tree(FilterHandle* filter, const Header* value, int64 slice) {
  check_entry(filter);
  const Access access(Element{}, Use::insert_granted);
  for (FilterHandle* node = filter; !access.is_root(node);) {
    node = access.parent(node);
    require_local(node, "streamfilter_merge");
    Problem problem;
    if (!mergeable(node->header->parameters, value->parameters, problem)) raise(problem);
  }
  merge_into_local_filter(filter, value, slice);
  for (FilterHandle* node = filter; !access.is_root(node);) {
    node = access.parent(node);
    merge_into_local_filter(node, value, slice);
  }
}

}  // namespace streamfilter::pg
