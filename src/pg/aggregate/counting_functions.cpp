// Counts of keys in values: streamfilter_distinct_count, streamfilter_distinct_error,
// streamfilter_overlap.
#include "pg/server/postgres.hpp"

#include <algorithm>
#include <cmath>

#include "core/kind/kind_registry.hpp"
#include "pg/aggregate/distinct_count.hpp"
#include "pg/server/named_row.hpp"
#include "pg/value/compact_value.hpp"
#include "pg/value/value.hpp"

namespace streamfilter::pg {
namespace {

int64 count_words_of(const WordsOfValue& value) {
  if (!exa_log_log::have_room(value.parameters, value.words, value.count))
    return count_keys(filter_of(value));
  return count_distinct_words(value.parameters, value.words, value.count, value.count);
}

int64 count_value(Datum value) {
  if (uint32 count; count_few(value, &count)) return count;
  if (WordsOfValue words; read_words(value, &words)) return count_words_of(words);
  return count_keys(get_value(value));
}

int64 count_union(Datum first, Datum second) {
  if (WordsOfValue words, more; read_words(first, &words) && read_words(second, &more)) {
    add_words(&words, more);
    return count_words_of(words);
  }
  Header* both = copy_value(get_value(first), CurrentMemoryContext);
  merge_datum(both, second);
  settle_value(both);
  return count_keys(both);
}

// The relative standard error for many keys; 0: not known.
double relative_error_of(Datum value) {
  const Parameters& p = get_value_header(value)->parameters;
  const auto error = find_ops(p.kind)->distinct_error;
  return error != nullptr ? error(p) : 0;
}

}  // namespace
}  // namespace streamfilter::pg

using namespace streamfilter;
using namespace streamfilter::pg;

// streamfilter_distinct_count(filter), # filter: number of distinct keys that it has seen.
SF_FUNCTION(streamfilter_distinct_count) { PG_RETURN_INT64(count_value(PG_GETARG_DATUM(0))); }

// streamfilter_distinct_error(filter): the relative standard error of that number.
SF_FUNCTION(streamfilter_distinct_error) {
  const double error = relative_error_of(PG_GETARG_DATUM(0));
  if (error == 0) PG_RETURN_NULL();
  PG_RETURN_FLOAT8(error);
}

// streamfilter_overlap(a, b): the keys of each and of both, and the standard error of the latter,
// in keys: each of the three counts behind it has its own.
SF_FUNCTION(streamfilter_overlap) {
  NamedRow row(fcinfo);
  const Datum first = PG_GETARG_DATUM(0), second = PG_GETARG_DATUM(1);
  const int64 a = count_value(first), b = count_value(second), all = count_union(first, second);
  const int64 both = std::clamp<int64>(a + b - all, 0, std::min(a, b));
  const double error =
      relative_error_of(first) *
      std::hypot(static_cast<double>(a), static_cast<double>(b), static_cast<double>(all));
  row.put_count("in_first", a);
  row.put_count("in_both", both);
  row.put_count("in_second", b);
  if (relative_error_of(first) != 0) row.put("error", Float8GetDatum(error));
  PG_RETURN_DATUM(row.datum());
}
