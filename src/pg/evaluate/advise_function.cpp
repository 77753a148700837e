// streamfilter_advise: the kinds of filters for a stream, with predicted error rates.
#include "pg/server/postgres.hpp"

#include <charconv>

#include "core/advise/advise.hpp"
#include "core/base/saturate.hpp"
#include "core/filter/filter.hpp"
#include "pg/evaluate/advise_function.hpp"
#include "pg/server/named_row.hpp"
#include "pg/server/problem_report.hpp"

namespace streamfilter::pg {

Definition read_request(const char* memory, double fpr) {
  Definition requested;
  Problem problem;
  char text[64] = "";
  *std::to_chars(text, text + sizeof text - 1, fpr).ptr = '\0';
  if (!set_option(requested, "memory", memory, problem) ||
      !set_option(requested, "fpr", text, problem))
    raise(problem);
  return requested;
}

const char* put_prototype(NamedRow& row, const Advice& advice, double distinct_rows) {
  const Parameters& parameters = advice.parameters;
  char prototype[kMaxDefinitionText], note[256];
  print_definition(parameters, prototype, sizeof prototype);
  explain(advice, note, sizeof note);
  const double window = window_keys(parameters, 0.01);
  row.put("prototype", prototype);
  row.put_rate("predicted_fpr", advice.predicted.fpr);
  row.put_rate("predicted_fnr", advice.predicted.fnr);
  row.put_rate("bits_per_key", static_cast<double>(parameters.memory) * 8 / distinct_rows);
  row.put("kind", find_ops(parameters.kind)->name);
  row.put_rate("fpr_bound", advice.fpr_bound);
  if (window < 9.2e18) row.put_count("window_keys", saturate<int64>(window));
  return pstrdup(note);
}
}  // namespace streamfilter::pg

using namespace streamfilter;
using namespace streamfilter::pg;

// streamfilter_advise(memory, fpr, rows, distinct_rows [, gap]): a row per kind, best first; no
// rows if one of the first four is NULL.
SF_FUNCTION(streamfilter_advise) {
  ReturnSetInfo* set = begin_rows(fcinfo);
  for (int i = 0; i < 4; ++i)
    if (PG_ARGISNULL(i)) return static_cast<Datum>(0);
  const double rows = PG_GETARG_FLOAT8(2), distinct_rows = PG_GETARG_FLOAT8(3),
               gap = PG_ARGISNULL(4) ? 0 : PG_GETARG_FLOAT8(4);
  Problem problem;
  Stream stream;
  if (!describe_stream(rows, distinct_rows, PG_ARGISNULL(4) ? nullptr : &gap, stream, problem))
    raise(problem);
  const Definition requested =
      read_request(text_to_cstring(PG_GETARG_TEXT_PP(0)), PG_GETARG_FLOAT8(1));
  auto* advice = static_cast<Advice*>(palloc(sizeof(Advice) * kMaxAdvice));
  const unsigned count = advise(requested, stream, advice, problem);
  if (count == 0) raise(problem);
  for (unsigned i = 0; i < count; ++i) {
    NamedRow row(set->setDesc);
    row.put("note", put_prototype(row, advice[i], distinct_rows));
    row.add_to(set);
  }
  return static_cast<Datum>(0);
}
