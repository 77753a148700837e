// The table of kinds: every row is complete, and its options fit the stored format.
#include "core/kind/kind_list.hpp"
#include "core/kind/kind_registry.hpp"

#include <boost/test/unit_test.hpp>
#include <set>
#include <string>

using namespace streamfilter;

BOOST_AUTO_TEST_SUITE(kinds)

BOOST_AUTO_TEST_CASE(a_kind_is_found_by_name_and_by_number) {
  BOOST_TEST(!all_ops().empty());
  for (const FilterOps* ops : all_ops()) {
    BOOST_TEST(find_ops(ops->kind) == ops);
    BOOST_TEST(find_ops(ops->name) == ops);
  }
  BOOST_TEST(find_ops(Kind::automatic) == nullptr);
  BOOST_TEST(find_ops(static_cast<Kind>(255)) == nullptr);
  BOOST_TEST(find_ops("auto") == nullptr);
  BOOST_TEST(find_ops("") == nullptr);
}

// A part of the stored format.
BOOST_AUTO_TEST_CASE(the_numbers_of_kinds_are_fixed) {
  BOOST_TEST(static_cast<int>(find_ops("bloom")->kind) == 1);
  BOOST_TEST(static_cast<int>(find_ops("sbf")->kind) == 2);
}

BOOST_AUTO_TEST_CASE(every_row_is_complete) {
  for (const FilterOps* ops : kKinds) BOOST_TEST_CONTEXT(ops->name) {
      BOOST_TEST(ops->summary[0] != '\0');
      BOOST_TEST((ops->derive && ops->test && ops->insert && ops->check && ops->estimate &&
                  ops->fpr_bound));
      // A kind whose keys can have several places divides its k bits among them.
      const auto has_k = [&] {
        for (const OptionSpec& option : ops->options)
          if (std::string(option.name) == "k") return true;
        return false;
      };
      BOOST_TEST((!ops->has_probes || (has_k() && ops->insert_unconditionally &&
                                       !ops->learns_from_repeats && !ops->erase)));
    }
}

BOOST_AUTO_TEST_CASE(options_have_words_and_ranges_of_their_own) {
  for (const FilterOps* ops : kKinds) {
    std::set<unsigned> taken;
    std::set<std::string> names = {"kind",   "memory", "keys",    "fpr",  "seed", "nulls",
                                   "slices", "layout", "slicing", "dice", "k1",   "k2"};
    for (const OptionSpec& option : ops->options) {
      BOOST_TEST_CONTEXT(ops->name << " " << option.name) {
        const unsigned words = option.type == OptionType::reals  ? 1 + option.max_count
                               : option.type == OptionType::span ? 2
                                                                 : 1;
        for (unsigned word = option.word; word < option.word + words; ++word) {
          BOOST_TEST(word < kMaxWords);
          BOOST_TEST(taken.insert(word).second, "word " << word << " is taken");
        }
        BOOST_TEST(names.insert(option.name).second);
        BOOST_TEST((option.choices != nullptr) == (option.type == OptionType::choice));
        if (option.type != OptionType::choice) BOOST_TEST(option.low < option.high);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(kinds_can_be_listed) {
  const auto list = [](bool (*wanted)(const FilterOps&), std::size_t size) {
    std::string buffer(size, '?');
    const std::size_t length = list_kinds(wanted, &buffer[0], size);
    BOOST_TEST(length < size);
    BOOST_TEST(buffer[length] == '\0');
    return buffer.substr(0, length);
  };
  const auto any = [](const FilterOps&) { return true; };
  BOOST_TEST(list(any, 1000).substr(0, 10) == "bloom, sbf");
  const auto forever = [](const FilterOps& ops) { return ops.keeps_fpr_forever; };
  BOOST_TEST(list(forever, 1000).substr(0, 3) == "sbf");
  BOOST_TEST(list([](const FilterOps&) { return false; }, 100) == "");
  for (std::size_t size = 1; size < 12; ++size)
    BOOST_TEST(list(any, size) == std::string("bloom, sbf").substr(0, size - 1));
}

BOOST_AUTO_TEST_SUITE_END()
