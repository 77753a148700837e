#include "pg/server/postgres.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/saturate.hpp"
#include "core/kind/kind_registry.hpp"
#include "pg/server/named_row.hpp"
#include "pg/server/problem_report.hpp"
#include "pg/value/compact_value.hpp"
#include "pg/value/distinct_count.hpp"
#include "pg/value/value.hpp"

namespace streamfilter::pg {

Parameters parse_prototype(const char* definition_text) {
  Definition definition;
  Size used;
  Problem problem;
  if (!parse_definition(definition_text, strlen(definition_text), definition, used, problem))
    raise(problem);
  const Definition asked = definition;
  if (!complete(definition, problem) || !check_request(asked, definition, problem)) raise(problem);
  if (definition_text[used] != '\0')
    ereport(ERROR, (errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
                    errmsg("invalid definition of a filter: \"%s\"", definition_text),
                    errdetail("There is more behind the closing parenthesis."),
                    errhint("Give a definition like 'sbf(memory=64kB, fpr=0.01)'.")));
  return definition.parameters;
}

int64 count_keys(const Header* filter) {
  bool full;
  const double keys = distinct_keys(filter, full);
  if (std::isnan(keys))
    ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                    errmsg("filters of kind %s cannot count distinct keys", ops_of(filter).name),
                    errhint("Use a prototype of kind ell or bloom.")));
  if (full)
    ereport(WARNING, (errmsg("the filter behind approx_count_distinct is full"),
                      errdetail("There are more distinct keys than it can count; the result is a "
                                "lower bound."),
                      errhint("Leave the prototype out, or give one of kind ell, which is never "
                              "full, or more memory.")));
  return saturate<int64>(std::round(keys));
}

int64 count_distinct_words(const Parameters& parameters, const exa_log_log::Word* words,
                           uint32 places, uint32 count) {
  auto* scratch = static_cast<exa_log_log_model::Likelihood*>(
      palloc0(parameters.slices * sizeof(exa_log_log_model::Likelihood)));
  const double keys = exa_log_log::distinct_words(parameters, words, places, count, scratch);
  pfree(scratch);
  return saturate<int64>(std::round(keys));
}

// Counts of keys in values: streamfilter_distinct_count, streamfilter_distinct_error,
// streamfilter_overlap.

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
