// Kind clq gives the same answers and bytes without wide registers as with those of this processor.
#include <boost/test/unit_test.hpp>
#include <random>

#include "core/kind/cache_line_choice.hpp"
#include "core/kind/cache_line_queue_ops.hpp"
#include "unit/support/cache_lines.hpp"
#include "unit/support/filters.hpp"
#include "unit/support/streams.hpp"

using namespace streamfilter;
using namespace unit;

BOOST_AUTO_TEST_SUITE(clq_places)

namespace {

bool is_special(const Parameters& p) { return clq::has_window(p) || clq::has_importance(p); }

unsigned find_portably(const Parameters& p, ConstSlice slice, const Element& element) {
  return clq::has_choice(p) ? clq::find_in_either<false>(p, slice, element)
                            : clq::find<false>(p, slice, element);
}

bool test_portably(const Parameters& p, ConstSlice slice, const Element& element) {
  if (clq::has_choice(p)) return clq::is_in_either<false>(p, slice, element);
  return clq::is_alone(p) ? clq::find_any<false, true>(p, slice, element)
                          : clq::find_any<false, false>(p, slice, element);
}

bool insert_portably(const Parameters& p, Slice slice, const Element& element) {
  if (clq::has_choice(p)) return clq::enter_either<false>(p, slice, element);
  return is_special(p) || p.integer(clq::kPolicy) == clq::second
             ? clq::enter_specially<false>(p, slice, element)
         : clq::is_alone(p) ? clq::enter<false, true>(p, slice, element)
                            : clq::enter<false, false>(p, slice, element);
}

unsigned refresh_portably(const Parameters& p, Slice slice, const Element& element) {
  if (clq::has_choice(p)) return clq::promote_in_either<false>(p, slice, element);
  if (!is_special(p))
    return clq::is_alone(p) ? clq::promote_line<false, true>(p, slice, element)
                            : clq::promote_line<false, false>(p, slice, element);
  const unsigned at = clq::find<false>(p, as_const(slice), element);
  if (at != kNoRank) insert_portably(p, slice, element);
  return at;
}

void compare(const std::string& definition) {
  Filter native(definition), portable(definition);
  const Parameters& p = native.parameters();
  const FilterOps& ops = *find_ops(Kind::clq);
  std::mt19937_64 random(2);
  for (unsigned i = 0; i < scaled(10000); ++i) {
    Element element = key(random() % 3 == 0 ? random() % 100 : random() % 1000);
    element.importance = static_cast<double>(random() % 120) - 10;
    element.time = static_cast<std::int64_t>(i * 10000 + random() % 2000000);
    const std::uint32_t s = slice_of(p, element.hash);
    const Slice a = native.slice(s), b = portable.slice(s);
    BOOST_REQUIRE_EQUAL(ops.find_rank(p, as_const(a), element),
                        find_portably(p, as_const(b), element));
    if (!clq::has_window(p))
      BOOST_REQUIRE_EQUAL(ops.test(p, as_const(a), element),
                          test_portably(p, as_const(b), element));
    if (i % 2 == 0) {
      BOOST_REQUIRE_EQUAL(ops.insert(p, a, element), insert_portably(p, b, element));
    } else {
      unsigned position;
      const bool seen = ops.promote(p, a, element, position);
      const unsigned at = refresh_portably(p, b, element);
      BOOST_REQUIRE_EQUAL(seen, at != kNoRank);
      if (position != kNoRank) BOOST_REQUIRE_EQUAL(position, at);
    }
    BOOST_REQUIRE(native.bytes() == portable.bytes());
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(with_wide_registers_and_without) {
  if (!has_wide_registers()) BOOST_TEST_MESSAGE("this processor has no wide registers");
  std::vector<std::string> all = kCacheLines;
  all.push_back("clq(memory=2kB, bits=2, bucket=3)");  // takes every key for a repeat
  all.push_back("clq(memory=192, lines=2)");           // has one line
  for (const std::string& definition : all) BOOST_TEST_CONTEXT(definition) compare(definition);
}

BOOST_AUTO_TEST_SUITE_END()
