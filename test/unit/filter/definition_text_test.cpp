// A definition as text, `sbf(memory=64kB, fpr=0.01)`, and complete parameters are two forms of the
// same thing: printing and reading back loses nothing.
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <string>
#include <vector>

#include "core/filter/options.hpp"
#include "unit/support/filters.hpp"

using namespace streamfilter;
using namespace unit;

BOOST_AUTO_TEST_SUITE(definition_text)

namespace {

std::string number_text(double number) {
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", number);
  return text;
}

// Some valid values of an option, as users write them.
std::vector<std::string> values_of(const OptionSpec& option) {
  const double low = option.low, high = option.high;
  switch (option.type) {
    case OptionType::integer:
      return {number_text(low), number_text(std::min(low + 2, high)), number_text(high)};
    case OptionType::real:
      return {number_text(low), number_text(low + (high - low) / 3), number_text(high)};
    case OptionType::choice: {
      std::vector<std::string> all;
      for (unsigned i = 0; option.choices[i] != nullptr; ++i) all.push_back(option.choices[i]);
      return all;
    }
    case OptionType::reals: {
      const std::string one = number_text(low + (high - low) / 3);
      std::string list = one;
      for (unsigned i = 1; i < option.max_count; ++i) list += ", " + number_text(high);
      return {'\'' + one + '\'', '\'' + list + '\''};
    }
    case OptionType::span: return {"'1 day'", "'90 minutes'", "'1500 ms'", "'1000000 rows'"};
  }
  return {};
}

// The kind's own options, one at a time with several values; and none.
std::vector<std::string> own_options(const FilterOps& ops) {
  std::vector<std::string> all = {""};
  for (const OptionSpec& option : ops.options)
    for (const std::string& value : values_of(option))
      all.push_back(std::string(", ") + option.name + "=" + value);
  return all;
}

bool same(const Parameters& a, const Parameters& b) { return std::memcmp(&a, &b, sizeof a) == 0; }

// The options that a definition gives, one by one, make the same definition again.
void check_given(const std::string& text) {
  Definition parsed, again;
  Problem problem;
  std::size_t used;
  BOOST_REQUIRE(parse_definition(text.data(), text.size(), parsed, used, problem));
  for (ListedOptions given(parsed); given.next();)
    BOOST_TEST(set_option(again, given.name(), given.value(), problem),
               text << ": " << given.name() << "=" << given.value() << ": " << problem.message);
  BOOST_TEST(same(parsed.parameters, again.parameters), text);
  BOOST_TEST(parsed.given == again.given, text);
  BOOST_TEST((complete(parsed, problem) && complete(again, problem)), text);
  BOOST_TEST(same(parsed.parameters, again.parameters), text);
}

// Checks all that must hold for a definition that can be completed.
bool holds_for(const std::string& text) {
  Parameters parameters{}, again{};
  Problem problem;
  if (!make_parameters(text, parameters, problem)) {
    BOOST_TEST((problem.error != Error::none && problem.message[0] != '\0'), text);
    return false;
  }
  const std::string printed = text_of(parameters);
  BOOST_TEST_CONTEXT(text << " -> " << printed) {
    BOOST_TEST(make_parameters(printed, again, problem), problem.message);
    BOOST_TEST(same(parameters, again));
    BOOST_TEST(text_of(again) == printed);

    Definition definition = definition_of(parameters);
    BOOST_TEST(complete(definition, problem), problem.message);
    BOOST_TEST(same(parameters, definition.parameters));
    check_given(text);
    check_given(printed);

    Header header;
    format_header(&header, parameters);
    BOOST_TEST(check_header(header, problem), problem.message);
  }
  return true;
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_kind_and_option_round_trips, *boost::unit_test::label("long")) {
  for (const FilterOps* ops : all_ops()) {
    unsigned valid = 0;
    const std::string name = ops->name;
    for (const std::string& own : own_options(*ops))
      for (const char* memory : {"1001", "2kB", "1000000", "64MB", "5GB", "3TB"})
        for (const char* keys : {"", ", keys=1000", ", keys=3e9"})
          for (const char* fpr : {"", ", fpr=0.3", ", fpr=0.001", ", fpr=0.012345678901234567"})
            for (const char* rest :
                 {"", ", nulls=not distinct, slices=7", ", seed=18446744073709551615, slices=1"})
              valid += holds_for(name + "(memory=" + memory + keys + fpr + rest + own + ")");
    BOOST_TEST(valid > 0u, "kind " << name << " could not be defined at all");
  }
}

BOOST_AUTO_TEST_CASE(without_memory_it_round_trips_too) {
  for (const char* text : {"sbf()", "auto()", "bloom(keys=1)", "bloom(keys=1000000, fpr=1e-9)",
                           "auto(keys=1000000)", "bloom(k=64)", "sbf(gap=1e9)", "sbf(max=15)"})
    BOOST_TEST(holds_for(text), text);
}

BOOST_AUTO_TEST_CASE(what_is_given_can_be_listed) {
  for (const char* text :
       {"bloom(memory=1MB, k=4, slicing=diced, dice=vh, slices='3,2')",
        "auto(window='10 minutes', keys=1000)", "bloom(memory=1MB, k=10, k1=5, k2=2)",
        "bloom(memory=1MB, k=4, layout=blocked)",
        "bloom(memory=1MB, k=4, slicing=vertical, seed=0, nulls=distinct)",
        "ibfmc(importance_range='0,1e-300', memory=64kB)"})
    BOOST_TEST_CONTEXT(text) check_given(text);
  Definition definition;
  Problem problem;
  BOOST_TEST(set_option(definition, "keys", "7", problem));
  ListedOptions given(definition);
  std::string all;
  while (given.next()) all += std::string(given.name()) + "=" + given.value() + ";";
  BOOST_TEST(all == "kind=auto;keys=7;");
}

BOOST_AUTO_TEST_CASE(a_definition_prints_what_is_not_the_default) {
  BOOST_TEST(text_of(parameters_of("sbf(memory=64kB, fpr=0.01)")) ==
             "sbf(memory=64kB, fpr=0.01, max=1, cell_bits=1, k=3, p=11)");
  BOOST_TEST(text_of(parameters_of("sbf(memory=64kB,fpr=0.01,gap=2000,seed=7,slices=2)")) ==
             "sbf(memory=64kB, fpr=0.01, seed=7, slices=2, max=7, cell_bits=3, k=6, p=65, "
             "gap=2000)");
  BOOST_TEST(text_of(parameters_of("bloom(keys=10000, nulls=not distinct, memory=16kB)")) ==
             "bloom(memory=16kB, keys=10000, nulls=not distinct, k=9)");
}

BOOST_AUTO_TEST_CASE(defaults_may_be_written_out) {
  const Parameters brief = parameters_of("sbf(memory=64kB, fpr=0.01)");
  BOOST_TEST(same(brief, parameters_of("sbf(memory=65536, fpr=1e-2, layout=scattered, seed=0, "
                                       "nulls=distinct, slices=1, k=3, p=11, max=1)")));
}

BOOST_AUTO_TEST_CASE(spaces_and_quotes_are_free) {
  const Parameters plain = parameters_of("sbf(memory=64kB, fpr=0.01, nulls=not distinct)");
  for (const char* text : {
           "sbf(memory=64kB,fpr=0.01,nulls=not distinct)",
           " \t\r\n sbf  (  memory  =  64kB  ,  fpr  =  0.01  ,  nulls  =  not distinct  ) ",
           "sbf(memory='64kB', fpr=\"0.01\", nulls='not distinct')",
           "sbf(memory=64 kB, nulls = \"not distinct\" , fpr=1e-2)",
       })
    BOOST_TEST(same(plain, parameters_of(text)), text);
}

BOOST_AUTO_TEST_CASE(whole_numbers_may_have_an_exponent) {
  const Parameters plain = parameters_of("bloom(keys=2000000)");
  for (const char* keys : {"2e6", "2000000.0", "0.002e9", "20000000e-1"})
    BOOST_TEST(same(plain, parameters_of(std::string("bloom(keys=") + keys + ")")), keys);
}

BOOST_AUTO_TEST_CASE(reading_stops_behind_the_parenthesis) {
  const std::string text = "sbf(memory=64kB, nulls='distinct'):body ) (";
  Definition definition;
  Problem problem;
  std::size_t used = 0;
  BOOST_TEST(parse_definition(text.data(), text.size(), definition, used, problem));
  BOOST_TEST(text.substr(used) == ":body ) (");
}

BOOST_AUTO_TEST_CASE(a_short_buffer_cuts_the_text) {
  const Parameters parameters = parameters_of("sbf(memory=64kB, fpr=0.01)");
  const std::string whole = text_of(parameters);
  for (std::size_t size = 1; size <= whole.size() + 1; ++size) {
    std::vector<char> buffer(size);
    const std::size_t length = print_definition(parameters, buffer.data(), size);
    BOOST_TEST(length == size - 1);
    BOOST_TEST(buffer[length] == '\0');
    BOOST_TEST(whole.compare(0, length, buffer.data()) == 0);
  }
}

BOOST_AUTO_TEST_CASE(an_option_prints_as_it_is_written) {
  const Parameters parameters = parameters_of("sbf(memory=64kB, p=13, k=4)");
  const FilterOps& ops = *find_ops("sbf");
  for (const OptionSpec& option : ops.options) {
    char text[64];
    const std::size_t length = print_option(parameters, option, text, sizeof text);
    BOOST_TEST(std::string(text, length) == std::to_string(option_value(parameters, option.name)));
  }
}

BOOST_AUTO_TEST_CASE(a_window_longer_than_a_double_is_exact) {
  const std::string window = "window=26177172834119017 us,";
  BOOST_TEST(text_of(parameters_of("timer(k=3, " + window + " tick=1 day)")).find(window) !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(one_of_a_unit_is_singular) {
  const auto text = [](const std::string& rest) {
    return text_of(parameters_of("timer(k=3, " + rest + ")"));
  };
  BOOST_TEST(text("window='1 days', tick='1 hours'").find("window=1 day, tick=1 hour,") !=
             std::string::npos);
  BOOST_TEST(text("window='2 days', tick='1 ms'").find("window=2 days, tick=1 ms,") !=
             std::string::npos);
  BOOST_TEST(
      text("window='1000 rows', tick='1 rows', slices=1").find("window=1000 rows, tick=1 row,") !=
      std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
