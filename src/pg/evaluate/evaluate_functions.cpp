// streamfilter_evaluate and streamfilter_profile: error rates of filters on the user's own data;
// streamfilter_slice_of: cutting a stream into parts by key.
#include "pg/server/postgres.hpp"

#include "core/base/math_policy.hpp"
#include "pg/evaluate/evaluation.hpp"
#include "pg/server/rows.hpp"
#include "pg/value/value.hpp"

namespace streamfilter::pg {
namespace {

struct Filters {
  int count;
  const Header** values;
};

Filters read_filters(FunctionCallInfo fcinfo, int argument, const char* function) {
  ArrayType* array = PG_GETARG_ARRAYTYPE_P(argument);
  Datum* elements;
  bool* isnull;
  Filters filters;
  deconstruct_array(array, ARR_ELEMTYPE(array), -1, false, TYPALIGN_DOUBLE, &elements, &isnull,
                    &filters.count);
  if (filters.count < 1 || filters.count > kMaxEvaluated)
    ereport(ERROR, (errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
                    errmsg("%s takes 1 to %d filters at a time, not %d", function, kMaxEvaluated,
                           filters.count)));
  filters.values = allocate<const Header*>(filters.count);
  for (int i = 0; i < filters.count; ++i) {
    if (isnull[i])
      ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
                      errmsg("filter %d of %s must not be null", i + 1, function)));
    filters.values[i] = get_value(elements[i]);
  }
  return filters;
}

// Answers of one filter for a group of rows.
struct ErrorCounts {
  int64 false_positives;
  int64 false_negatives;
  double false_positive_importance;
  double false_negative_importance;
};

// A group of rows, and every filter's answers for it.
struct RowGroup {
  double from, to;
  int64 rows;
  int64 distinct_rows;
  double importance;
  ErrorCounts errors[kMaxEvaluated];
};

void count_row(RowGroup* group, const JudgedRow& row, int filters) {
  const bool is_new = row.previous == 0;
  ++group->rows;
  group->distinct_rows += is_new;
  group->importance += row.importance;
  for (int i = 0; i < filters; ++i) {
    const bool seen = row.answers >> i & 1;
    ErrorCounts& errors = group->errors[i];
    if (is_new && seen) {
      ++errors.false_positives;
      errors.false_positive_importance += row.importance;
    } else if (!is_new && !seen) {
      ++errors.false_negatives;
      errors.false_negative_importance += row.importance;
    }
  }
}

// The rate; NULL if there is nothing to divide by.
void put_share(NamedRow& row, const char* name, double part, double whole) {
  if (whole > 0 && !std::isinf(whole)) row.put(name, Float8GetDatum(part / whole));
}

void put_errors(NamedRow& row, const RowGroup& group, int filter) {
  const ErrorCounts& errors = group.errors[filter];
  row.put_count("rows", group.rows);
  row.put_count("distinct_rows", group.distinct_rows);
  row.put_count("false_positives", errors.false_positives);
  row.put_count("false_negatives", errors.false_negatives);
  put_share(row, "fpr", static_cast<double>(errors.false_positives),
            static_cast<double>(group.distinct_rows));
  put_share(row, "fnr", static_cast<double>(errors.false_negatives),
            static_cast<double>(group.rows - group.distinct_rows));
}

Datum definition_text(const Header* filter) {
  char text[kMaxDefinitionText];
  print_definition(filter->parameters, text, sizeof text);
  return CStringGetTextDatum(text);
}

// ---- profile: how rows are grouped --------------------------------------------------------------

enum class By : uint8 { lag, position, importance };
constexpr const char* kByWords[] = {"lag", "position", "importance", nullptr};

constexpr int kLastOctave = 64;
constexpr int kMaxGroups = kLastOctave + 1;
constexpr int kPositionGroups = 10;

By read_by(FunctionCallInfo fcinfo) {
  const char* by = text_to_cstring(PG_GETARG_TEXT_PP(2));
  const int found = find_word(kByWords, by);
  if (found >= 0) return static_cast<By>(found);
  ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                  errmsg("streamfilter_profile cannot group by \"%s\"", by),
                  errhint("Valid values are: lag, position, importance.")));
}

