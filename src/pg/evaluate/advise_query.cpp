// streamfilter_advise: the kinds of filters for a stream, with predicted error rates; for a query,
// tried on a sample of its rows.
#include "pg/server/postgres.hpp"

#include "core/advise/advise.hpp"
#include "core/base/math_policy.hpp"
#include "pg/server/progress.hpp"
#include "pg/value/value.hpp"

namespace streamfilter::pg {
namespace {

// ---- the query's rows ---------------------------------------------------------------------------

// A sample of a query's keys, with all their rows.

struct Sample {
  SampledRows rows;
  int64 read;        // rows with a key
  bool is_complete;  // the query was read to its end
};

constexpr int kFetched = 1024;
constexpr Size kWanted = 1 << 18;  // rows: more only if the sample cannot be smaller
constexpr Size kMost = 1 << 22;

class Sampler {
 public:
  explicit Sampler(double least) : least_(least), hashes_(allocate<uint64>(kWanted)) {}

  // False: there is no room.
  bool add(uint64 hash) {
    if (!has(hash)) return true;
    if (count_ == room_ && !make_room()) return false;
    if (has(hash)) hashes_[count_++] = hash;
    return true;
  }

  SampledRows rows() {
    Size size = 2;
    while (size < 2 * count_) size *= 2;
    auto* table = static_cast<uint64*>(palloc_extended(sizeof(uint64) * size, MCXT_ALLOC_HUGE));
    auto* repeated = allocate<bool>(count_ + 1);
    const Size repeats = find_repeats(hashes_, count_, table, size, repeated);
    pfree(table);
    return {hashes_, repeated, count_, std::ldexp(1, -halvings_), repeats};
  }

 private:
  bool has(uint64 hash) const {
    return halvings_ == 0 || sampling_position(hash) >> (64 - halvings_) == 0;
  }

  bool make_room() {
    while (count_ == room_ && std::ldexp(1, -halvings_ - 1) >= least_) {
      ++halvings_;
      Size kept = 0;
      for (Size i = 0; i < count_; ++i)
        if (has(hashes_[i])) hashes_[kept++] = hashes_[i];
      count_ = kept;
    }
    if (count_ < room_) return true;
    if (room_ == kMost) return false;
    room_ *= 2;
    hashes_ = static_cast<uint64*>(repalloc_huge(hashes_, sizeof(uint64) * room_));
    return true;
  }

  double least_;
  uint64* hashes_;
  Size count_ = 0, room_ = kWanted;
  int halvings_ = 0;
};

TypeHasher* hasher_of_key(TupleDesc source, const char* function) {
  if (source->natts != 1)
    ereport(ERROR, (errcode(ERRCODE_INVALID_COLUMN_REFERENCE),
                    errmsg("the query of %s must have one column, not %d", function, source->natts),
                    errhint("It is the key: ROW(a, b) for several columns.")));
  const FormData_pg_attribute* key = TupleDescAttr(source, 0);
  return make_type_hasher(key->atttypid, key->attcollation, "the key of the query");
}

// Runs the query, whose only column is the key, and keeps the hashes of as large a sample as fits;
// its rate is a power of 1/2, not below `least`. If even that does not fit, reading ends early. SPI
// must be connected.
Sample sample_rows(const char* query, double least, const char* function, Progress* progress) {
  Portal portal = open_query(query, function);
  TypeHasher* hasher = hasher_of_key(portal->tupDesc, function);
  Sampler sampler(least);
  Sample sample{};
  bool has_room = true;
  read_in_batches(portal, kFetched, progress, [&] {
    for (uint64 i = 0; i < SPI_processed && has_room; ++i) {
      bool isnull;
      uint64 hash;
      const Datum key = heap_getattr(SPI_tuptable->vals[i], 1, portal->tupDesc, &isnull);
      if (isnull || !hash_key_value(hasher, key, KeyRule{}, &hash)) continue;
      has_room = sampler.add(hash);
      sample.read += has_room;
    }
    return has_room;
  });
  sample.is_complete = has_room;
  sample.rows = sampler.rows();
  return sample;
}

// ---- both forms ---------------------------------------------------------------------------------

// What both forms are asked for, and answer.

// Raises 22023 for what is out of range.
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

// Puts what does not depend on how the rates were found into a row. Returns the note about it.
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

// ---- trials -------------------------------------------------------------------------------------

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
  MemoryContext context = make_context("streamfilter trial");
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
  auto* tried = allocate<Tried>(count);
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
  auto* advice = allocate<Advice>(kMaxAdvice);
  const unsigned count = advise(requested, stream, advice, problem);
  if (count == 0) raise(problem);
  for (unsigned i = 0; i < count; ++i) {
    NamedRow row(set->setDesc);
    row.put("note", put_prototype(row, advice[i], distinct_rows));
    row.add_to(set);
  }
  return static_cast<Datum>(0);
}

}  // namespace streamfilter::pg
