// Trees of filters: propositions 3 and 4 of Koloniari et al. 2011 event by event, top-down testing
// without false negatives, and the counters.
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <random>

#include "bench/papers/distributed/tree.hpp"
#include "unit/support/filters.hpp"
#include "unit/support/streams.hpp"

using namespace streamfilter;
using namespace unit;
namespace data = boost::unit_test::data;
using Tree = bench::Tree<unit::Filter>;
BOOST_TEST_DONT_PRINT_LOG_VALUE(streamfilter::TreeKind)

BOOST_AUTO_TEST_SUITE(tree_walk)

namespace {

// 10,000 keys in about 40,000 bits: false positives in plenty.
constexpr char kBloom[] = "bloom(memory=6kB, k=3, slices=1)";
constexpr std::uint64_t kUniverse = 10'000;
const std::uint64_t kEvents = scaled(60'000);

// Events with their leaves.
class Events {
 public:
  explicit Events(unsigned leaves, std::uint64_t seed = 1)
      : stream_(kUniverse, seed), random_(seed + 1), leaves_(leaves) {}

  Element next() {
    leaf_ = static_cast<unsigned>(scale(random_(), leaves_));
    return stream_.next();
  }
  unsigned leaf() const { return leaf_; }
  bool is_repeat() const { return stream_.is_repeat(); }

 private:
  UniformStream stream_;
  std::mt19937_64 random_;
  unsigned leaves_, leaf_ = 0;
};

// The bits, without the counters before them.
bool same_bits(const Filter& a, const Filter& b) {
  const ConstSlice left = slice_at(a.header(), 0), right = slice_at(b.header(), 0);
  return std::memcmp(left.state + 1, right.state + 1,
                     a.parameters().slice_bytes - sizeof(SliceState)) == 0;
}

const auto kKinds = data::make({TreeKind::sparse, TreeKind::dense});

}  // namespace

BOOST_DATA_TEST_CASE(a_tree_decides_event_by_event_as_one_filter, kKinds* data::make({2u, 3u, 5u}),
                     kind, levels) {
  Tree tree(kBloom, levels, 3, kind);
  Filter single(kBloom);
  Events events(tree.leaves());
  std::uint64_t positives = 0;
  for (std::uint64_t i = 0; i < kEvents; ++i) {
    const Element element = events.next();
    const bool found = tree.find(events.leaf(), element);
    const bool seen = tree.insert(events.leaf(), element);
    BOOST_TEST_REQUIRE(seen == single.insert(element));
    BOOST_TEST_REQUIRE(found == seen);
    positives += seen && !events.is_repeat();
  }
  BOOST_TEST(positives > scaled(100));  // enough false positives for a difference to show
  BOOST_TEST(same_bits(tree.filter(0), single));
}

BOOST_DATA_TEST_CASE(a_sparse_tree_of_timers_decides_as_one_filter, data::make({2u, 4u}), levels) {
  const std::string definition =
      "timer(memory=32kB, k=3, window='1000 seconds', tick='10 seconds', slices=1)";
  Tree tree(definition, levels, 2, TreeKind::sparse);
  Filter single(definition);
  Events events(tree.leaves());
  std::uint64_t repeats = 0, again = 0;
  for (std::uint64_t i = 0; i < scaled(30'000); ++i) {
    Element element = events.next();
    element.time = static_cast<std::int64_t>(i) * 100'000;
    const bool seen = tree.insert(events.leaf(), element);
    BOOST_TEST_REQUIRE(seen == single.insert(element));
    repeats += seen;
    again += !seen && events.is_repeat();
  }
  BOOST_TEST(repeats > scaled(1000));
  if (!kSanitized) BOOST_TEST(again > 1000u);  // keys had left the window
}

BOOST_DATA_TEST_CASE(top_down_testing_has_no_false_negatives_and_fewer_false_positives,
                     kKinds* data::make({2u, 4u, 6u}), kind, levels) {
  std::uint64_t before = 0;
  for (unsigned top_down = 0; top_down < levels; ++top_down) {
    Tree tree(kBloom, levels, 2, kind, top_down);
    Events events(tree.leaves());
    std::uint64_t positives = 0;
    for (std::uint64_t i = 0; i < kEvents; ++i) {
      const Element element = events.next();
      const bool seen = tree.insert(events.leaf(), element);
      BOOST_TEST_REQUIRE((seen || !events.is_repeat()), "event " << i << " was missed");
      BOOST_TEST_REQUIRE((i % 16 != 0 || tree.find(events.leaf(), element)));
      positives += seen && !events.is_repeat();
    }
    if (top_down == 1) BOOST_TEST(positives < before);
    if (top_down > 1) BOOST_TEST(positives <= before);
    before = positives;
  }
}

// Table 1: a sparse tree makes one more access to set bits.
BOOST_DATA_TEST_CASE(accesses_and_hits_add_up, kKinds, kind) {
  Tree tree(kBloom, 2, 4, kind);
  Events events(tree.leaves());
  std::uint64_t fresh = 0;
  for (std::uint64_t i = 0; i < kEvents; ++i) {
    const Element element = events.next();
    fresh += !tree.insert(events.leaf(), element);
  }
  const std::uint64_t set_again = kind == TreeKind::sparse ? fresh : 0;
  BOOST_TEST(tree.hits(0) + tree.hits(1) + fresh == kEvents);
  BOOST_TEST(tree.accesses(1) == kEvents + set_again);
  BOOST_TEST(tree.accesses(0) == kEvents - tree.hits(1) + set_again);
}

// A root and two leaves that give prescribed answers. The root takes every key for a repeat, and
// the first leaf learns the key from another session while the root is asked.
struct Raced {
  using Node = unsigned;

  Reservation reservation;
  bool arrived = false;
  unsigned puts = 0;

  bool is_root(Node node) const { return node == 0; }
  Node parent(Node) const { return 0; }
  unsigned level(Node node) const { return node == 0 ? 0 : 1; }
  bool has_children(Node node) const { return node == 0; }
  template <typename Visit>
  bool any_child(Node, Visit visit) {
    return visit(1) || visit(2);
  }
  bool test(Node node) const { return node == 0 || (node == 1 && arrived); }
  bool test_and_insert(Node) const { return true; }
  Reservation reserve(Node) {
    arrived = true;
    return reservation;
  }
  bool is_settled(Node) const { return true; }
  void insert(Node) { ++puts; }
  void accessed(Node) {}
  void hit(Node) {}
};

BOOST_AUTO_TEST_CASE(a_key_that_arrives_during_the_walk_is_looked_for_again_in_its_own_leaf_too) {
  for (const unsigned leaf : {1u, 2u})
    for (const Reservation reservation :
         {Reservation::fresh, Reservation::seen, Reservation::changed}) {
      Raced tree{reservation};
      const bool seen = TreeWalk<Raced>(tree, TreeKind::sparse, 1).test_and_insert(leaf);
      BOOST_TEST(seen == (reservation != Reservation::fresh));
      BOOST_TEST(tree.puts == (seen ? 0u : 1u));
    }
}

BOOST_AUTO_TEST_CASE(a_dense_tree_finds_more_repeats_at_its_leaves) {
  Tree sparse(kBloom, 2, 4, TreeKind::sparse), dense(kBloom, 2, 4, TreeKind::dense);
  Events events(sparse.leaves());
  for (std::uint64_t i = 0; i < kEvents; ++i) {
    const Element element = events.next();
    sparse.insert(events.leaf(), element);
    dense.insert(events.leaf(), element);
  }
  BOOST_TEST(dense.hits(1) > sparse.hits(1));
  BOOST_TEST(dense.accesses(0) < sparse.accesses(0));
  BOOST_TEST(same_bits(sparse.filter(0), dense.filter(0)));
}

BOOST_AUTO_TEST_SUITE_END()
