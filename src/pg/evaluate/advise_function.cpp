// streamfilter_advise: the kinds of filters for a stream, with predicted error rates.
#include "pg/server/postgres.hpp"

extern "C" {
#include "funcapi.h"
#include "utils/tuplestore.h"
}

#include <charconv>
#include <cmath>

#include "core/advise/advise.hpp"
#include "core/base/saturate.hpp"
#include "core/filter/filter.hpp"
#include "pg/evaluate/requested_filter.hpp"
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

namespace {

void put_real(Datum* value, bool* isnull, double real) {
  *isnull = std::isnan(real);
  *value = Float8GetDatum(real);
}

void put_advice(ReturnSetInfo* set, const Advice& advice, double distinct_rows) {
  const Parameters& parameters = advice.parameters;
  char prototype[kMaxDefinitionText], note[256];
  print_definition(parameters, prototype, sizeof prototype);
  explain(advice, note, sizeof note);
  const double window = window_keys(parameters, 0.01);
  Datum values[8];
  bool isnull[8] = {};
  values[0] = CStringGetTextDatum(prototype);
  put_real(&values[1], &isnull[1], advice.predicted.fpr);
  put_real(&values[2], &isnull[2], advice.predicted.fnr);
  values[3] = Float8GetDatum(static_cast<double>(parameters.memory) * 8 / distinct_rows);
  values[4] = CStringGetTextDatum(find_ops(parameters.kind)->name);
  values[5] = Float8GetDatum(advice.fpr_bound);
  isnull[6] = !(window < 9.2e18);
  values[6] = Int64GetDatum(saturate<int64>(window));
  values[7] = CStringGetTextDatum(note);
  tuplestore_putvalues(set->setResult, set->setDesc, values, isnull);
}

}  // namespace
}  // namespace streamfilter::pg

using namespace streamfilter;
using namespace streamfilter::pg;

// streamfilter_advise(memory, fpr, rows, distinct_rows [, gap]): a row per kind, best first; no
// rows if one of the first four is NULL.
SF_FUNCTION(streamfilter_advise) {
  InitMaterializedSRF(fcinfo, 0);
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
  for (unsigned i = 0; i < count; ++i)
    put_advice(reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo), advice[i], distinct_rows);
  return static_cast<Datum>(0);
}
