#include "pg/server/postgres.hpp"

#include "core/filter/definition.hpp"
#include "pg/handle/hierarchy_keys.hpp"
#include "pg/handle/node_keys.hpp"
#include "pg/remote/remote_filter.hpp"
#include "pg/server/problem_report.hpp"

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

  bool test(Node node) const { return test_node_key(node, element_); }
  void insert(Node node) const { insert_node_key(node, element_); }

  bool test_and_insert(Node root) const { return test_and_insert_node_key(root, element_); }

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

  // Keys are in all nodes before the root says that some have arrived, and before their transaction
  // leaves its table. So whoever cannot be waited for any more was seen on the way up, or has been
  // counted since.
  Reservation reserve(Node root) const {
    if (!reserve_node_key(root, element_)) return Reservation::seen;
    return applied(root) == applied_ ? Reservation::fresh : Reservation::changed;
  }

  // With conflict 'discard' a key that is found may be rolled back yet. What a root says while
  // slices of it cannot be reached is a guess.
  bool is_settled(Node root) const {
    if (root->remote != nullptr && !root->remote->answered_in_full) return false;
    return root->relation->options.conflict != Conflict::discard || test_node_key(root, element_);
  }

  void accessed(Node node) const { count_access(node); }
  void hit(Node node) const { count_hit(node); }

 private:
  static uint64 applied(Node root) { return pg_atomic_read_u64(&root->slot->applied); }

  // The key was hashed once, for the node where it came in.
  static void check_seed(Node node, Node parent) {
    if (likely(node->rule.seed == parent->rule.seed) || parent->relation->wrapped) return;
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
  ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
          errmsg("filter \"%s\" takes keys from its children only", filter->relation->name),
          errdetail("A filter below it has option top_down: what is found here is looked for in "
                    "the children, too."),
          errhint("Use one of the leaves of the tree, or drop option top_down."));
}

}  // namespace

bool test_and_insert_in_tree(FilterHandle* filter, const Element& element) {
  check_entry(filter);
  const RelationOptions& options = filter->relation->options;
  Access access(element, Use::insert_granted);
  if (options.top_down > 0) access.watch(filter);
  return TreeWalk<Access>(access, options.tree, options.top_down).test_and_insert(filter);
}

bool test_in_tree(FilterHandle* filter, const Element& element) {
  Access access(element, Use::test_granted);
  return TreeWalk<Access>(access, TreeKind::sparse, filter->relation->options.top_down)
      .test_from(filter);
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
  merge_into_node(filter, value, slice);
  for (FilterHandle* node = filter; !access.is_root(node);) {
    node = access.parent(node);
    merge_into_node(node, value, slice);
  }
}

}  // namespace streamfilter::pg
