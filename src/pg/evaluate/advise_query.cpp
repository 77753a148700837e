// streamfilter_advise of a query: the kinds of filters for a stream, tried on a sample of it.
#include "pg/server/postgres.hpp"

extern "C" {
#include "executor/spi.h"
#include "miscadmin.h"
}

#include <algorithm>
#include <cmath>

#include "core/advise/advise.hpp"
#include "core/base/saturate.hpp"
#include "pg/evaluate/advise_function.hpp"
#include "pg/evaluate/sampled_rows.hpp"
#include "pg/server/named_row.hpp"
#include "pg/value/value.hpp"

namespace streamfilter::pg {
namespace {

constexpr const char* kName = "streamfilter_advise";
constexpr uint64 kLeastMemory = 64 * 1024;        // of a filter on trial
constexpr uint64 kMostMemory = 64 * 1024 * 1024;  // more makes no difference to a sample
constexpr double kFactors[] = {1, 0.5, 2};
constexpr int kSizes = 3;
constexpr Size kBatch = 16384;

struct Tried {
  Recipe recipe;
  Advice advice;  // for the whole stream
  Forecast forecast[kSizes];
};

// Runs one filter of a size that fits the sample. False: its kind does not work so.
bool try_filter(const Recipe& recipe, const Definition& requested, double factor,
                const SampledRows& rows, Forecast* forecast) {
  const double memory = factor * rows.rate * static_cast<double>(requested.parameters.memory);
  Parameters parameters;
  if (!follow(recipe, requested, std::min(saturate<uint64>(memory), kMostMemory), rows.distinct(),
              parameters))
    return false;
  MemoryContext context =
      AllocSetContextCreate(CurrentMemoryContext, "streamfilter trial", ALLOCSET_DEFAULT_SIZES);
  Trial trial(make_value(parameters, context));
  for (Size at = 0; at < rows.count; at += kBatch) {
    CHECK_FOR_INTERRUPTS();
    trial.take(rows, at, std::min<Size>(at + kBatch, rows.count));
  }
  *forecast = trial.forecast();
  MemoryContextDelete(context);
  return true;
}

Forecast unknown_forecast() { return {{NAN, NAN}, {NAN, NAN}}; }

bool try_recipe(const Recipe& recipe, const Definition& requested, const SampledRows& rows,
                Tried* tried) {
  Advice& advice = tried->advice;
  tried->recipe = recipe;
  if (!follow(recipe, requested, requested.parameters.memory, rows.distinct() / rows.rate,
              advice.parameters))
    return false;
  advice.fpr_bound = find_ops(recipe.kind)->fpr_bound(advice.parameters);
  advice.keeps_fpr = advice.fpr_bound <= requested.wanted_fpr();
  if (!advice.keeps_fpr) advice.parameters.fpr = 0;
  for (int i = 0; i < kSizes; ++i)
    if (!try_filter(recipe, requested, kFactors[i], rows, &tried->forecast[i])) {
      if (i == 0) return false;
      tried->forecast[i] = unknown_forecast();
    }
  advice.predicted = {tried->forecast[0].fpr.rate, tried->forecast[0].fnr.rate};
  return true;
}

// First kinds that promise fpr, by their misses; then others, by how far they exceed it.
bool is_better(const Tried& a, const Tried& b, double fpr) {
  if (a.advice.keeps_fpr != b.advice.keeps_fpr) return a.advice.keeps_fpr;
  const Prediction &one = a.advice.predicted, &other = b.advice.predicted;
  if (!a.advice.keeps_fpr) {
    const double beyond = std::max(one.fpr, fpr), beyond_other = std::max(other.fpr, fpr);
    if (beyond != beyond_other) return beyond < beyond_other;
  }
  if (!std::isnan(one.fnr) && one.fnr != other.fnr) return one.fnr < other.fnr;
  return one.fpr < other.fpr;
}

// For every kind, keeps the best recipe of each promise; one with `keys` only if it does better.
int keep_best(Tried* tried, int count, double fpr) {
  for (int i = 1; i < count; ++i)  // stable, so that equal ones stay in the order of kinds
    for (int at = i; at > 0 && is_better(tried[at], tried[at - 1], fpr); --at)
      std::swap(tried[at], tried[at - 1]);
  int kept = 0;
  for (int i = 0; i < count; ++i) {
    const bool has_better = std::any_of(tried, tried + kept, [&](const Tried& other) {
      return other.recipe.kind == tried[i].recipe.kind &&
             (tried[i].recipe.is_for_keys || !other.recipe.is_for_keys);
    });
    if (!has_better) tried[kept++] = tried[i];
  }
  return kept;
}

void put_row(ReturnSetInfo* set, const Tried& tried, const Sample& sample) {
  NamedRow row(set->setDesc);
  const char* note = put_prototype(row, tried.advice, sample.rows.distinct() / sample.rows.rate);
  row.put_rate("fpr_error", tried.forecast[0].fpr.error);
  row.put_rate("fnr_error", tried.forecast[0].fnr.error);
  row.put_rate("fnr_half", tried.forecast[1].fnr.rate);
  row.put_rate("fnr_half_error", tried.forecast[1].fnr.error);
  row.put_rate("fnr_double", tried.forecast[2].fnr.rate);
  row.put_rate("fnr_double_error", tried.forecast[2].fnr.error);
  row.put_count("sampled_rows", sample.rows.count);
  row.put("note", sample.is_complete ? note
                                     : psprintf("%s; the first %lld rows", note,
                                                static_cast<long long>(sample.read)));
  row.add_to(set);
}

void require_rows(const SampledRows& rows) {
  if (rows.count > rows.repeats) return;
  ereport(ERROR, (errcode(ERRCODE_NO_DATA), errmsg("there are no rows to advise from"),
                  errhint("The query must give keys of the stream, in its order.")));
}

}  // namespace
}  // namespace streamfilter::pg

using namespace streamfilter;
using namespace streamfilter::pg;

// streamfilter_advise(query, memory, fpr): a row per kind, best first, as tried on the query's
// rows.
SF_FUNCTION(streamfilter_advise_query) {
  ReturnSetInfo* set = begin_rows(fcinfo);
  const char* query = text_to_cstring(PG_GETARG_TEXT_PP(0));
  const Definition requested =
      read_request(text_to_cstring(PG_GETARG_TEXT_PP(1)), PG_GETARG_FLOAT8(2));
  SPI_connect();
  Progress progress(Command::advise, InvalidOid, kName);
  const double memory = static_cast<double>(requested.parameters.memory);
  const Sample sample = sample_rows(query, kLeastMemory / memory, kName, &progress);
  require_rows(sample.rows);
  Recipe recipes[kMaxRecipes];
  const unsigned count = list_recipes(recipes);
  auto* tried = static_cast<Tried*>(palloc(sizeof(Tried) * count));
  int usable = 0;
  progress.begin("trying filters", count, "filters");
  for (unsigned i = 0; i < count; ++i) {
    usable += try_recipe(recipes[i], requested, sample.rows, &tried[usable]);
    progress.advance(1);
  }
  const int kept = keep_best(tried, usable, requested.wanted_fpr());
  for (int i = 0; i < kept; ++i) put_row(set, tried[i], sample);
  progress.end();
  SPI_finish();
  return static_cast<Datum>(0);
}
