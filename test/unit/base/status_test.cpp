// A message that cuts a text from outside cuts it between two characters.
#include "core/base/status.hpp"

#include <boost/test/unit_test.hpp>
#include <cstring>
#include <string>

#include "fuzz/utf8.hpp"
#include "unit/support/filters.hpp"

using namespace streamfilter;

BOOST_AUTO_TEST_SUITE(status_test)

namespace {

const char* const kCharacters[] = {"x", "\xc3\xa9", "\xd1\x8f", "\xe2\x82\xac", "\xf0\x9f\x90\x98"};

std::string repeated(const std::string& character, std::size_t times,
                     const std::string& before = "") {
  std::string text = before;
  for (std::size_t i = 0; i < times; ++i) text += character;
  return text;
}

bool is_whole(const char* text) { return fuzz::is_utf8(text, std::strlen(text)); }

}  // namespace

BOOST_AUTO_TEST_CASE(an_excerpt_ends_with_a_whole_character) {
  for (const std::string character : kCharacters)
    for (const std::string before : {"", "a", "ab", "abc"})
      for (std::size_t most = 1; most <= Excerpt::kMax; ++most) {
        const std::string text = repeated(character, 100, before);
        const std::string cut = Excerpt(text.data(), text.size(), most).text();
        BOOST_TEST_REQUIRE(is_whole(cut.c_str()));
        BOOST_TEST_REQUIRE(cut.size() <= most);
        BOOST_TEST_REQUIRE(cut.size() + character.size() > most);
        BOOST_TEST_REQUIRE(text.compare(0, cut.size(), cut) == 0);
      }
}

BOOST_AUTO_TEST_CASE(a_short_text_is_its_own_excerpt) {
  for (const char* text : {"", "x", "\xd1\x8f", "\xff", "\x80\x80\x80\x80\x80"})
    BOOST_TEST(std::string(Excerpt(text).text()) == text);
}

BOOST_AUTO_TEST_CASE(bytes_that_are_no_characters_are_cut_anywhere) {
  const std::string text(200, '\x80');
  BOOST_TEST(std::string(Excerpt(text.c_str()).text()) == text.substr(0, Excerpt::kMax));
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_into_a_message_is_cut_by_characters) {
  for (const std::string character : kCharacters)
    for (const std::string before : {"", "a", "ab", "abc"}) {
      const std::string text = repeated(character, 500, before);
      Problem problem;
      problem.set(Error::syntax, "%s", text.c_str());
      problem.add_detail("%s", text.c_str());
      problem.add_hint("%s", text.c_str());
      BOOST_TEST(std::strlen(problem.message) + 2 + character.size() > sizeof problem.message);
      for (const char* part : {problem.message, problem.detail, problem.hint})
        BOOST_TEST(is_whole(part));
    }
}

BOOST_AUTO_TEST_CASE(every_error_quotes_whole_characters) {
  for (const std::string character : kCharacters)
    for (const std::size_t before : {0, 1, 2, 3, 600, 601, 602, 603}) {
      const std::string text =
          repeated(character, before < 4 ? 60 : 600, std::string(before % 600, 'y'));
      for (const std::string& definition :
           {"sbf(" + text, "sbf(memory=" + text + ")", "sbf(slices='" + text + ",1')",
            "sbf(fpr=" + text + ")", "timer(window=" + text + ")", "sbf(layout=" + text + ")",
            "ibfmc(importance_range='" + text + "')", "sbf(k=99" + text + ")", text}) {
        Parameters parameters;
        Problem problem;
        BOOST_TEST_REQUIRE(!unit::make_parameters(definition, parameters, problem));
        for (const char* part : {problem.message, problem.detail, problem.hint})
          BOOST_TEST(is_whole(part), part);
      }
      Definition definition;
      Problem problem;
      BOOST_TEST_REQUIRE(!set_option(definition, text.c_str(), "1", problem));
      BOOST_TEST(is_whole(problem.message));
      BOOST_TEST_REQUIRE(!set_option(definition, "kind", text.c_str(), problem));
      BOOST_TEST(is_whole(problem.message));
    }
}

BOOST_AUTO_TEST_SUITE_END()
