// Trees of filters in memory, walked by core/filter/tree_walk.hpp like those in the server.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/filter/filter.hpp"
#include "core/filter/tree_walk.hpp"

namespace bench {

// A complete tree: all inner nodes have the same number of children. Nodes are numbered level by
// level, the root is 0. A `Filter` is made from its definition and has a header().
template <typename Filter>
class Tree {
 public:
  using Node = unsigned;

  Tree(const std::string& definition, unsigned levels, unsigned fanout, streamfilter::TreeKind kind,
       unsigned top_down = 0)
      : fanout_(fanout), kind_(kind), top_down_(top_down), accesses_(levels), hits_(levels) {
    unsigned width = 1;
    for (unsigned level = 0; level < levels; ++level, width *= fanout)
      for (unsigned i = 0; i < width; ++i) {
        filters_.emplace_back(definition);
        level_.push_back(level);
        if (level + 1 == levels) leaves_.push_back(static_cast<Node>(filters_.size() - 1));
      }
  }

  unsigned leaves() const { return static_cast<unsigned>(leaves_.size()); }

  bool insert(unsigned leaf, const streamfilter::Element& element) {
    element_ = element;
    return walk().test_and_insert(leaves_[leaf]);
  }
  bool find(unsigned leaf, const streamfilter::Element& element) {
    element_ = element;
    return walk().test_from(leaves_[leaf]);
  }

  std::uint64_t accesses(unsigned level) const { return accesses_[level]; }
  std::uint64_t hits(unsigned level) const { return hits_[level]; }
  const Filter& filter(Node node) const { return filters_[node]; }
  std::size_t size() const { return filters_.size(); }

  // The functions that the walk calls.
  bool is_root(Node node) const { return node == 0; }
  Node parent(Node node) const { return (node - 1) / fanout_; }
  unsigned level(Node node) const { return level_[node]; }
  bool has_children(Node node) const { return node * fanout_ + 1 < filters_.size(); }
  template <typename Visit>
  bool any_child(Node node, Visit visit) {
    for (unsigned i = 1; i <= fanout_; ++i)
      if (visit(node * fanout_ + i)) return true;
    return false;
  }
  bool test(Node node) { return streamfilter::test(filters_[node].header(), element_); }
  void insert(Node node) { streamfilter::insert(filters_[node].header(), element_); }
  bool test_and_insert(Node root) {
    return streamfilter::insert(filters_[root].header(), element_);
  }
  streamfilter::Reservation reserve(Node) { return streamfilter::Reservation::fresh; }
  bool is_settled(Node) { return true; }
  void accessed(Node node) { ++accesses_[level_[node]]; }
  void hit(Node node) { ++hits_[level_[node]]; }

 private:
  streamfilter::TreeWalk<Tree> walk() { return {*this, kind_, top_down_}; }

  unsigned fanout_;
  streamfilter::TreeKind kind_;
  unsigned top_down_;
  std::vector<Filter> filters_;
  std::vector<unsigned> level_;
  std::vector<Node> leaves_;
  std::vector<std::uint64_t> accesses_, hits_;
  streamfilter::Element element_{};
};

}  // namespace bench
