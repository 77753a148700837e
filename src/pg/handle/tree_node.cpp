#include "pg/server/postgres.hpp"

extern "C" {
#include "nodes/parsenodes.h"
}

#include "pg/handle/filter_handle.hpp"
#include "pg/handle/tree.hpp"

namespace streamfilter::pg {

TreeNode* make_tree_node(const FilterRelation* relation) {
  List* children = find_children(relation->relid);
  if (relation->options.parent == nullptr && children == NIL) return nullptr;
  auto* node = static_cast<TreeNode*>(palloc0(sizeof(TreeNode)));
  node->parent = OidIsValid(relation->parent) ? filter_handle(relation->parent) : nullptr;
  node->child_count = list_length(children);
  node->children = static_cast<FilterHandle**>(
      palloc(sizeof(FilterHandle*) * Max(static_cast<Size>(node->child_count), 1)));
  for (int i = 0; i < node->child_count; ++i)
    node->children[i] = filter_handle(list_nth_oid(children, i));
  ListCell* cell;
  foreach (cell, find_descendants(relation->relid))
    node->searched |=
        static_cast<int>(tree_options_of(lfirst_oid(cell)).top_down) > relation->level;
  return node;
}

void join_parent(FilterHandle* filter, FilterRelation* relation, Use use) {
  check_way_up(relation);
  TreeNode* node = filter->tree;
  FilterHandle* parent = node->parent;
  use_filter(parent, use == Use::test || use == Use::test_granted ? Use::test_granted
                                                                  : Use::insert_granted);
  if (node->checked != parent->version) {
    check_fit(ERROR, relation, parent->relation);
    check_rights_on_parent(ERROR, relation, parent->relation);
    node->checked = parent->version;
  }
  if (!relation->adopts_seed) return;
  relation->uncommitted |= parent->relation->uncommitted;
  adopt_seed(relation, parent->rule.seed);
}

}  // namespace streamfilter::pg