// Powers of two: 0 for values below 1, otherwise 1 + floor(log2(value)). The last one has no end.
int octave(double value) {
  if (!(value >= 1)) return 0;
  return value < std::ldexp(1, kLastOctave - 1) ? 1 + std::ilogb(value) : kLastOctave;
}

// The end of the i-th of ten equal parts of the stream.
int64 part_end(int64 rows, int part) {
  return static_cast<int64>(static_cast<__int128>(rows) * part / kPositionGroups);
}

int group_of(By by, const JudgedRow& row, int64 rows) {
  switch (by) {
    case By::lag:
      return row.previous == 0 ? 0 : octave(static_cast<double>(row.position - row.previous));
    case By::position: {
      int part = static_cast<int>(static_cast<__int128>(row.position - 1) * kPositionGroups / rows);
      while (row.position > part_end(rows, part + 1)) ++part;
      return part;
    }
    default: return octave(row.importance);
  }
}

void set_range(RowGroup* group, By by, int index, int64 rows) {
  if (by == By::position) {
    group->from = static_cast<double>(part_end(rows, index) + 1);
    group->to = static_cast<double>(part_end(rows, index + 1));
  } else if (index == 0) {
    group->from = 0;
    group->to = by == By::lag ? 0 : 1;
  } else {
    group->from = std::ldexp(1, index - 1);
    group->to = index == kLastOctave ? INFINITY : std::ldexp(1, index) - (by == By::lag ? 1 : 0);
  }
}

// ---- slices_needed: how many slices can bear the loss of some -----------------------------------

[[noreturn]] void raise_range(const char* argument, const char* range) {
  ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
          errmsg("argument \"%s\" of streamfilter_slices_needed is out of range", argument),
          errdetail("It must be %s.", range));
}

// A rate given by the caller; `missing` if it is NULL.
double read_rate(FunctionCallInfo fcinfo, int number, const char* name, double missing) {
  if (PG_ARGISNULL(number)) return missing;
  const double rate = PG_GETARG_FLOAT8(number);
  if (!(rate >= 0 && rate < 1)) raise_range(name, "at least 0 and less than 1");
  return rate;
}

}  // namespace

// streamfilter_evaluate(query text, filters streamfilter[]): one row per filter, in their order.
SF_FUNCTION(streamfilter_evaluate) {
  constexpr const char* kName = "streamfilter_evaluate";
  ReturnSetInfo* set = begin_rows(fcinfo);
  SPI_connect();
  const Filters filters = read_filters(fcinfo, 1, kName);
  Evaluation* evaluation = evaluate(text_to_cstring(PG_GETARG_TEXT_PP(0)), filters.values,
                                    filters.count, kName, Command::evaluate);
  auto* all = allocate_zeros<RowGroup>();
  JudgedRow judged;
  while (next_judged_row(evaluation, &judged)) {
    CHECK_FOR_INTERRUPTS();
    count_row(all, judged, filters.count);
  }
  for (int i = 0; i < filters.count; ++i) {
    const ErrorCounts& errors = all->errors[i];
    NamedRow row(set->setDesc);
    row.put("filter", definition_text(filters.values[i]));
    row.put_count("memory", filters.values[i]->parameters.memory);
    put_errors(row, *all, i);
    put_share(row, "weighted_fpr", errors.false_positive_importance, all->importance);
    put_share(row, "weighted_fnr", errors.false_negative_importance, all->importance);
    put_share(row, "ns_per_row", evaluation->candidates[i].nanoseconds,
              static_cast<double>(all->rows));
    row.add_to(set);
  }
  end_evaluation(evaluation);
  SPI_finish();
  return static_cast<Datum>(0);
}

