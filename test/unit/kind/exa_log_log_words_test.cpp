// Words, and the compact form: a growing set of keys becomes exactly the filter that had all its
// memory from the start, whatever forms it went through. Seeds are fixed.
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <random>
#include <vector>

#include "core/filter/compact_form.hpp"
#include "core/filter/value_form.hpp"
#include "core/kind/exa_log_log.hpp"
#include "unit/support/filters.hpp"

using namespace streamfilter;
using namespace unit;

BOOST_AUTO_TEST_SUITE(exa_log_log_words)

namespace {

using exa_log_log::WordTable;

std::vector<std::uint64_t> insertions_of(const Filter& filter) {
  std::vector<std::uint64_t> insertions(filter.parameters().slices);
  list_insertions(filter.header(), insertions.data());
  return insertions;
}

std::vector<Word> words_of(const Filter& filter, bool& possible) {
  std::uint32_t count = 0;
  possible = count_words(filter.header(), count);
  std::vector<Word> words(count);
  if (possible) list_words(filter.header(), words.data());
  return words;
}

std::vector<unsigned char> compact_of(const Parameters& p, const std::vector<Word>& words,
                                      const std::uint64_t* insertions) {
  const auto count = static_cast<std::uint32_t>(words.size());
  std::vector<unsigned char> bytes(write_compact(p, words.data(), count, insertions, nullptr, 0));
  write_compact(p, words.data(), count, insertions, bytes.data(), bytes.size());
  return bytes;
}

bool open(CompactReader& reader, const std::vector<unsigned char>& bytes, Problem& problem) {
  const std::size_t host = std::min(kHostWord, bytes.size());
  return reader.open(bytes.data() + host, bytes.size() - host, problem);
}

void settle(Filter& filter) {
  for (std::uint32_t i = 0; i < filter.parameters().slices; ++i) settle_slice(filter.header(), i);
}

std::string dumped(const Filter& filter) {
  char start[kMaxTextStart];
  const std::size_t length = write_text_start(filter.header(), true, start, sizeof start);
  std::string text(start, length);
  text.resize(length + BodyText(filter.parameters()).length());
  BodyWriter writer(filter.header(), text.data() + length);
  while (writer.step()) continue;
  return text;
}

// A set of words with the insertions of each slice, and a filter of the same keys.
struct Growing {
  explicit Growing(const char* text)
      : filter(text), insertions(filter.parameters().slices), words(16) {}

  void insert(std::uint64_t hash) {
    const Word word = exa_log_log::word_of(filter.parameters(), hash);
    ++insertions[exa_log_log::slice_of_word(filter.parameters(), word)];
    add(word);
    filter.insert({hash});
  }
  void add(Word word) {
    if (!WordTable{words.data(), bits}.has_room(count)) grow();
    count += !WordTable{words.data(), bits}.add(word);
  }
  void grow() {
    const std::vector<Word> before = words;
    words.assign(std::size_t{1} << ++bits, 0);
    for (const Word word : before)
      if (word != 0) WordTable{words.data(), bits}.add(word);
  }
  void merge(const Growing& other) {
    merge(other, [&](Problem& problem) {
      return streamfilter::merge(filter.header(), other.filter.header(), problem);
    });
  }
  template <typename MergeFilter>
  void merge(const Growing& other, MergeFilter merge_filter) {
    const std::vector<Word> its = other.words;  // `other` may be this set
    for (const Word word : its)
      if (word != 0) add(word);
    for (std::size_t i = 0; i < insertions.size(); ++i) insertions[i] += other.insertions[i];
    Problem problem;
    BOOST_REQUIRE_MESSAGE(merge_filter(problem), problem.message);
  }
  std::vector<Word> sorted() const {
    std::vector<Word> list;
    for (const Word word : words)
      if (word != 0) list.push_back(word);
    sort_words(list.data(), static_cast<std::uint32_t>(list.size()));
    return list;
  }
  // Words stand for tokens.
  bool has_compact() const {
    return exa_log_log::have_room(filter.parameters(), sorted().data(), count);
  }
  // Through the compact form and back.
  void travel() {
    if (!has_compact()) return;
    const auto bytes = compact_of(filter.parameters(), sorted(), insertions.data());
    CompactReader reader;
    Problem problem;
    BOOST_REQUIRE(open(reader, bytes, problem));
    BOOST_REQUIRE(std::memcmp(&reader.parameters(), &filter.parameters(), sizeof(Parameters)) == 0);
    words.assign(16, 0);
    count = 0;
    bits = 4;
    std::fill(insertions.begin(), insertions.end(), 0);
    for (Word word; reader.next(word);) {
      add(word);
      ++insertions[exa_log_log::slice_of_word(filter.parameters(), word)];
    }
    BOOST_REQUIRE_MESSAGE(reader.finish(problem), problem.message);
    for (std::uint32_t i = 0; i < insertions.size(); ++i) insertions[i] += reader.repeats(i);
  }

