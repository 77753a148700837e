// Packed cells against a plain vector of numbers.
#include "core/bits/packed_words.hpp"

#include <boost/mpl/list.hpp>
#include <boost/test/unit_test.hpp>
#include <random>
#include <vector>

#include "unit/support/streams.hpp"

using namespace streamfilter;

BOOST_AUTO_TEST_SUITE(packed_cells)

namespace {

using Widths = boost::mpl::list<CellWidth<1>, CellWidth<2>, CellWidth<3>, CellWidth<4>>;

// The cells, and a vector with the same numbers.
template <unsigned bits>
class Twin {
 public:
  explicit Twin(std::uint64_t bytes)
      : body_(bytes), cells_(body_.data()), plain_(Cells::capacity(bytes)) {}

  std::uint64_t size() const { return plain_.size(); }

  void set(std::uint64_t i, unsigned value) {
    cells_.set(i, value);
    plain_[i] = static_cast<int>(value);
  }

  // Takes 1 from a run. True if both report as many emptied cells.
  bool decrement(std::uint64_t first, std::uint64_t count) {
    std::uint64_t emptied = 0;
    for (std::uint64_t i = first; i < first + count; ++i) {
      if (plain_[i] == 0) continue;
      --plain_[i];
      emptied += plain_[i] == 0;
    }
    return cells_.decrement(first, count) == emptied;
  }

  bool equal() const {
    const PackedCells<bits, const unsigned char> read(body_.data());
    for (std::uint64_t i = 0; i < plain_.size(); ++i)
      if (static_cast<int>(read.get(i)) != plain_[i]) return false;
    return true;
  }

 private:
  using Cells = PackedCells<bits>;
  std::vector<unsigned char> body_;  // exactly as large as capacity requires
  Cells cells_;
  std::vector<int> plain_;
};

}  // namespace

BOOST_AUTO_TEST_CASE_TEMPLATE(capacity_uses_the_bytes, Width, Widths) {
  constexpr unsigned bits = Width::value;
  for (std::uint64_t bytes = 8; bytes <= 512; bytes += 8) {
    const std::uint64_t cells = PackedCells<bits>::capacity(bytes);
    BOOST_TEST(cells * bits <= bytes * 8);
    // Packing wastes less than one cell, and for cells of 3 bits up to one byte more.
    BOOST_TEST((cells + 1) * bits > bytes * 8 - (bits == 3 ? 8 : 0));
  }
}

// Under AddressSanitizer this fails if an access leaves the body.
BOOST_AUTO_TEST_CASE_TEMPLATE(the_first_and_the_last_cell_lie_in_the_body, Width, Widths) {
  for (const std::uint64_t bytes : {8, 64, 72, 1024}) {
    Twin<Width::value> twin(bytes);
    twin.set(0, 1);
    twin.set(twin.size() - 1, PackedCells<Width::value>::kLargest);
    BOOST_TEST(twin.equal());
    BOOST_TEST(twin.decrement(0, twin.size()));
    BOOST_TEST(twin.decrement(twin.size() - 1, 1));
    BOOST_TEST(twin.equal());
  }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(setting_a_cell_leaves_its_neighbours, Width, Widths) {
  constexpr unsigned largest = PackedCells<Width::value>::kLargest;
  Twin<Width::value> twin(64);
  for (std::uint64_t i = 0; i < twin.size(); ++i) twin.set(i, largest);
  for (std::uint64_t i = 0; i < twin.size(); ++i) {
    twin.set(i, 0);
    BOOST_REQUIRE(twin.equal());
    twin.set(i, largest);
    BOOST_REQUIRE(twin.equal());
  }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(every_run_is_decremented_exactly, Width, Widths) {
  constexpr unsigned largest = PackedCells<Width::value>::kLargest;
  Twin<Width::value> twin(32);
  std::mt19937 random(Width::value);
  for (std::uint64_t first = 0; first < twin.size(); ++first)
    for (std::uint64_t count = 0; first + count <= twin.size(); ++count) {
      for (unsigned fresh = 0; fresh < 8; ++fresh)
        twin.set(random() % twin.size(), random() % (largest + 1));
      BOOST_REQUIRE_MESSAGE(twin.decrement(first, count), "run " << first << " + " << count);
      BOOST_REQUIRE_MESSAGE(twin.equal(), "run " << first << " + " << count);
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(cells_behave_like_a_plain_vector, Width, Widths) {
  constexpr unsigned largest = PackedCells<Width::value>::kLargest;
  Twin<Width::value> twin(8 * 37);
  std::mt19937 random(100 + Width::value);
  for (std::uint64_t round = 0; round < unit::scaled(20000); ++round) {
    twin.set(random() % twin.size(), random() % (largest + 1));
    twin.set(random() % twin.size(), largest);
    const std::uint64_t first = random() % twin.size();
    // Mostly short runs, some over many words, some over all cells.
    std::uint64_t count = random() % 12;
    if (round % 7 == 0) count = random() % twin.size();
    const bool all = round % 997 == 0;
    BOOST_REQUIRE(all ? twin.decrement(0, twin.size())
                      : twin.decrement(first, std::min(count, twin.size() - first)));
    BOOST_REQUIRE(twin.equal());
  }
}

// The layout is a part of the stored format: lowest bits first, without gaps.
BOOST_AUTO_TEST_CASE(the_layout_is_fixed) {
  unsigned char body[8] = {};
  const PackedCells<3> cells(body);
  for (unsigned i = 0; i < 6; ++i) cells.set(i, i + 1);
  BOOST_TEST(body[0] == 0xd1);  // 01|010|001
  BOOST_TEST(body[1] == 0x58);  // 0|101|100|0
  BOOST_TEST(body[2] == 0x03);  // 11
}

BOOST_AUTO_TEST_SUITE_END()
