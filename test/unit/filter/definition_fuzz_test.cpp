// Damaged texts never crash the reader, and it never reads past their end. A text gives a message
// or a definition; completing that gives a message or parameters, which print and read back the
// same.
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <memory>
#include <random>
#include <string>

#include "unit/support/filters.hpp"
#include "unit/support/streams.hpp"

using namespace streamfilter;
using namespace unit;

BOOST_AUTO_TEST_SUITE(definition_fuzz)

namespace {

const char* const kValid[] = {
    "sbf(memory=64kB, fpr=0.01)",
    "sbf(memory=1MB, fpr=0.001, seed=18446744073709551615, slices=4, max=7, k=6, p=65, gap=2000)",
    "bloom(memory=16kB, keys=10000, nulls='not distinct', k=9, layout=scattered)",
    "bloom(keys=1e6, fpr=1e-3)",
    "bloom(memory=16kB, slicing=diced, dice=vh, slices='8,5', k=4)",
    "bloom(memory=16kB, slices=4, k1=3, k2=2)",
    "auto(keys=1000, memory=\"3 kB\")",
    " sbf ( cell_bits = 3 , memory = 1000 ) ",
};

class Mutator {
 public:
  explicit Mutator(unsigned seed) : random_(seed) {}

  std::string next() {
    std::string text = kValid[below(std::size(kValid))];
    for (std::size_t i = below(5) + 1; i > 0; --i) change(text);
    return text;
  }

 private:
  std::size_t below(std::size_t n) { return random_() % n; }

  char character() {
    static constexpr char kCommon[] = "0123456789.eE+-(),='\"_ kMGTBabfrsx\0\n\x80\xff";
    return below(8) == 0 ? static_cast<char>(below(256)) : kCommon[below(sizeof kCommon)];
  }

  void change(std::string& text) {
    const std::size_t at = below(text.size() + 1), length = below(8);
    switch (below(7)) {
      case 0: text.resize(at); break;
      case 1: text.insert(at, 1, character()); break;
      case 2: text.erase(at, length); break;
      case 3: text.insert(at, text.substr(below(text.size() + 1), length)); break;
      case 4: text.insert(at, below(40) == 0 ? 1000 : length, character()); break;
      case 5: text.insert(at, kWords[below(std::size(kWords))]); break;
      default:
        if (at < text.size()) text[at] = character();
    }
  }

  static constexpr const char* kWords[] = {
      "nan",   "inf", "-0", "1e308", "1e-308", "0x1p3", "18446744073709551616", "memory=",
      "keys=", "fpr", "k=", "99999", "9e18",   "TB",    "4294967296",           "sbf("};
  std::mt19937 random_;
};

// Reads a text from a buffer of exactly its size.
bool read(const std::string& text, Definition& definition, std::size_t& used, Problem& problem) {
  const std::unique_ptr<char[]> exact(new char[text.size()]);
  std::memcpy(exact.get(), text.data(), text.size());
  return parse_definition(exact.get(), text.size(), definition, used, problem);
}

bool explained(const Problem& problem) {
  return problem.error != Error::none && problem.message[0] != '\0';
}

}  // namespace

// Except for the kind alone, which is a definition without options.
bool is_kind_alone(std::string text) {
  std::erase(text, ' ');
  return text == "sbf" || text == "bloom" || text == "auto";
}

BOOST_AUTO_TEST_CASE(every_prefix_of_a_definition_is_refused) {
  for (const std::string text : kValid)
    for (std::size_t length = 0; length <= text.find_last_of(')'); ++length) {
      if (is_kind_alone(text.substr(0, length))) continue;
      Definition definition;
      Problem problem;
      std::size_t used;
      BOOST_TEST_REQUIRE(!read(text.substr(0, length), definition, used, problem));
      BOOST_TEST_REQUIRE(explained(problem));
    }
}

BOOST_AUTO_TEST_CASE(mutated_definitions_are_refused_or_round_trip) {
  Mutator mutator(20060627);
  unsigned complete_ones = 0, refused = 0;
  for (std::uint64_t i = 0; i < scaled(200000); ++i) {
    const std::string text = mutator.next();
    BOOST_TEST_CONTEXT(text) {
      Definition definition;
      Problem problem;
      std::size_t used = 0;
      if (!read(text, definition, used, problem) || !complete(definition, problem)) {
        BOOST_REQUIRE(explained(problem));
        ++refused;
        continue;
      }
      BOOST_REQUIRE(used <= text.size());
      Parameters again;
      const std::string printed = text_of(definition.parameters);
      const bool valid = make_parameters(printed, again, problem);
      BOOST_REQUIRE_MESSAGE(valid, printed << ": " << problem.message);
      BOOST_REQUIRE(std::memcmp(&again, &definition.parameters, sizeof again) == 0);
      Header header;
      format_header(&header, again);
      BOOST_REQUIRE_MESSAGE(check_header(header, problem), printed << ": " << problem.message);
      ++complete_ones;
    }
  }
  // The mutations must lead to both results.
  BOOST_TEST(complete_ones > refused / 50);
  BOOST_TEST(refused > complete_ones / 50);
}

BOOST_AUTO_TEST_CASE(random_bytes_are_refused) {
  std::mt19937 random(1);
  for (std::uint64_t i = 0; i < scaled(50000); ++i) {
    std::string text(random() % 60, '\0');
    for (char& c : text) c = static_cast<char>(random());
    Definition definition;
    Problem problem;
    std::size_t used;
    BOOST_REQUIRE(!read(text, definition, used, problem));
    BOOST_REQUIRE(explained(problem));
  }
}

BOOST_AUTO_TEST_SUITE_END()
