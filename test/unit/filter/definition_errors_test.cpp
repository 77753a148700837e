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
  check_cases({
      {"sbf(max=16)", Error::out_of_range, "value \"16\" is out of range for option \"max\"",
       nullptr},
      {"sbf(max=0)", Error::out_of_range, "value \"0\" is out of range for option \"max\"",
       nullptr},
      {"sbf(cell_bits=5)", Error::out_of_range,
       "value \"5\" is out of range for option \"cell_bits\"", nullptr},
      {"sbf(k=33)", Error::out_of_range, "value \"33\" is out of range for option \"k\"", nullptr},
      {"bloom(k=65)", Error::out_of_range, "value \"65\" is out of range for option \"k\"",
       nullptr},
      {"sbf(p=1e16)", Error::out_of_range, "value \"1e16\" is out of range for option \"p\"",
       nullptr},
      {"sbf(gap=1e300)", Error::out_of_range, "value \"1e300\" is out of range for option \"gap\"",
       nullptr},
      {"sbf(k=-1)", Error::out_of_range, "value \"-1\" is out of range for option \"k\"", nullptr},
      {"sbf(slices=0)", Error::out_of_range, "value \"0\" is out of range for option \"slices\"",
       nullptr},
      {"sbf(slices=65537)", Error::out_of_range,
       "value \"65537\" is out of range for option \"slices\"", nullptr},
      {"bloom(keys=0)", Error::out_of_range, "value \"0\" is out of range for option \"keys\"",
       nullptr},
      {"bloom(keys=1e16)", Error::out_of_range,
       "value \"1e16\" is out of range for option \"keys\"", nullptr},
      {"bloom(keys=18446744073709551616)", Error::out_of_range,
       "value \"18446744073709551616\" is out of range for option \"keys\"", nullptr},
      {"sbf(memory=65TB)", Error::too_large, "value \"65TB\" is out of range for option \"memory\"",
       nullptr},
      {"sbf(memory=18446744073709551615)", Error::too_large,
       "value \"18446744073709551615\" is out of range for option \"memory\"", nullptr},
  });
}

BOOST_AUTO_TEST_CASE(a_range_is_told) {
  BOOST_TEST(std::string(refusal("sbf(max=16)").detail) == "It must be between 1 and 15.");
}

BOOST_AUTO_TEST_CASE(values_that_are_no_numbers) {
  check_cases({
      {"sbf(k=three)", Error::syntax, "invalid value for option \"k\": \"three\"",
       "Give a whole number from 1 to 32."},
      {"sbf(k=)", Error::syntax, "invalid value for option \"k\": \"\"", nullptr},
      {"sbf(k=1.5)", Error::syntax, "invalid value for option \"k\": \"1.5\"", nullptr},
      {"sbf(k=3x)", Error::syntax, "invalid value for option \"k\": \"3x\"", nullptr},
      {"sbf(k=+3)", Error::syntax, "invalid value for option \"k\": \"+3\"", nullptr},
      {"sbf(k=0x3)", Error::syntax, "invalid value for option \"k\": \"0x3\"", nullptr},
      {"sbf(k=nan)", Error::syntax, "invalid value for option \"k\": \"nan\"", nullptr},
      {"sbf(seed=-1)", Error::syntax, "invalid value for option \"seed\": \"-1\"", nullptr},
      {"sbf(seed=18446744073709551616)", Error::syntax,
       "invalid value for option \"seed\": \"18446744073709551616\"", nullptr},
      {"timer(window='1 hour', k=3, grow=density, size=8kB)", Error::syntax,
       "invalid value for option \"size\": \"8kB\"",
       "Give a whole number from 1 to 70368744177664."},
      {"bloom(keys=many)", Error::syntax, "invalid value for option \"keys\": \"many\"", nullptr},
  });
}

BOOST_AUTO_TEST_CASE(a_list_that_is_too_long_is_told_in_the_right_number) {
  BOOST_TEST(std::string(refusal("ibf2c(importance_levels='1,2')").detail) ==
             "At most 1 number can be given.");
  BOOST_TEST(std::string(refusal("ibfmc(importance_range='1,2,3')").detail) ==
             "At most 2 numbers can be given.");
}