// streamfilter_profile(query text, filters streamfilter[], by text): one row per filter and group.
SF_FUNCTION(streamfilter_profile) {
  constexpr const char* kName = "streamfilter_profile";
  const By by = read_by(fcinfo);
  ReturnSetInfo* set = begin_rows(fcinfo);
  SPI_connect();
  const Filters filters = read_filters(fcinfo, 1, kName);
  Evaluation* evaluation = evaluate(text_to_cstring(PG_GETARG_TEXT_PP(0)), filters.values,
                                    filters.count, kName, Command::profile);
  auto* groups = allocate_zeros<RowGroup>(kMaxGroups);
  auto* last_position = allocate_zeros<int64>(kMaxGroups);
  JudgedRow judged;
  while (next_judged_row(evaluation, &judged)) {
    CHECK_FOR_INTERRUPTS();
    const int index = group_of(by, judged, evaluation->rows);
    count_row(&groups[index], judged, filters.count);
    last_position[index] = Max(last_position[index], judged.position);
  }
  for (int i = 0; i < filters.count; ++i) {
    const Datum name = definition_text(filters.values[i]);
    for (int g = 0; g < kMaxGroups; ++g) {
      RowGroup* group = &groups[g];
      if (group->rows == 0) continue;
      set_range(group, by, g, evaluation->rows);
      NamedRow row(set->setDesc);
      row.put("filter", name);
      row.put("from", Float8GetDatum(group->from));
      row.put("to", Float8GetDatum(group->to));
      put_errors(row, *group, i);
      // The fill at the group's last row.
      row.put("fill", Float8GetDatum(fill_at(evaluation, i, last_position[g])));
      row.add_to(set);
    }
  }
  end_evaluation(evaluation);
  SPI_finish();
  return static_cast<Datum>(0);
}

// streamfilter_slice_of(key "any", n int) → int: the part 0..n-1 of a stream that a key belongs to;
// ROW(…) for several columns. NULLs are equal to each other, as under DISTINCT. Raises 22023 unless
// n is positive.
SF_FUNCTION(streamfilter_slice_of) {
  if (PG_ARGISNULL(1)) PG_RETURN_NULL();
  const int32 n = PG_GETARG_INT32(1);
  if (n < 1)
    ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
            errmsg("the number of slices must be at least 1, not %d", n));
  TypeHasher* hasher = key_hasher(fcinfo, 0);
  const KeyRule rule{Nulls::not_distinct, kPartSeed, false};
  const bool isnull = PG_ARGISNULL(0);
  uint64 hash = 0;
  if (isnull) {
    const Datum nothing = 0;
    hash_key(&hasher, &nothing, &isnull, 1, rule, &hash);
  } else {
    hash_key_value(hasher, PG_GETARG_DATUM(0), rule, &hash);
  }
  PG_RETURN_INT32(static_cast<int32>(part_of(hash, static_cast<uint32>(n))));
}

// streamfilter_slices_needed(lost integer, places integer, max_fpr float8, fpr float8, max_fnr
// float8) -> bigint: S_f of Definition 3 (Koloniari et al. 2011): the least number of slices that
// keeps one of the two bounds while `lost` of them are lost, for lost_slice 'duplicate' or
// 'distinct'. NULL: no number does.
SF_FUNCTION(streamfilter_slices_needed) {
  if (PG_ARGISNULL(0) || PG_ARGISNULL(1)) PG_RETURN_NULL();
  const int lost = PG_GETARG_INT32(0);
  const int probes = PG_GETARG_INT32(1);
  const double max_fpr = read_rate(fcinfo, 2, "max_fpr", NAN);
  const double fpr = read_rate(fcinfo, 3, "fpr", 0);
  const double max_fnr = read_rate(fcinfo, 4, "max_fnr", NAN);
  if (lost < 1) raise_range("lost", "at least 1");
  if (probes < 1 || probes > 64) raise_range("places", "between 1 and 64");
  if (std::isnan(max_fpr) == std::isnan(max_fnr))
    ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
            errmsg("streamfilter_slices_needed needs one of \"max_fpr\" and \"max_fnr\""));
  const double slices = std::isnan(max_fnr)
                            ? slicing_model::slices_for_fpr(probes, fpr, lost, max_fpr)
                            : slicing_model::slices_for_fnr(probes, lost, max_fnr);
  if (!(slices < 9e18)) PG_RETURN_NULL();
  PG_RETURN_INT64(saturate<int64>(std::round(slices)));
}

}  // namespace streamfilter::pg
