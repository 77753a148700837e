#include "core/filter/time_span.hpp"

#include <boost/test/unit_test.hpp>
#include <string>

namespace streamfilter {
namespace {

constexpr std::int64_t kSecond = 1000000, kHour = 3600 * kSecond, kDay = 24 * kHour,
                       kMonth = 30 * kDay, kYear = 12 * kMonth;

std::int64_t span(const char* text) {
  std::int64_t result;
  return parse_time_span(text, result) ? result : -1;
}

BOOST_AUTO_TEST_SUITE(time_span)

BOOST_AUTO_TEST_CASE(what_the_server_reads_is_read) {
  BOOST_TEST(span("00:10") == 600 * kSecond);
  BOOST_TEST(span("00:00:10.25") == 10250000);
  BOOST_TEST(span("100:00") == 100 * kHour);
  BOOST_TEST(span("1 month") == kMonth);
  BOOST_TEST(span("1 year 2 mons 3 days 04:05:06") ==
             kYear + 2 * kMonth + 3 * kDay + 4 * kHour + 306 * kSecond);
  BOOST_TEST(span("1 day 2 hours") == kDay + 2 * kHour);
  BOOST_TEST(span("1h30m") == kHour * 3 / 2);
  BOOST_TEST(span("1 Minute") == 60 * kSecond);
  BOOST_TEST(span("1.5 HOURS") == kHour * 3 / 2);
  BOOST_TEST(span(" 3 weeks ") == 21 * kDay);
  BOOST_TEST(span("250 ms") == 250000);
  BOOST_TEST(span("26177172834119017 us") == 26177172834119017);
  BOOST_TEST(span("0 s") == 0);
}

BOOST_AUTO_TEST_CASE(anything_else_is_not) {
  for (const char* text : {"",           " ",         "@",           "10",       "10 fortnights",
                           "1 day 5",    "hour",      "1 hour ago",  "-1 hour",  "1 day -2 hours",
                           "3 02:00",    "00:10.5",   "1:30:00.5 5", "1-2",      "PT10M",
                           "@ 1 minute", "1 century", "00:60",       "00:00:60", "1:2:3:4",
                           "1 m x",      "1,5 hours", "-",           "+ 1 day",  "1:-2",
                           "0x10 s",     "inf s",     "nan s",       "1e999 s",  "5 rows",
                           "1 day\x01",  "1..5 s"})
    BOOST_TEST(span(text) == -1, text);
}

BOOST_AUTO_TEST_CASE(the_longest_is_the_end) {
  BOOST_TEST(span("1e30 years") == kLongestSpan);
  BOOST_TEST(span("9999999999999999999 years 9999999999999999999 years") == kLongestSpan);
}

BOOST_AUTO_TEST_CASE(what_is_written_reads_the_same) {
  for (const char* text : {"1 month", "1 day 2 hours", "00:10", "1 us", "90 min", "1.5 ms",
                           "26177172834119017 us", "24:00:01"}) {
    char written[64];
    TextWriter out(written, sizeof written);
    write_time_span(out, static_cast<std::uint64_t>(span(text)));
    BOOST_TEST(span(written) == span(text), text << " as " << written);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace streamfilter
