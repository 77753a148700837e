// How a key meets a tree of filters (Koloniari et al. 2011 §6): Algorithm 1 (dense), Algorithm
// 2 (sparse) and the top-down testing heuristic. The walk knows nothing of filters but what
// `Access` tells it, so whatever decides by a tree decides alike.
//
// Two points differ from the paper's text, and no answer does. What Algorithm 1 sets on its way up
// is set once the answer is known: where that is another transaction's to give, nothing may stay in
// a lower node alone. And a match that top-down testing refutes does not end the walk: it goes on
// upwards, since the key may have come in by another branch.
#pragma once

#include <cstdint>

namespace streamfilter {

// sparse: a key is set along its path if the root finds it new, so every key lies below one leaf.
// dense: whatever node misses a key learns it, so that the next repeat there is found there.
enum class TreeKind : std::uint8_t { sparse, dense };
inline constexpr const char* kTreeWords[] = {"sparse", "dense", nullptr};

// The root is on level 0.
constexpr unsigned kMaxTreeLevels = 32;

// What the root's taking of a refuted match has come to.
enum class Reservation : std::uint8_t {
  fresh,    // the key is new
  seen,     // another one has added it meanwhile
  changed,  // the key was taken, but the tree has changed since the walk began
};

// Access:
//   Node                          a node; equality tells the same one
//   bool is_root(Node), Node parent(Node), unsigned level(Node)
//   bool any_child(Node, visit)   visits children until visit(child) is true; was it?
//   bool has_children(Node)
//   bool test(Node)               is the key there?
//   bool test_and_insert(Node root)   the same, and it is there now
//   Reservation reserve(Node root)    takes the key as new although test_and_insert has found it
//   bool is_settled(Node root)        is what test_and_insert has found there to stay?
//   void insert(Node)                 the key is there now
//   void accessed(Node), hit(Node)  for counting: a message to a node; a repeat found by it
//
// A node of level below `top_down` does not decide alone: one of its children, and so on down to
// that level, must have the key, too.
template <typename Access>
class TreeWalk {
 public:
  using Node = typename Access::Node;

  TreeWalk(Access& access, TreeKind kind, unsigned top_down) noexcept
      : access_(access), kind_(kind), top_down_(top_down) {}

  // Was the key seen anywhere in the tree? It is remembered now, having come in at `start`.
  bool test_and_insert(Node start) {
    Path path;
    return is_below_root(start, path) || take_answer(path, access_.test_and_insert(path.root));
  }

  // Two steps of a walk, for callers that ask the root for many keys at once. The nodes on the way
  // to the root, which have missed the key:
  struct Path {
    Node missed[kMaxTreeLevels];
    unsigned count;
    Node root;
    const Node* below() const { return count > 0 ? &missed[count - 1] : nullptr; }
  };

  // Does a node below the root have the key? Otherwise the root is to be asked.
  bool is_below_root(Node start, Path& path) {
    path.count = 0;
    Node node = start;
    for (; !access_.is_root(node); node = access_.parent(node)) {
      if (test(node) && is_confirmed(node, path.below())) {
        access_.hit(node);
        if (kind_ == TreeKind::dense) insert(path);
        return true;
      }
      path.missed[path.count++] = node;
    }
    path.root = node;
    return false;
  }

  // Takes the root's answer to test_and_insert. Returns true if any node has seen the key.
  bool take_answer(const Path& path, bool found) {
    access_.accessed(path.root);
    const bool seen = found && is_confirmed_by_root(path.root, path.below());
    if (seen) access_.hit(path.root);
    if (!found && kind_ == TreeKind::sparse) access_.accessed(path.root);
    if (!seen || (kind_ == TreeKind::dense && access_.is_settled(path.root))) insert(path);
    return seen;
  }

  // Was the key seen anywhere in the tree? Nothing is remembered.
  bool test_from(Node start) {
    Node below = start;
    for (Node node = start;; node = access_.parent(node)) {
      if (test(node) && is_confirmed(node, node == start ? nullptr : &below)) {
        access_.hit(node);
        return true;
      }
      if (access_.is_root(node)) return false;
      below = node;
    }
  }

 private:
  bool test(Node node) {
    access_.accessed(node);
    return access_.test(node);
  }

  // Algorithm 2 comes back to set what it has tested before.
  void insert(const Path& path) {
    for (unsigned i = path.count; i-- > 0;) {
      if (kind_ == TreeKind::sparse) access_.accessed(path.missed[i]);
      access_.insert(path.missed[i]);
    }
  }

  bool is_confirmed_by_root(Node root, const Node* below) {
    if (is_confirmed(root, below)) return true;
    switch (access_.reserve(root)) {
      case Reservation::fresh: return false;
      case Reservation::seen: return true;
      case Reservation::changed: break;
    }
    return is_confirmed(root, nullptr);  // what was missed below may be there by now
  }

  // `node` has the key; does a child, other than the one that has missed it?
  bool is_confirmed(Node node, const Node* missed) {
    if (access_.level(node) >= top_down_ || !access_.has_children(node)) return true;
    return access_.any_child(node, [&](Node child) {
      return !(missed != nullptr && child == *missed) && test(child) &&
             is_confirmed(child, nullptr);
    });
  }

  Access& access_;
  TreeKind kind_;
  unsigned top_down_;
};

}  // namespace streamfilter
