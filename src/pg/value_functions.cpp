// Functions and operators on values of type streamfilter.
#include "streamfilter/pg/pg.hpp"

extern "C" {
#include "lib/stringinfo.h"
}

#include <cmath>

#include "streamfilter/pg/key_argument.hpp"
#include "streamfilter/pg/parameters_json.hpp"
#include "streamfilter/pg/value.hpp"

namespace streamfilter::pg {
namespace {

// The false-negative rate behind window_keys, as in streamfilter_stats.
constexpr double kWindowFnr = 0.01;

bool read_element(FunctionCallInfo fcinfo, const Parameters& parameters, Element* element) {
  return hash_key_value(key_hasher(fcinfo, 1), PG_GETARG_DATUM(1), parameters.nulls,
                        parameters.seed, &element->hash);
}

void append_count(StringInfo json, const char* name, uint64 value) {
  appendStringInfo(json, ", \"%s\": " UINT64_FORMAT, name, value);
}

// Unknown and infinite numbers become null.
void append_real(StringInfo json, const char* name, const char* format, double value) {
  appendStringInfo(json, ", \"%s\": ", name);
  if (std::isfinite(value))
    appendStringInfo(json, format, value);
  else
    appendStringInfoString(json, "null");
}

constexpr char kRate[] = "%.6g";
constexpr char kWhole[] = "%.0f";

}  // namespace
}  // namespace streamfilter::pg

using namespace streamfilter;
using namespace streamfilter::pg;

// streamfilter_add(filter, key): a copy that remembers the key; the same filter for a NULL key.
SF_FUNCTION(streamfilter_add) {
  if (PG_ARGISNULL(0)) PG_RETURN_NULL();
  if (PG_ARGISNULL(1)) PG_RETURN_DATUM(PG_GETARG_DATUM(0));
  const Header* header = get_value(PG_GETARG_DATUM(0));
  Element element{};
  if (!read_element(fcinfo, header->parameters, &element)) PG_RETURN_POINTER(header);
  Header* copy = copy_value(header, CurrentMemoryContext);
  insert(copy, element);
  PG_RETURN_POINTER(copy);
}

// streamfilter_contains(filter, key), filter @> key. A record with a NULL in it is no repeat
// (unless the filter has nulls = not distinct).
SF_FUNCTION(streamfilter_contains) {
  const Header* header = get_value(PG_GETARG_DATUM(0));
  Element element{};
  PG_RETURN_BOOL(read_element(fcinfo, header->parameters, &element) && test(header, element));
}

// streamfilter_union(a, b), a || b. Error: the two differ in kind, parameters or seed.
SF_FUNCTION(streamfilter_union) {
  const Header* left = get_value(PG_GETARG_DATUM(0));
  const Header* right = get_value(PG_GETARG_DATUM(1));
  Header* result = copy_value(left, CurrentMemoryContext);
  merge_value(result, right);
  PG_RETURN_POINTER(result);
}

// streamfilter_info(filter): what it is and how full.
SF_FUNCTION(streamfilter_info) {
  const Header* header = get_value(PG_GETARG_DATUM(0));
  const Parameters& parameters = header->parameters;
  const FilterOps& ops = ops_of(header);
  const Totals sums = totals(header);
  bool full;
  StringInfoData json;
  initStringInfo(&json);
  appendStringInfo(&json, "{\"kind\": \"%s\", \"parameters\": ", ops.name);
  append_parameters_json(&json, parameters);
  append_count(&json, "memory", parameters.memory);
  append_count(&json, "slices", parameters.slices);
  append_count(&json, "seed", parameters.seed);
  append_count(&json, "arrivals", sums.arrivals);
  append_real(&json, "fill", kRate, sums.estimate.fill);
  append_real(&json, "fpr", kRate, sums.estimate.fpr);
  append_real(&json, "fpr_bound", kRate, ops.fpr_bound(parameters));
  append_real(&json, "distinct_estimate", kWhole, distinct_keys(header, &full));
  append_real(&json, "window_keys", kWhole, window_keys(parameters, kWindowFnr));
  appendStringInfoChar(&json, '}');
  PG_RETURN_DATUM(json_to_jsonb(json.data));
}