BOOST_AUTO_TEST_CASE(false_positive_rates) {
  const char* const hint = "For one wrongly discarded row in a hundred new ones, write 0.01.";
  check_cases({
      {"sbf(fpr=0)", Error::out_of_range, "value \"0\" is out of range for option \"fpr\"", hint},
      {"sbf(fpr=1)", Error::out_of_range, "value \"1\" is out of range for option \"fpr\"", hint},
      {"sbf(fpr=-0.1)", Error::out_of_range, "value \"-0.1\" is out of range for option \"fpr\"",
       hint},
      {"sbf(fpr=nan)", Error::out_of_range, "value \"nan\" is out of range for option \"fpr\"",
       hint},
      {"sbf(fpr=inf)", Error::out_of_range, "value \"inf\" is out of range for option \"fpr\"",
       hint},
      {"sbf(fpr=low)", Error::syntax, "invalid value for option \"fpr\": \"low\"", nullptr},
      {"sbf(fpr=1%)", Error::syntax, "invalid value for option \"fpr\": \"1%\"", nullptr},
      {"sbf(fpr=)", Error::syntax, "invalid value for option \"fpr\": \"\"", nullptr},
  });
}

BOOST_AUTO_TEST_CASE(sizes_that_cannot_be_read) {
  const char* const hint = "Give a number of bytes, or a number with a unit: B, kB, MB, GB, TB.";
  check_cases({
      {"sbf(memory=64KB)", Error::syntax, "invalid value for option \"memory\": \"64KB\"", hint},
      {"sbf(memory=much)", Error::syntax, "invalid value for option \"memory\": \"much\"", hint},
      {"sbf(memory=-1)", Error::syntax, "invalid value for option \"memory\": \"-1\"", hint},
      {"sbf(memory=1.5MB)", Error::syntax, "invalid value for option \"memory\": \"1.5MB\"", hint},
      {"sbf(memory=99999999TB)", Error::syntax,
       "invalid value for option \"memory\": \"99999999TB\"", hint},
  });
}

BOOST_AUTO_TEST_CASE(too_little_memory) {
  check_cases({
      {"sbf(memory=0)", Error::too_small, "memory of 0 bytes is too small for a filter",
       "A filter of 1 slice needs at least 640 bytes."},
      {"sbf(memory=639)", Error::too_small, "memory of 639 bytes is too small for a filter",
       "A filter of 1 slice needs at least 640 bytes."},
      {"bloom(keys=1, memory=100)", Error::too_small,
       "memory of 100 bytes is too small for a filter",
       "A filter of 1 slice needs at least 640 bytes."},
      {"sbf(memory=1kB, slices=10)", Error::too_small,
       "memory of 1024 bytes is too small for a filter",
       "A filter of 10 slices needs at least 1792 bytes."},
      {"sbf(memory=640, fpr=1e-9, max=15)", Error::too_small,
       "kind sbf would have to decrement more cells than it has",
       "Use more memory, fewer slices or a larger fpr."},
      {"sbf(memory=64kB, fpr=1e-300, k=1)", Error::too_small,
       "kind sbf would have to decrement more cells than it has",
       "Use more memory, fewer slices or a larger fpr."},
      {"sbf(memory=640, p=513)", Error::too_small,
       "kind sbf would have to decrement more cells than it has",
       "Use more memory, fewer slices or a larger fpr."},
  });
  // The memory that the hint names is enough.
  parameters_of("sbf(memory=640)");
  parameters_of("sbf(memory=1792, slices=10)");
}

BOOST_AUTO_TEST_CASE(choices) {
  check_cases({
      {"sbf(nulls=maybe)", Error::syntax, "invalid value for option \"nulls\": \"maybe\"",
       "Valid values are: distinct, not distinct."},
      {"sbf(layout=square)", Error::syntax, "invalid value for option \"layout\": \"square\"",
       "Valid values are: scattered, blocked."},
  });
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
  const char* const message = "invalid input syntax for type streamfilter";
  const char* const hint = "for example sbf(memory=64kB, fpr=0.01).";
  check_cases({
      {"", Error::syntax, message, hint},
      {"   ", Error::syntax, message, hint},
      {"(", Error::syntax, message, hint},
      {"sbf memory=64kB", Error::syntax, message, hint},
      {"sbf(", Error::syntax, message, hint},
      {"sbf(,)", Error::syntax, message, hint},
      {"sbf(memory)", Error::syntax, message, hint},
      {"sbf(memory=64kB", Error::syntax, message, hint},
      {"sbf(memory=64kB,", Error::syntax, message, hint},
      {"sbf(memory=64kB,)", Error::syntax, message, hint},
      {"sbf(memory='64kB)", Error::syntax, message, hint},
      {"sbf(memory='64kB'x)", Error::syntax, message, hint},
      {"sbf(=64kB)", Error::syntax, message, hint},
      {"sbf(kind=bloom)", Error::syntax, message, hint},
  });
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
