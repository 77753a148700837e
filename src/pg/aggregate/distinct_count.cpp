#include "pg/server/postgres.hpp"

#include "pg/aggregate/distinct_count.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/saturate.hpp"
#include "pg/server/problem_report.hpp"
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

}  // namespace streamfilter::pg
