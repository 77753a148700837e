// check() guards against bytes from outside: every filter that it accepts can be used without harm,
// and it accepts every filter made here.
#include <bit>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "unit/support/filters.hpp"
#include "unit/support/rates.hpp"
#include "unit/support/streams.hpp"

using namespace streamfilter;
using namespace unit;

BOOST_AUTO_TEST_SUITE(filter_check)

namespace {

// Filters of every shape: kinds, cell widths, slices, and a rest behind the slices.
const char* const kDefinitions[] = {
    "sbf(memory=192)",
    "sbf(memory=1kB, fpr=0.1)",
    "sbf(memory=2000, max=2, seed=77)",
    "sbf(memory=2003, max=7, slices=3)",
    "sbf(memory=4kB, max=13, nulls=not distinct, gap=100)",
    "bloom(memory=1kB, k=3)",
    "bloom(memory=2003, keys=300, slices=2, fpr=0.1)",
    "sbf(memory=2003, slices=2, layout=blocked)",
    "bloom(memory=2003, k=5, slices=2, layout=blocked)",
    "bloom(memory=2003, k=5, slices=4, slicing=vertical)",
    "bloom(memory=2003, k=5, slices='2,3', slicing=diced)",
    "bloom(memory=2003, k=5, slices='2,3', slicing=diced, dice=vh)",
    "bloom(memory=2003, slices=4, k1=2, k2=3)",
};

Error error_of(const std::vector<unsigned char>& bytes) {
  Problem problem;
  if (check(bytes.data(), bytes.size(), problem)) return Error::none;
  BOOST_TEST(problem.message[0] != '\0');
  return problem.error;
}

// Calls every function on a filter. Only a sanitizer or a crash can object.
void use(Filter& filter) {
  for (std::uint64_t number = 0; number < 50; ++number) {
    filter.insert(key(number));
    filter.test(key(number + 25));
  }
  Filter copy = filter;
  for (std::uint32_t i = 0; i < filter.parameters().slices; ++i)
    merge_slice(copy.header(), filter.header(), i);
  totals(copy.header());
  is_empty(copy.header());
  window_keys(filter.parameters(), 0.01);
  const FilterOps& ops = ops_of(filter.header());
  filter.fpr_bound();
  ops.fnr_at(filter.parameters(), 1000);
  text_of(filter.parameters());
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_filter_passes) {
  for (const char* text : kDefinitions) {
    BOOST_TEST(Filter(text).is_valid(), text);
    Filter filter(text);
    for (std::uint64_t number = 0; number < 2000; ++number) {
      filter.insert(key(number % 700));
      if (number % 100 == 0) BOOST_TEST(filter.is_valid(), text << " after " << number);
    }
    BOOST_TEST(filter.is_valid(), text);
  }
}

BOOST_AUTO_TEST_CASE(the_word_of_the_host_is_not_looked_at) {
  for (const char* text : kDefinitions) {
    Filter filter = filled(text, 200);
    filter.header()->host = 0xdeadbeef;
    BOOST_TEST(filter.is_valid(), text);
  }
}

BOOST_AUTO_TEST_CASE(a_wrong_length_is_refused) {
  for (const char* text : kDefinitions) {
    const Filter filter = filled(text, 200);
    const std::size_t memory = filter.bytes().size();
    const std::size_t slice = filter.parameters().slice_bytes;
    for (const std::size_t length :
         {std::size_t{0}, std::size_t{1}, std::size_t{4}, std::size_t{8}, std::size_t{72},
          sizeof(Header) - 1, sizeof(Header), sizeof(Header) + 1,
          sizeof(Header) + sizeof(SliceState), sizeof(Header) + slice - 1, memory - 64, memory - 8,
          memory - 1, memory + 1, memory + 8, 2 * memory}) {
      std::vector<unsigned char> bytes = filter.bytes();
      bytes.resize(length);
      BOOST_TEST((error_of(bytes) == Error::corrupt), text << " cut to " << length);
    }
  }
}

BOOST_AUTO_TEST_CASE(bytes_of_something_else_are_refused) {
  BOOST_TEST((error_of(std::vector<unsigned char>(1024, 0)) == Error::corrupt));
  BOOST_TEST((error_of(std::vector<unsigned char>(1024, 0xff)) == Error::corrupt));
}

BOOST_AUTO_TEST_CASE(a_newer_format_is_told_apart_from_damage) {
  Filter filter = filled("sbf(memory=1kB)", 200);
  for (const unsigned version : {2u, 3u, 0x0101u, 0xffffu}) {
    filter.header()->version = static_cast<std::uint16_t>(version);
    Problem problem;
    BOOST_TEST(!check(filter.bytes().data(), filter.bytes().size(), problem));
    BOOST_TEST((problem.error == Error::newer_version));
    BOOST_TEST(std::string(problem.message) ==
               "streamfilter of format version " + std::to_string(version) + " cannot be read");
  }
  filter.header()->version = 0;
  BOOST_TEST((error_of(filter.bytes()) == Error::corrupt));
}

// Refuses a changed header, unless it is the header of another filter with the same cells: another
// seed, other wishes (keys, fpr, gap, nulls, memory less than a line), or numbers that cells do not
// depend on (k, p; max, if no cell exceeds it; how slices are diced). Code that stores or sends a
// filter adds checksum(), which covers these as well.
BOOST_AUTO_TEST_CASE(every_flipped_bit_of_a_header_is_refused_or_makes_another_valid_filter) {
  for (const char* text : kDefinitions) {
    const Filter original = filled(text, 200);
    unsigned accepted = 0;
    for (std::size_t bit = 8 * sizeof(Header::host); bit < 8 * sizeof(Header); ++bit) {
      Filter damaged = original;
      damaged.bytes()[bit / 8] ^= static_cast<unsigned char>(1 << bit % 8);
      if (!damaged.is_valid()) continue;
      ++accepted;
      BOOST_TEST_REQUIRE(checksum(damaged.header()) != checksum(original.header()));

      Parameters a = original.parameters(), b = damaged.parameters();
      for (Parameters* p : {&a, &b}) {
        p->seed = p->keys = 0;
        p->memory = 0;  // what is left over of it is in no slice
        p->fpr = 0;
        p->nulls = Nulls::distinct;
        p->layout = Layout::scattered;  // a slice of one line is the same in both
        p->dice = Dice::hv;
        p->slices2 = 0;
        for (const char* name : {"k", "p", "max", "gap"})
          if (const OptionSpec* option = find_option(ops_of(original.header()), name))
            p->word[option->word] = 0;
      }
      BOOST_TEST(std::memcmp(&a, &b, sizeof a) == 0, text << ", bit " << bit);
      // It is a filter like any other, and its description can be read.
      Parameters again;
      Problem problem;
      const std::string printed = text_of(damaged.parameters());
      BOOST_TEST(make_parameters(printed, again, problem), printed << ": " << problem.message);
      BOOST_TEST(std::memcmp(&again, &damaged.parameters(), sizeof again) == 0, printed);
      use(damaged);
    }
    BOOST_TEST(accepted >= 64u, text);  // every seed is a possible one
  }
}

// Tries all 255 other values of each byte in the parts of the header that are never free.
BOOST_AUTO_TEST_CASE(every_changed_byte_outside_the_free_numbers_is_refused) {
  const Filter original = filled("bloom(memory=1kB, k=3)", 200);
  const auto offset = [&](const void* field) {
    return static_cast<std::size_t>(static_cast<const unsigned char*>(field) -
                                    original.bytes().data());
  };
  const Parameters& p = original.parameters();
  const std::size_t keys = offset(&p.keys), words = offset(&p.word[1]);
  for (std::size_t at = sizeof(Header::host); at < sizeof(Header); ++at) {
    const bool is_free = (at >= keys && at < words) || at == offset(&p.nulls);
    if (is_free) continue;
    const unsigned first = at == offset(&p.memory) ? 64 : 1;  // less is in no slice
    for (unsigned change = first; change < 256; ++change) {
      std::vector<unsigned char> bytes = original.bytes();
      bytes[at] ^= static_cast<unsigned char>(change);
      BOOST_TEST_REQUIRE((error_of(bytes) != Error::none), "byte " << at << " ^ " << change);
    }
  }
}

BOOST_AUTO_TEST_CASE(numbers_that_no_definition_allows_are_refused) {
  const auto refused = [](const char* text, auto change) {
    Filter filter = filled(text, 200);
    change(filter.header()->parameters);
    Problem problem;
    return !check_header(*filter.header(), problem) && problem.error == Error::corrupt;
  };
  const char* const sbf = "sbf(memory=4kB)";
  const auto check_word = [&](const char* text, const char* name,
                              std::initializer_list<std::uint64_t> values) {
    for (const std::uint64_t value : values)
      BOOST_TEST(refused(text,
                         [=](Parameters& p) {
                           const OptionSpec* option = find_option(*find_ops(p.kind), name);
                           BOOST_REQUIRE(option != nullptr);
                           p.word[option->word] = value;
                         }),
                 name << " " << value);
  };
  check_word(sbf, "k", {33, 0});  // more than insert has room for, or none
  check_word(sbf, "p", {0, 1000000});
  check_word(sbf, "max", {0, 16});
  check_word(sbf, "cell_bits", {0, 5, 70});
  check_word(sbf, "gap", {~std::uint64_t{0}});
  check_word("bloom(memory=1kB, k=3)", "k", {0, 65});

  const std::uint64_t most = ~std::uint64_t{0};
  for (const std::uint32_t slices : {0u, 0xffffffffu})
    BOOST_TEST(refused(sbf, [=](Parameters& p) { p.slices = slices; }), slices);
  for (const std::uint64_t memory : {std::uint64_t{0}, most})
    BOOST_TEST(refused(sbf, [=](Parameters& p) { p.memory = memory; }), memory);
  BOOST_TEST(refused(sbf, [](Parameters& p) { p.slice_bytes += 64; }));
  BOOST_TEST(refused(sbf, [=](Parameters& p) { p.keys = most; }));
  for (const double fpr : {-0.5, -0.0, 1.0, 7.0, std::numeric_limits<double>::infinity(),
                           std::numeric_limits<double>::quiet_NaN()})
    BOOST_TEST(refused(sbf, [=](Parameters& p) { p.fpr = fpr; }), fpr);
  BOOST_TEST(refused(sbf, [](Parameters& p) {  // consistent, but larger than options allow
    Definition definition = definition_of(p);
    definition.parameters.memory = std::uint64_t{1} << 47;
    Problem problem;
    BOOST_TEST(complete(definition, problem));
    p = definition.parameters;
  }));
  for (const Kind kind : {Kind::automatic, static_cast<Kind>(200)})
    BOOST_TEST(refused(sbf, [=](Parameters& p) { p.kind = kind; }));
  for (const Layout layout : {Layout::blocked, static_cast<Layout>(2)})
    BOOST_TEST(refused(sbf, [=](Parameters& p) { p.layout = layout; }));
  BOOST_TEST(refused(sbf, [](Parameters& p) { p.nulls = static_cast<Nulls>(2); }));
  BOOST_TEST(refused(sbf, [](Parameters& p) { p.key_shift = 1; }));
  for (unsigned word = 5; word < kMaxWords; ++word)  // derived numbers, and words not in use
    BOOST_TEST(refused(sbf, [=](Parameters& p) { ++p.word[word]; }), word);
}

BOOST_AUTO_TEST_CASE(wrong_counts_are_refused) {
  for (const char* text : kDefinitions) {
    const Filter original = filled(text, 200);
    for (std::uint32_t s = 0; s < original.parameters().slices; ++s)
      for (const std::uint64_t step : {std::uint64_t{1}, ~std::uint64_t{0}}) {
        Filter filter = original;
        filter.slice(s).state->own[0] += step;  // the number of non-zero cells
        BOOST_TEST(!filter.is_valid(), text);
      }
    Filter filter = original;
    filter.slice().state->inserted_new = filter.slice().state->insertions + 1;
    BOOST_TEST(!filter.is_valid(), text);
    filter.slice().state->insertions = ~std::uint64_t{0};  // one more would be none
    BOOST_TEST(!filter.is_valid(), text);
  }
}

BOOST_AUTO_TEST_CASE(every_flipped_cell_is_refused) {
  for (const char* text : {"sbf(memory=192)", "bloom(memory=192, k=2)"}) {
    const Filter original = filled(text, 200);
    for (std::size_t bit = 8 * (sizeof(Header) + sizeof(SliceState));
         bit < 8 * original.bytes().size(); ++bit) {
      Filter filter = original;
      filter.bytes()[bit / 8] ^= static_cast<unsigned char>(1 << bit % 8);
      BOOST_TEST(!filter.is_valid(), text << ", bit " << bit);
    }
  }
}

BOOST_AUTO_TEST_CASE(cells_above_max_are_refused) {
  Filter filter = filled("sbf(memory=1kB, max=2, k=1, p=1)", 200);
  const Slice slice = filter.slice();
  for (std::uint64_t i = 0; i < slice.bytes; ++i)
    for (unsigned cell = 0; cell < 8; cell += 2) {
      if ((slice.body()[i] >> cell & 3) == 0) continue;  // else the count would be wrong, too
      const unsigned char before = slice.body()[i];
      slice.body()[i] |= static_cast<unsigned char>(3 << cell);
      BOOST_TEST_REQUIRE(!filter.is_valid());
      slice.body()[i] = before;
    }
}

// Bytes outside cells are zero, so that equal filters have equal bytes.
BOOST_AUTO_TEST_CASE(bytes_in_no_use_are_zero) {
  // 168 cells of 3 bits in 512 bits: one byte is left over.
  Filter narrow = filled("sbf(memory=192, max=7)", 200);
  const Slice slice = narrow.slice();
  for (std::uint64_t bit = (slice.bytes * 8 - 8) / 3 * 3; bit < slice.bytes * 8; ++bit) {
    slice.body()[bit / 8] ^= static_cast<unsigned char>(1 << bit % 8);
    BOOST_TEST(!narrow.is_valid(), bit);
    slice.body()[bit / 8] ^= static_cast<unsigned char>(1 << bit % 8);
  }
  BOOST_TEST(narrow.is_valid());
}

// Whatever check() accepts is usable, and stays valid. The damage is mostly small: random bytes,
// extreme numbers, exchanged words.
BOOST_AUTO_TEST_CASE(damaged_filters_are_refused_or_harmless) {
  std::mt19937_64 random(1);
  std::vector<std::uint64_t> extremes = {0, 1, 2, 31, 32, 33, 64, 255, 65536};
  for (const unsigned bit : {31, 32, 63}) extremes.push_back(std::uint64_t{1} << bit);
  for (const double number : {1.0, double{NAN}})
    extremes.push_back(std::bit_cast<std::uint64_t>(number));
  extremes.push_back(~std::uint64_t{0});
  unsigned accepted = 0;
  for (std::uint64_t i = 0; i < scaled(100000); ++i) {
    Filter filter = filled(kDefinitions[random() % std::size(kDefinitions)], 200);
    std::vector<unsigned char>& bytes = filter.bytes();
    const std::size_t reach = random() % 3 != 0 ? 160 : bytes.size();  // mostly the header in use
    for (std::uint64_t n = random() % 4 + 1; n > 0; --n) {
      const std::size_t at = random() % (reach / 8) * 8;
      if (at == 0 && random() % 8 != 0) continue;  // check() refuses other magic numbers at once
      switch (random() % 4) {
        case 0: bytes[at + random() % 8] = static_cast<unsigned char>(random()); break;
        case 1: bytes[at + random() % 8] ^= static_cast<unsigned char>(1 << random() % 8); break;
        case 2: std::memcpy(&bytes[at], &extremes[random() % extremes.size()], 8); break;
        default: std::memcpy(&bytes[at], &bytes[random() % (reach / 8) * 8], 8);
      }
    }
    if (error_of(bytes) != Error::none) continue;
    ++accepted;
    use(filter);
    const Error error = error_of(bytes);
    const SliceState& state = *filter.slice().state;
    BOOST_TEST_REQUIRE((error == Error::none), text_of(filter.parameters())
                                                   << " arrivals " << state.insertions << " novel "
                                                   << state.inserted_new);
  }
  BOOST_TEST(accepted > 0u);
}

BOOST_AUTO_TEST_CASE(random_bytes_behind_the_magic_number_are_harmless) {
  std::mt19937_64 random(2);
  for (std::uint64_t i = 0; i < scaled(100000); ++i) {
    std::vector<unsigned char> bytes(sizeof(Header) + 64 * (random() % 8));
    for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(random());
    Header* header = reinterpret_cast<Header*>(bytes.data());
    header->magic = kMagic;
    header->version = kFormatVersion;
    header->reserved0 = 0;
    header->reserved1 = 0;
    std::memset(header->reserved, 0, sizeof header->reserved);
    Parameters& p = header->parameters;
    p.kind = random() % 2 == 0 ? Kind::sbf : Kind::bloom;
    p.layout = Layout::scattered;
    p.nulls = Nulls::distinct;
    p.key_shift = 0;
    p.slices = static_cast<std::uint32_t>(random() % 3);
    if (random() % 4 != 0) p.memory = bytes.size() - sizeof(Header) + kStoredHeader;
    for (std::uint64_t& word : p.word) word = random() % 4 == 0 ? random() : random() % 20;
    BOOST_TEST_REQUIRE((error_of(bytes) == Error::corrupt));
  }
}

BOOST_AUTO_TEST_SUITE_END()
