#include "pg/server/postgres.hpp"

extern "C" {
#include "lib/stringinfo.h"
#include "utils/fmgrprotos.h"
#include "utils/json.h"
}

#include "core/filter/common_options.hpp"
#include "core/filter/option_values.hpp"
#include "core/kind/kind_registry.hpp"
#include "pg/value/parameters_json.hpp"

namespace streamfilter::pg {
namespace {

bool is_number(OptionType type) { return type == OptionType::integer || type == OptionType::real; }

void append_option(const Parameters& parameters, const OptionSpec& option, StringInfo out) {
  char value[512];
  print_option(parameters, option, value, sizeof value);
  if (is_number(option.type))
    appendStringInfoString(out, value);
  else if (option.type == OptionType::reals)
    appendStringInfo(out, "[%s]", value);
  else
    escape_json(out, value);
}

bool is_derived_alike(const Parameters& a, const Parameters& b) {
  return a.memory == b.memory && a.slices == b.slices && a.slice_bytes == b.slice_bytes &&
         memcmp(a.word, b.word, sizeof a.word) == 0;
}

void append_differences(const Parameters& parameters, const Parameters& derived, StringInfo out) {
  const FilterOps* ops = find_ops(parameters.kind);
  const char* between = "";
  const auto begin = [&](const char* name) {
    appendStringInfo(out, "%s\"%s\": ", between, name);
    between = ", ";
  };
  const auto append_number = [&](const char* name, uint64 number, uint64 now) {
    if (number == now) return;
    begin(name);
    appendStringInfo(out, UINT64_FORMAT, now);
  };
  appendStringInfoChar(out, '{');
  append_number("memory", parameters.memory, derived.memory);
  append_number("slices", parameters.slices, derived.slices);
  for (const OptionSpec& option : ops->options)
    if (parameters.integer(option.word) != derived.integer(option.word) &&
        in_use(derived, option)) {
      begin(option.name);
      append_option(derived, option, out);
    }
  appendStringInfoChar(out, '}');
}

void append_option(const Parameters& parameters, const CommonOption& option, StringInfo out) {
  char value[64];
  TextWriter text(value, sizeof value);
  option.write(text, parameters);
  if (option.choices != nullptr)
    escape_json(out, value);
  else
    appendStringInfoString(out, value);
}

// Seed and memory are columns of their own, the kind too.
constexpr auto kBeside = set_of(Common::kind, Common::memory, Common::seed, Common::slices);

}  // namespace

void append_parameters_json(StringInfo out, const Parameters& parameters, const char* reason,
                            const Parameters* derived_now) {
  const FilterOps* ops = find_ops(parameters.kind);
  bool first = true;
  appendStringInfoChar(out, '{');
  const auto begin = [&](const char* name) {
    appendStringInfo(out, "%s\"%s\": ", first ? "" : ", ", name);
    first = false;
  };
  for (const OptionSpec& option : ops->options)
    if (in_use(parameters, option)) {
      begin(option.name);
      append_option(parameters, option, out);
    }
  begin("slices");
  appendStringInfo(out, "%u", parameters.slices);
  if (parameters.slicing == Slicing::diced) {
    begin("slices2");
    appendStringInfo(out, "%u", parameters.slices2);
  }
  for (const CommonOption& option : kCommonOptions)
    if (!contains(kBeside, option.id) &&
        (option.id == Common::nulls || option.is_needed(parameters))) {
      begin(option.name);
      append_option(parameters, option, out);
    }
  if (reason != nullptr) {
    begin("chosen");
    escape_json(out, psprintf("%s: %s", ops->name, reason));
  }
  if (derived_now != nullptr && !is_derived_alike(parameters, *derived_now)) {
    begin("derived_now");
    append_differences(parameters, *derived_now, out);
  }
  appendStringInfoChar(out, '}');
}

Datum json_to_jsonb(const char* json) {
  return DirectFunctionCall1(jsonb_in, CStringGetDatum(json));
}

}  // namespace streamfilter::pg