  // The filter through its text and back.
  void dump() {
    const std::string text = dumped(filter);
    TextStart start;
    Problem problem;
    BOOST_REQUIRE(read_text_start(text.data(), text.size(), Reading::restored, start, problem));
    Filter again(start.definition.parameters);
    BodyReader reader(again.header(), start.body);
    while (reader.step()) continue;
    BOOST_REQUIRE_MESSAGE(reader.finish(problem), problem.message);
    BOOST_REQUIRE(again.bytes() == filter.bytes());
    filter = again;
  }
  // Works as merge(), with the other set in its compact form.
  void merge_compact(const Growing& other) {
    if (!other.has_compact()) return;
    const auto bytes = compact_of(filter.parameters(), other.sorted(), other.insertions.data());
    merge(other, [&](Problem& problem) {
      CompactReader reader;
      const bool merged = open(reader, bytes, problem) &&
                          streamfilter::merge_compact(reader, filter.header(), problem);
      settle(filter);
      return merged;
    });
  }

  Filter filter;
  std::vector<std::uint64_t> insertions;
  std::vector<Word> words;
  unsigned bits = 4;
  std::uint32_t count = 0;
};

bool has_tokens(const Filter& filter) {
  for (std::uint32_t i = 0; i < filter.parameters().slices; ++i)
    if (!exa_log_log::is_of_tokens(slice_at(filter.header(), i))) return false;
  return true;
}

// Goes through the compact form, or through registers, for which there are no words.
Filter finished(const Growing& growing) {
  Filter made = growing.filter;
  format(made.header(), growing.filter.parameters());
  const std::vector<Word> words = growing.sorted();
  if (growing.has_compact()) {
    const auto bytes = compact_of(made.parameters(), words, growing.insertions.data());
    CompactReader reader;
    Problem problem;
    BOOST_REQUIRE(open(reader, bytes, problem));
    BOOST_REQUIRE(read_compact(reader, made.header(), problem));
  } else {
    exa_log_log::add_words(made.header(), words.data(), growing.count);
    for (std::uint32_t i = 0; i < made.parameters().slices; ++i)
      slice_at(made.header(), i).state->insertions = growing.insertions[i];
    settle(made);
  }
  BOOST_REQUIRE_EQUAL(has_tokens(made), growing.has_compact());
  return made;
}

constexpr const char* kTexts[] = {"ell(memory=2kB)", "ell(memory=16kB, slices=1)",
                                  "ell(memory=128kB)", "ell(memory=64kB, slices=3, seed=7)",
                                  "ell(memory=252, nulls=not distinct)"};

}  // namespace

