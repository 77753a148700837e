#include "pg/server/postgres.hpp"

extern "C" {
#include "lib/stringinfo.h"
#include "utils/fmgrprotos.h"
#include "utils/json.h"
}

#include "core/filter/option_values.hpp"
#include "core/kind/kind_registry.hpp"
#include "pg/value/parameters_json.hpp"

namespace streamfilter::pg {
namespace {

bool is_number(OptionType type) { return type == OptionType::integer || type == OptionType::real; }

// An option that is not in use has the value 0 where 0 is not allowed, or an empty list.
bool is_used(const Parameters& parameters, const OptionSpec& option) {
  return parameters.integer(option.word) != 0 ||
         (option.type != OptionType::reals && option.low <= 0);
}

// Nothing for horizontal slices.
template <typename Begin>
void append_slicing(const Parameters& parameters, Begin begin, StringInfo out) {
  if (parameters.k1 == 0) return;
  if (parameters.slicing == Slicing::diced) {
    begin("slicing");
    appendStringInfo(out, "\"diced\"");
    begin("dice");
    appendStringInfo(out, "\"%s\"", parameters.dice == Dice::hv ? "hv" : "vh");
    begin("slices2");
    appendStringInfo(out, "%u", parameters.slices2);
  } else if (parameters.slicing == Slicing::vertical) {
    begin("slicing");
    appendStringInfo(out, "\"vertical\"");
  } else {
    begin("k1");
    appendStringInfo(out, "%u", parameters.k1);
    begin("k2");
    appendStringInfo(out, "%u", parameters.k2);
  }
}

}  // namespace

void append_parameters_json(StringInfo out, const Parameters& parameters, const char* reason) {
  const FilterOps* ops = find_ops(parameters.kind);
  char value[512];
  bool first = true;
  appendStringInfoChar(out, '{');
  const auto begin = [&](const char* name) {
    appendStringInfo(out, "%s\"%s\": ", first ? "" : ", ", name);
    first = false;
  };
  for (unsigned i = 0; i < ops->option_count; ++i) {
    const OptionSpec& option = ops->options[i];
    if (!is_used(parameters, option)) continue;
    begin(option.name);
    print_option(parameters, option, value, sizeof value);
    if (is_number(option.type))
      appendStringInfoString(out, value);
    else if (option.type == OptionType::reals)
      appendStringInfo(out, "[%s]", value);
    else
      escape_json(out, value);
  }
  begin("slices");
  appendStringInfo(out, "%u", parameters.slices);
  append_slicing(parameters, begin, out);
  if (parameters.keys > 0) {
    begin("keys");
    appendStringInfo(out, UINT64_FORMAT, parameters.keys);
  }
  if (parameters.fpr > 0) {
    begin("fpr");
    appendStringInfo(out, "%.15g", parameters.fpr);
  }
  if (parameters.layout == Layout::blocked) {
    begin("layout");
    escape_json(out, "blocked");
  }
  begin("nulls");
  escape_json(out, parameters.nulls == Nulls::distinct ? "distinct" : "not distinct");
  if (reason != nullptr) {
    begin("chosen");
    escape_json(out, psprintf("%s: %s", ops->name, reason));
  }
  appendStringInfoChar(out, '}');
}

Datum json_to_jsonb(const char* json) {
  return DirectFunctionCall1(jsonb_in, CStringGetDatum(json));
}

}  // namespace streamfilter::pg
