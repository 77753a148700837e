#include "pg/server/postgres.hpp"

extern "C" {
#include "utils/guc.h"
#include "utils/varlena.h"
}

#include <initializer_list>

#include "core/filter/filter.hpp"
#include "core/filter/time_span.hpp"
#include "pg/catalog/filter_options.hpp"
#include "pg/catalog/option_list.hpp"
#include "pg/catalog/tree_options.hpp"

namespace streamfilter::pg {
namespace {

bool bad_value(DefElem* option, Fault& fault) {
  return fault.set(ERRCODE_INVALID_PARAMETER_VALUE, "invalid value for option \"%s\": \"%s\"",
                   option->defname, value_of(option));
}

// A relation option that is one of a list of words.
struct KeywordOption {
  const char* name;
  const char* const* values;  // in the order of their enum; ends with nullptr
  const char* list;
};
constexpr const char* kConflict[] = {"wait", "admit", "discard", nullptr};
constexpr const char* kPersistence[] = {"logged", "unlogged", nullptr};
constexpr const char* kMode[] = {"enforce", "shadow", "off", nullptr};
constexpr const char* kProbe[] = {"parallel", "pipelined", nullptr};
constexpr KeywordOption kConflictOption = {"conflict", kConflict, "wait, admit, discard"};
constexpr KeywordOption kPersistenceOption = {"persistence", kPersistence, "logged, unlogged"};
constexpr KeywordOption kModeOption = {"mode", kMode, "enforce, shadow, off"};
constexpr KeywordOption kProbeOption = {"probe", kProbe, "parallel, pipelined"};

// The readers of options return false if it is another one; a bad value is a fault.
template <typename Value>
bool read_keyword_option(DefElem* option, const KeywordOption& known, Value* result, Fault& fault) {
  if (!is_named(option, known.name)) return false;
  const char* value = value_of(option);
  for (int i = 0; known.values[i] != nullptr; ++i)
    if (strcmp(known.values[i], value) == 0) {
      *result = static_cast<Value>(i);
      return true;
    }
  bad_value(option, fault);
  fault.add_hint("Valid values are: %s.", known.list);
  return true;
}

// What a lost slice makes of a key.
bool parse_lost_slice(const char* value, LostSlice* result) {
  if (strcmp(value, "distinct") == 0) {
    result->rule = LostRule::distinct;
    return true;
  }
  if (strcmp(value, "duplicate") == 0) {
    result->rule = LostRule::duplicate;
    return true;
  }
  const bool votes = strncmp(value, "votes:", 6) == 0;
  if (!votes && strncmp(value, "hybrid:", 7) != 0) return false;
  int least;
  if (!parse_int(value + (votes ? 6 : 7), &least, 0, nullptr) || least <= 0 || least > 64)
    return false;
  result->rule = votes ? LostRule::votes : LostRule::hybrid;
  result->least = static_cast<uint32>(least);
  return true;
}

bool read_lost_slice(DefElem* option, LostSlice* result, Fault& fault) {
  if (!is_named(option, "lost_slice")) return false;
  if (parse_lost_slice(value_of(option), result)) return true;
  bad_value(option, fault);
  fault.add_hint(
      "Valid values are: distinct, duplicate, votes:x, hybrid:x, with a number x of bits from 1 to "
      "64.");
  return true;
}

bool read_max_future(DefElem* option, int64* result, Fault& fault) {
  if (!is_named(option, "max_future")) return false;
  const char* value = value_of(option);
  if (strcmp(value, "infinity") == 0) {
    *result = PG_INT64_MAX;
    return true;
  }
  std::int64_t span;
  if (parse_time_span(value, span) && span >= 0) {
    *result = span;
    return true;
  }
  bad_value(option, fault);
  fault.add_hint("Give a time such as '10 minutes', or 'infinity'.");
  return true;
}

bool read_text_option(DefElem* option, const char* name, const char** result) {
  if (!is_named(option, name)) return false;
  *result = value_of(option);
  return true;
}

bool read_home_servers(DefElem* option, int* result, Fault& fault) {
  if (!is_named(option, "home_servers")) return false;
  if (parse_int(value_of(option), result, 0, nullptr) && *result > 0) return true;
  bad_value(option, fault);
  fault.add_hint("Give how many of the servers the filter was made with.");
  return true;
}

bool read_moved(DefElem* option, MovedSlices* result, Fault& fault) {
  if (!is_named(option, "moved")) return false;
  if (read_moved_slices(value_of(option), result)) return true;
  bad_value(option, fault);
  fault.add_hint("streamfilter_move_slice() sets it, from where the events arrive.");
  return true;
}

bool read_option(DefElem* option, Definition* definition, RelationOptions* relation_options,
                 Fault& fault) {
  if (read_keyword_option(option, kConflictOption, &relation_options->conflict, fault) ||
      read_keyword_option(option, kPersistenceOption, &relation_options->persistence, fault) ||
      read_keyword_option(option, kModeOption, &relation_options->mode, fault) ||
      read_keyword_option(option, kProbeOption, &relation_options->probe, fault) ||
      read_lost_slice(option, &relation_options->lost_slice, fault) ||
      read_max_future(option, &relation_options->max_future, fault) ||
      read_text_option(option, "servers", &relation_options->servers) ||
      read_text_option(option, "producer", &relation_options->producer) ||
      read_home_servers(option, &relation_options->home_servers, fault) ||
      read_moved(option, &relation_options->moved, fault) ||
      read_tree_option(option, relation_options, fault))
    return !fault;
  Problem problem;
  return set_option(*definition, option->defname, value_of(option), problem) || fault.set(problem);
}

// Every server holds equally many slices, unless told otherwise.
bool spread_slices(Definition* definition, const RelationOptions* relation_options, Fault& fault) {
  List* names;
  if (!read_server_names(relation_options, &names, fault)) return false;
  const int homes = relation_options->home_servers;
  const auto servers = static_cast<uint32>(homes > 0 ? homes : list_length(names));
  if (servers < 2 || definition->slices_given) return true;
  Definition attempt = *definition;
  Problem problem;
  if (!complete(attempt, problem)) return fault.set(problem);
  definition->parameters.slices = (attempt.parameters.slices + servers - 1) / servers * servers;
  definition->slices_given = true;
  return true;
}

bool check_max_future(const Definition* definition, const RelationOptions* relation_options,
                      Fault& fault) {
  if (relation_options->max_future < 0 || time_window(definition->parameters) != 0) return true;
  fault.set(ERRCODE_INVALID_PARAMETER_VALUE, "option max_future needs a window of time");
  return fault.add_hint("Add option window, for example window '10 minutes'.");
}

}  // namespace

const char* name_of(Conflict conflict) { return kConflict[static_cast<int>(conflict)]; }
const char* name_of(Persistence persistence) { return kPersistence[static_cast<int>(persistence)]; }
const char* name_of(FilterMode mode) { return kMode[static_cast<int>(mode)]; }

uint64 time_window(const Parameters& parameters) {
  const FilterOps* ops = find_ops(parameters.kind);
  for (unsigned i = 0; i < ops->option_count; ++i) {
    const OptionSpec& option = ops->options[i];
    if (option.type != OptionType::span || strcmp(option.name, "window") != 0) continue;
    const bool rows = parameters.integer(option.word + 1) != 0;
    return rows ? 0 : parameters.integer(option.word);
  }
  return 0;
}

bool read_server_names(const RelationOptions* relation_options, List** names, Fault& fault) {
  *names = NIL;
  if (relation_options->servers == nullptr) return true;
  if (SplitIdentifierString(pstrdup(relation_options->servers), ',', names) && *names != NIL)
    return true;
  fault.set(ERRCODE_INVALID_PARAMETER_VALUE, "invalid value for option \"servers\": \"%s\"",
            relation_options->servers);
  return fault.add_hint("Give the names of servers, separated by commas.");
}

bool read_table_options(List* options, Definition* definition, RelationOptions* relation_options,
                        Fault& fault) {
  ListCell* cell;
  // The kind decides which other options there are.
  for (const bool kind : {true, false})
    foreach (cell, options)
      if (auto* option = static_cast<DefElem*>(lfirst(cell)); is_named(option, "kind") == kind)
        if (!read_option(option, definition, relation_options, fault)) return false;
  if (!spread_slices(definition, relation_options, fault)) return false;
  relation_options->asked = *definition;
  Problem problem;
  if (!complete(*definition, problem)) return fault.set(problem);
  if (!check_max_future(definition, relation_options, fault)) return false;
  return check_tree_options(options, *definition, *relation_options, fault);
}

bool read_column_options(List* options, Role* role, Fault& fault) {
  *role = Role::key;
  ListCell* cell;
  foreach (cell, options) {
    auto* option = static_cast<DefElem*>(lfirst(cell));
    if (!is_named(option, "role"))
      return unknown_option(option, "column of a filter", "role", fault);
    const char* value = value_of(option);
    if (strcmp(value, "importance") == 0) {
      *role = Role::importance;
    } else if (strcmp(value, "time") == 0) {
      *role = Role::time;
    } else {
      bad_value(option, fault);
      return fault.add_hint("Valid values are: importance, time.");
    }
  }
  return true;
}

}  // namespace streamfilter::pg