// Keys, merges and conversions in random order; some keys come again and again. Beyond the tokens'
// room both sides have registers.
BOOST_AUTO_TEST_CASE(whatever_happens_it_is_the_filter_that_had_all_memory) {
  std::mt19937_64 random(37);
  unsigned as_registers = 0;
  for (unsigned round = 0; round < 10000; ++round) {
    const char* text = kTexts[round % std::size(kTexts)];
    Growing groups[] = {Growing(text), Growing(text), Growing(text)};
    const std::uint64_t keys = std::uint64_t{1} << random() % 11;
    for (unsigned step = 0; step < 12; ++step) {
      Growing& one = groups[random() % 3];
      const std::uint64_t what = random() % 10;
      if (what == 0)
        one.merge(groups[random() % 3]);
      else if (what == 1)
        one.travel();
      else if (what == 2)
        one.dump();
      else if (what == 3)
        one.merge_compact(groups[random() % 3]);
      else
        for (std::uint64_t i = random() % keys; i > 0; --i)
          one.insert(mix64(random() % (2 * keys)));
    }
    for (Growing& one : groups) {
      Filter made = finished(one);
      settle(one.filter);
      BOOST_REQUIRE(made.bytes() == one.filter.bytes());
      BOOST_REQUIRE(made.is_valid());
      as_registers += !has_tokens(made);
      std::vector<exa_log_log_model::Likelihood> scratch(made.parameters().slices);
      bool full;
      if (has_tokens(made))
        BOOST_REQUIRE_EQUAL(
            std::round(exa_log_log::distinct_words(made.parameters(), one.words.data(),
                                                   one.words.size(), one.count, scratch.data())),
            std::round(distinct_keys(made.header(), full)));
    }
  }
  BOOST_TEST(as_registers > 200u);
}

BOOST_AUTO_TEST_CASE(small_values_are_small) {
  for (const char* text : {"ell(memory=4kB)", "ell(memory=16kB)", "ell(memory=64kB)"})
    for (const unsigned keys : {0u, 1u, 10u, 40u, 200u, 1000u}) {
      Filter filter(text);
      for (unsigned i = 0; i < keys; ++i) filter.insert({mix64(i)});
      bool possible;
      const auto words = words_of(filter, possible);
      BOOST_REQUIRE(possible);
      const auto size = compact_of(filter.parameters(), words, insertions_of(filter).data()).size();
      BOOST_TEST(static_cast<double>(size) <= 2.5 * keys + 40, text << " " << keys << ": " << size);
    }
}

// Damage is found, or makes a set of other keys; nothing reads beyond the bytes.
BOOST_AUTO_TEST_CASE(damaged_compact_forms_are_refused) {
  std::mt19937_64 random(38);
  unsigned refused = 0;
  for (unsigned round = 0; round < 20000; ++round) {
    Growing good(kTexts[round % std::size(kTexts)]);
    for (unsigned i = 0; i < round % 50; ++i) good.insert(mix64(random() % 60));
    auto bytes = compact_of(good.filter.parameters(), good.sorted(), good.insertions.data());
    if (round % 3 == 0)
      bytes.resize(random() % bytes.size());
    else
      for (unsigned i = 0; i <= random() % 3; ++i)
        bytes[4 + random() % (bytes.size() - 4)] ^= static_cast<unsigned char>(1u << random() % 8);
    bytes.shrink_to_fit();
    CompactReader reader;
    Problem problem;
    if (!open(reader, bytes, problem)) {
      BOOST_REQUIRE(problem.error != Error::none);
      ++refused;
      continue;
    }
    if (reader.parameters().memory > 1 << 20) continue;
    std::vector<std::uint64_t> block(block_bytes(reader.parameters()) / 8 + 1);
    Header* header = reinterpret_cast<Header*>(block.data());
    format(header, reader.parameters());
    if (!read_compact(reader, header, problem))
      ++refused;
    else
      BOOST_REQUIRE(check(header, block_bytes(reader.parameters()), problem));
  }
  BOOST_TEST(refused > 10000u);
}

BOOST_AUTO_TEST_SUITE_END()
