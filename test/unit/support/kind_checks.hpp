// Checks that tests of several kinds share: definitions, rates, merging, a plain version of a rule,
// and wrong bytes.
#pragma once

#include <boost/test/unit_test.hpp>
#include <cstring>
#include <initializer_list>
#include <random>
#include <string>
#include <vector>

#include "unit/support/filters.hpp"
#include "unit/support/rates.hpp"
#include "unit/support/statistics.hpp"
#include "unit/support/streams.hpp"

namespace unit {

// ---- definitions --------------------------------------------------------------------------------

// The parameters of a definition. They are the same when they are printed and read again, and
// complete; a filter of them is valid.
inline streamfilter::Parameters read_back(const std::string& text) {
  const streamfilter::Parameters p = parameters_of(text), again = parameters_of(text_of(p));
  BOOST_TEST(std::memcmp(&p, &again, sizeof p) == 0, text_of(p));
  streamfilter::Definition definition = definition_of(p);
  streamfilter::Problem problem;
  BOOST_TEST(complete(definition, problem), text_of(p) << ": " << problem.message);
  BOOST_TEST(std::memcmp(&p, &definition.parameters, sizeof p) == 0, text_of(p));
  BOOST_TEST(Filter(p).is_valid(), text_of(p));
  return p;
}

// Why a definition is refused, which has to be said.
inline streamfilter::Problem refusal(const std::string& text) {
  streamfilter::Parameters ignored{};
  streamfilter::Problem problem;
  BOOST_TEST(!make_parameters(text, ignored, problem), text);
  BOOST_TEST(problem.message[0] != '\0', text);
  return problem;
}

inline void check_refused(streamfilter::Error error,
                          std::initializer_list<const char*> definitions) {
  for (const char* text : definitions)
    BOOST_TEST(static_cast<int>(refusal(text).error) == static_cast<int>(error), text);
}

// ---- rates --------------------------------------------------------------------------------------

// A count of n trials is that of this probability, but for chance.
inline void check_rate(double count, double n, double p) {
  BOOST_TEST(count <= most(n, p));
  BOOST_TEST(count >= least(n, p));
}

// ---- a plain version of the rule ----------------------------------------------------------------

// A plain version for each slice, made from parameters, the state of the slice's generator, and
// `more`.
template <typename Plain>
class PlainSlices {
 public:
  template <typename... More>
  explicit PlainSlices(Filter& filter, const More&... more) : p_(filter.parameters()) {
    for (std::uint32_t s = 0; s < p_.slices; ++s)
      slices_.emplace_back(p_, filter.slice(s).state->random, more...);
  }

  bool insert(std::uint64_t hash) { return of(hash).insert(hash); }
  bool erase(std::uint64_t hash) { return of(hash).erase(hash); }
  bool test(std::uint64_t hash) { return of(hash).test(hash); }
  const Plain& operator[](std::uint32_t slice) const { return slices_[slice]; }

 private:
  Plain& of(std::uint64_t hash) { return slices_[streamfilter::slice_of(p_, hash)]; }

