// Each wrong definition gives one message that names the cause, often with a hint.
#include <boost/test/unit_test.hpp>
#include <ostream>
#include <string>

#include "unit/support/filters.hpp"
#include "unit/support/kind_checks.hpp"

namespace streamfilter {
static std::ostream& operator<<(std::ostream& out, Error error) {
  return out << "error class " << static_cast<int>(error);
}
}  // namespace streamfilter

using namespace streamfilter;
using namespace unit;

BOOST_AUTO_TEST_SUITE(definition_errors)

namespace {

struct Case {
  const char* text;
  Error error;
  const char* message;
  const char* hint;  // or a part of it; nullptr: not checked
};

void check_cases(std::initializer_list<Case> cases) {
  for (const Case& wrong : cases) BOOST_TEST_CONTEXT(wrong.text) {
      const Problem problem = refusal(wrong.text);
      BOOST_TEST(problem.error == wrong.error);
      BOOST_TEST(std::string(problem.message) == wrong.message);
      if (wrong.hint != nullptr)
        BOOST_TEST(std::string(problem.hint).find(wrong.hint) != std::string::npos, problem.hint);
    }
}

// Each value is refused with a message that names it and the option.
void check_values(Error error, const std::string& kind, const std::string& option,
                  std::initializer_list<std::string> values, const char* hint = nullptr) {
  const std::string of_option = "option \"" + option + "\"";
  for (const std::string& value : values) {
    const std::string text = kind + "(" + option + "=" + value + ")", quoted = "\"" + value + "\"",
                      message = error == Error::syntax
                                    ? "invalid value for " + of_option + ": " + quoted
                                    : "value " + quoted + " is out of range for " + of_option;
    check_cases({{text.c_str(), error, message.c_str(), hint}});
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(unknown_kinds) {
  check_cases({
      {"sfb(memory=64kB)", Error::unknown_name, "unrecognized kind of filter \"sfb\"",
       "Perhaps you meant \"sbf\". Valid kinds are: auto, bloom, sbf"},
      {"blom()", Error::unknown_name, "unrecognized kind of filter \"blom\"",
       "Perhaps you meant \"bloom\"."},
      {"SBF()", Error::unknown_name, "unrecognized kind of filter \"SBF\"", "Valid kinds are:"},
      {"cuckoo()", Error::unknown_name, "unrecognized kind of filter \"cuckoo\"",
       "Valid kinds are: auto, bloom, sbf"},
  });
}

BOOST_AUTO_TEST_CASE(unknown_options) {
  check_cases({
      {"sbf(memroy=64kB)", Error::unknown_name, "invalid option \"memroy\"",
       "Perhaps you meant the option \"memory\"."},
      {"sbf(cellbits=2)", Error::unknown_name, "invalid option \"cellbits\"",
       "Perhaps you meant the option \"cell_bits\"."},
      {"bloom(Keys=2)", Error::unknown_name, "invalid option \"Keys\"",
       "Perhaps you meant the option \"keys\"."},
      {"sbf(colour=red)", Error::unknown_name, "invalid option \"colour\"",
       "Valid options are: kind, memory, keys, fpr, seed, nulls, slices, layout, slicing, dice, "
       "k1, k2, max, cell_bits, "
       "k, p, gap."},
  });
}

BOOST_AUTO_TEST_CASE(options_of_another_kind) {
  check_cases({
      {"bloom(keys=10, gap=5)", Error::unknown_name, "kind bloom has no option \"gap\"",
       "It is an option of kind sbf."},
      {"auto(max=3)", Error::unknown_name, "kind auto has no option \"max\"",
       "It is an option of kind sbf."},
  });
}

BOOST_AUTO_TEST_CASE(values_out_of_range) {
  check_values(Error::out_of_range, "sbf", "max", {"16", "0"});
  check_values(Error::out_of_range, "sbf", "cell_bits", {"5"});
  check_values(Error::out_of_range, "sbf", "k", {"33", "-1"});
  check_values(Error::out_of_range, "bloom", "k", {"65"});
  check_values(Error::out_of_range, "sbf", "p", {"1e16"});
  check_values(Error::out_of_range, "sbf", "gap", {"1e300"});
  check_values(Error::out_of_range, "sbf", "slices", {"0", "65537"});
  check_values(Error::out_of_range, "bloom", "keys", {"0", "1e16", "18446744073709551616"});
  check_values(Error::too_large, "sbf", "memory", {"65TB", "18446744073709551615"});
}

BOOST_AUTO_TEST_CASE(a_range_is_told) {
  BOOST_TEST(std::string(refusal("sbf(max=16)").detail) == "It must be between 1 and 15.");
}

BOOST_AUTO_TEST_CASE(values_that_are_no_numbers) {
  check_values(Error::syntax, "sbf", "k", {"three", "", "1.5", "3x", "+3", "0x3", "nan"},
               "Give a whole number from 1 to 32.");
  check_values(Error::syntax, "sbf", "seed", {"-1", "18446744073709551616"});
  check_values(Error::syntax, "timer", "size", {"8kB"},
               "Give a whole number from 1 to 70368744177664.");
  check_values(Error::syntax, "bloom", "keys", {"many"});
}

BOOST_AUTO_TEST_CASE(a_list_that_is_too_long_is_told_in_the_right_number) {
  BOOST_TEST(std::string(refusal("ibf2c(importance_levels='1,2')").detail) ==
             "At most 1 number can be given.");
  BOOST_TEST(std::string(refusal("ibfmc(importance_range='1,2,3')").detail) ==
             "At most 2 numbers can be given.");
}

BOOST_AUTO_TEST_CASE(false_positive_rates) {
  check_values(Error::out_of_range, "sbf", "fpr", {"0", "1", "-0.1", "nan", "inf"},
               "For one wrongly discarded row in a hundred new ones, write 0.01.");
  check_values(Error::syntax, "sbf", "fpr", {"low", "1%", ""});
}

BOOST_AUTO_TEST_CASE(sizes_that_cannot_be_read) {
  check_values(Error::syntax, "sbf", "memory", {"64KB", "much", "-1", "1.5MB", "99999999TB"},
               "Give a number of bytes, or a number with a unit: B, kB, MB, GB, TB.");
}

BOOST_AUTO_TEST_CASE(too_little_memory) {
  check_cases({
      {"sbf(memory=0)", Error::too_small, "memory of 0 bytes is too small for a filter",
       "A filter of 1 slice needs at least 192 bytes."},
      {"sbf(memory=191)", Error::too_small, "memory of 191 bytes is too small for a filter",
       "A filter of 1 slice needs at least 192 bytes."},
      {"bloom(keys=1, memory=100)", Error::too_small,
       "memory of 100 bytes is too small for a filter",
       "A filter of 1 slice needs at least 192 bytes."},
      {"sbf(memory=1kB, slices=10)", Error::too_small,
       "memory of 1024 bytes is too small for a filter",
       "A filter of 10 slices needs at least 1344 bytes."},
  });
  // The memory that the hint names is enough.
  parameters_of("sbf(memory=192)");
  parameters_of("sbf(memory=1344, slices=10)");
  for (const char* text : {"sbf(memory=192, fpr=1e-9, max=15)", "sbf(memory=64kB, fpr=1e-300, k=1)",
                           "sbf(memory=192, p=513)"})
    check_cases({{text, Error::too_small, "kind sbf would have to decrement more cells than it has",
                  "Use more memory, fewer slices or a larger fpr."}});
}

BOOST_AUTO_TEST_CASE(choices) {
  check_values(Error::syntax, "sbf", "nulls", {"maybe"},
               "Valid values are: distinct, not distinct.");
  check_values(Error::syntax, "sbf", "layout", {"square"}, "Valid values are: scattered, blocked.");
}

BOOST_AUTO_TEST_CASE(a_layout_that_the_kind_does_not_have) {
  check_cases({
      {"rsbf(layout=blocked)", Error::unsupported, "kind rsbf has no layout \"blocked\"", nullptr},
      {"bloom(keys=9, grow=density, layout=blocked)", Error::unsupported,
       "kind bloom has no layout \"blocked\" with option grow",
       "Use layout scattered, or no grow."},
  });
}

BOOST_AUTO_TEST_CASE(cells_that_cannot_count_to_max) {
  check_cases({
      {"sbf(max=4, cell_bits=2)", Error::conflict, "2-bit cells cannot count to max 4",
       "Leave out cell_bits, or set it to 3."},
      {"sbf(max=15, cell_bits=1)", Error::conflict, "1-bit cells cannot count to max 15",
       "Leave out cell_bits, or set it to 4."},
  });
}

BOOST_AUTO_TEST_CASE(a_bloom_filter_that_cannot_keep_its_rate) {
  check_cases({
      {"bloom(memory=10kB, keys=10000)", Error::conflict,
       "kind bloom cannot keep fpr 0.01 for 10000 keys in 10240 bytes",
       "In any memory, fpr is kept by: sbf"},
      {"bloom(keys=1e15)", Error::conflict,
       "kind bloom cannot keep fpr 0.01 for 1000000000000000 keys in 70368744177664 bytes",
       "In any memory, fpr is kept by: sbf"},
  });
}

BOOST_AUTO_TEST_CASE(texts_that_are_no_definitions) {
  for (const char* text :
       {"", "   ", "(", "sbf memory=64kB", "sbf(", "sbf(,)", "sbf(memory)", "sbf(memory=64kB",
        "sbf(memory=64kB,", "sbf(memory=64kB,)", "sbf(memory='64kB)", "sbf(memory='64kB'x)",
        "sbf(=64kB)", "sbf(kind=bloom)"})
    check_cases({{text, Error::syntax, "invalid input syntax for type streamfilter",
                  "for example sbf(memory=64kB, fpr=0.01)."}});
}

BOOST_AUTO_TEST_CASE(names_and_values_of_absurd_length) {
  const std::string long_name(5000, 'k'), long_value(5000, '1');
  for (const std::string& text : {long_name + "()", "sbf(" + long_name + "=1)",
                                  "sbf(k=" + long_value + ")", "sbf(k='" + long_value + "')"}) {
    BOOST_TEST(refusal(text).error == Error::syntax);
  }
}

BOOST_AUTO_TEST_CASE(a_syntax_error_says_what_was_expected_where) {
  refusal("sbf(memory=64kB fpr=0.01");
  BOOST_TEST(std::string(refusal("sbf(memory 64kB)").detail) == "Expected \"=\" at \"64kB)\".");
}

// Options set one by one give the same errors as options in a text.
BOOST_AUTO_TEST_CASE(options_can_be_set_one_by_one) {
  Definition definition;
  Problem problem;
  BOOST_TEST(set_option(definition, "kind", "sbf", problem));
  BOOST_TEST(set_option(definition, "memory", "64kB", problem));
  BOOST_TEST(set_option(definition, "k", "4", problem));
  BOOST_TEST(!set_option(definition, "k", "40", problem));
  BOOST_TEST(problem.error == Error::out_of_range);
  BOOST_TEST(complete(definition, problem));
  BOOST_TEST(option_value(definition.parameters, "k") == 4u);
}

BOOST_AUTO_TEST_CASE(a_definition_without_a_kind_is_auto) {
  Definition definition;
  Problem problem;
  BOOST_TEST(complete(definition, problem));
  BOOST_TEST((definition.parameters.kind == Kind::clq));
}

BOOST_AUTO_TEST_SUITE_END()