  streamfilter::Parameters p_;
  std::vector<Plain> slices_;
};

struct Compared {
  unsigned repeats = 0, erased = 0;
};

// A numbered key, as the number itself where keys are integers.
inline streamfilter::Element element_of(const streamfilter::Parameters& parameters,
                                        std::uint64_t number) {
  return parameters.key_shift == 0 ? key(number) : streamfilter::Element{number};
}

inline streamfilter::Element element_for(std::uint64_t number) { return key(number); }
inline streamfilter::Element element_for(const streamfilter::Element& element) { return element; }

// A filter and a plain version of its rule, which takes hashes, say the same of elements that
// draw() gives, or of keys that it gives the numbers of. One in eight is erased.
template <typename Plain, typename Draw>
Compared compare(Filter& filter, Plain& plain, unsigned rounds, bool erasing, Draw draw) {
  std::mt19937_64 random(1);
  Compared counts;
  for (unsigned i = 0; i < rounds; ++i) {
    const streamfilter::Element element = element_for(draw(random));
    if (erasing && random() % 8 == 0) {
      const bool was_there = plain.erase(element.hash);
      BOOST_REQUIRE_EQUAL(filter.test(element), was_there);
      BOOST_REQUIRE_EQUAL(erase(filter.header(), element), was_there);
      BOOST_REQUIRE(!filter.test(element));
      counts.erased += was_there;
    } else {
      const bool seen = plain.insert(element.hash);
      BOOST_REQUIRE_EQUAL(filter.test(element), seen);
      BOOST_REQUIRE_EQUAL(filter.insert(element), seen);
      BOOST_REQUIRE(filter.test(element));
      counts.repeats += seen;
    }
    if (i % 1000 == 0) BOOST_REQUIRE_MESSAGE(filter.is_valid(), i);
  }
  BOOST_TEST(filter.is_valid());
  return counts;
}

// ---- merging ------------------------------------------------------------------------------------

// Two filters have seen every other one of so many keys. Merged, they know what either did.
inline Filter merged_halves(const std::string& text, std::uint64_t keys,
                            streamfilter::Element (*numbered)(std::uint64_t) = key) {
  Filter a(text), b(text);
  for (std::uint64_t number = 0; number < keys; ++number)
    (number % 2 ? a : b).insert(numbered(number));
  std::vector<std::uint64_t> known;
  for (std::uint64_t number = 0; number < keys; ++number)
    if (a.test(key(number)) || b.test(key(number))) known.push_back(number);
  BOOST_REQUIRE(a.merge(b));
  for (const std::uint64_t number : known) BOOST_TEST_REQUIRE(a.test(key(number)), number);
  BOOST_TEST(a.is_valid());
  return a;
}

struct MergedFew {
  Filter both, same;  // the first with another, and with an equal one
};

// Merges filters that have seen keys 0 … 2n - 1 and n … 3n - 1, which have room in one. An equal
// filter adds nothing, and an empty one becomes the same; `same_bytes`: to the bit.
inline MergedFew merge_few(const std::string& text, std::uint64_t n, bool same_bytes) {
  Filter a = filled(text, 2 * n), b(text), empty(text), both = a, same = a;
  insert_keys(b, n, 3 * n);
  BOOST_TEST_REQUIRE(both.merge(b));
  BOOST_TEST_REQUIRE(same.merge(a));
  BOOST_TEST_REQUIRE(empty.merge(a));
  BOOST_TEST(count_known(both, 0, 3 * n) == static_cast<double>(3 * n), text);
  BOOST_TEST(both.is_valid(), text);
  for (Filter* one : {&same, &empty}) {
    BOOST_TEST(one->is_valid(), text);
    for (std::uint64_t i = 0; i < 3 * n; ++i)
      BOOST_TEST_REQUIRE(one->test(key(i)) == a.test(key(i)), text);
    for (std::uint32_t s = 0; same_bytes && s < a.parameters().slices; ++s)
      BOOST_TEST(std::memcmp(one->slice(s).body(), a.slice(s).body(), a.slice(s).bytes) == 0, text);
  }
  return {both, same};
}

// Counts that are doubled 70 times would wrap around.
inline void merge_with_itself_for_ever(const std::string& text) {
  Filter filter = filled(text, 500);
  for (unsigned i = 0; i < 70; ++i) BOOST_TEST(filter.merge(Filter(filter)));
  BOOST_TEST(totals(filter.header()).insertions > std::uint64_t{1} << 40);
  filter.insert(key(1000));
  BOOST_TEST(filter.is_valid());
}

// ---- wrong bytes --------------------------------------------------------------------------------

// A copy with another bit in the body of the first slice.
inline Filter with_bit(Filter filter, std::uint64_t bit) {
  filter.slice().body()[bit / 8] ^= static_cast<unsigned char>(1u << bit % 8);
  return filter;
}

// A copy whose first slice has this in one of the numbers of its kind.
inline Filter with_own(Filter filter, unsigned index, std::uint64_t value) {
  filter.slice().state->own[index] = value;
  return filter;
}

// Makes copies with one to four wrong bytes, behind the header or within other limits, and
// uses what check accepts of them: under a sanitizer, any stray access ends the test. Returns how
// many were refused.
template <typename Use>
std::uint64_t damage(const Filter& sound, std::uint64_t rounds, Use use,
                     std::size_t from = sizeof(streamfilter::Header), std::size_t end = 0) {
  BOOST_REQUIRE(sound.is_valid());
  std::mt19937_64 random(4);
  std::uint64_t refused = 0;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    Filter filter(sound);
    const std::size_t size = (end > 0 ? end : filter.bytes().size()) - from;
    for (std::uint64_t n = random() % 4 + 1; n > 0; --n) {
      unsigned char& byte = filter.bytes()[from + random() % size];
      byte = random() % 2 ? static_cast<unsigned char>(random())
                          : static_cast<unsigned char>(byte ^ 1u << random() % 8);
    }
    if (!filter.is_valid()) {
      ++refused;
      continue;
    }
    use(filter);
    BOOST_REQUIRE(filter.is_valid());
  }
  return refused;
}

// What such copies are used for where keys need no more than a number.
inline void insert_and_erase(Filter& filter) {
  for (std::uint64_t i = 0; i < 40; ++i) {
    const streamfilter::Element element = key(i * 7);
    if (i % 5 == 0)
      erase(filter.header(), element);
    else
      filter.insert(element);
    BOOST_REQUIRE(i % 5 == 0 || filter.test(element));
  }
}

}  // namespace unit
