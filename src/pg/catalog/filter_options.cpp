#include "pg/server/postgres.hpp"

extern "C" {
#include "commands/defrem.h"
#include "nodes/parsenodes.h"
#include "utils/guc.h"
#include "utils/varlena.h"
}

#include "core/filter/filter.hpp"
#include "pg/catalog/filter_options.hpp"
#include "pg/catalog/hierarchy_options.hpp"
#include "pg/server/problem_report.hpp"

namespace streamfilter::pg {
namespace {

bool is_named(const DefElem* option, const char* name) {
  return strcmp(option->defname, name) == 0;
}

// Options that only named filters have, not their bytes; each has a list of values.
struct HostOption {
  const char* name;
  const char* const* values;  // in the order of their enum; ends with nullptr
  const char* list;
};
constexpr const char* kConflict[] = {"wait", "admit", "discard", nullptr};
constexpr const char* kPersistence[] = {"logged", "unlogged", nullptr};
constexpr const char* kProbe[] = {"parallel", "pipelined", nullptr};
constexpr HostOption kConflictOption = {"conflict", kConflict, "wait, admit, discard"};
constexpr HostOption kPersistenceOption = {"persistence", kPersistence, "logged, unlogged"};
constexpr HostOption kProbeOption = {"probe", kProbe, "parallel, pipelined"};

// Reads the value of this option; false if it is another one.
template <typename Value>
bool read_host_option(DefElem* option, const HostOption& known, Value* result) {
  if (!is_named(option, known.name)) return false;
  const char* value = defGetString(option);
  for (int i = 0; known.values[i] != nullptr; ++i)
    if (strcmp(known.values[i], value) == 0) {
      *result = static_cast<Value>(i);
      return true;
    }
  ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
          errmsg("invalid value for option \"%s\": \"%s\"", known.name, value),
          errhint("Valid values are: %s.", known.list));
  pg_unreachable();
}

// What a lost slice makes of a key; false if it is another option.
bool read_lost_slice(DefElem* option, LostSlice* result) {
  if (!is_named(option, "lost_slice")) return false;
  const char* value = defGetString(option);
  if (strcmp(value, "distinct") == 0) {
    result->rule = LostRule::distinct;
    return true;
  }
  if (strcmp(value, "duplicate") == 0) {
    result->rule = LostRule::duplicate;
    return true;
  }
  const bool votes = strncmp(value, "votes:", 6) == 0;
  const char* number = votes ? value + 6 : value + 7;
  int least;
  if ((votes || strncmp(value, "hybrid:", 7) == 0) && parse_int(number, &least, 0, nullptr) &&
      least > 0 && least <= 64) {
    result->rule = votes ? LostRule::votes : LostRule::hybrid;
    result->least = static_cast<uint32>(least);
    return true;
  }
  ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
          errmsg("invalid value for option \"lost_slice\": \"%s\"", value),
          errhint("Valid values are: distinct, duplicate, votes:x, hybrid:x, with a number x of "
                  "bits from 1 to 64."));
  pg_unreachable();
}

// Reads the value of an option that is a text; false if it is another one.
bool read_text_option(DefElem* option, const char* name, const char** result) {
  if (!is_named(option, name)) return false;
  *result = defGetString(option);
  return true;
}

void set_or_raise(Definition* definition, HostOptions* host, DefElem* option) {
  if (read_host_option(option, kConflictOption, &host->conflict) ||
      read_host_option(option, kPersistenceOption, &host->persistence) ||
      read_host_option(option, kProbeOption, &host->probe) ||
      read_lost_slice(option, &host->lost_slice) ||
      read_text_option(option, "servers", &host->servers) ||
      read_text_option(option, "producer", &host->producer) || read_tree_option(option, host))
    return;
  Problem problem;
  if (!set_option(*definition, option->defname, defGetString(option), problem)) raise(problem);
}

// Every server holds equally many slices, unless told otherwise.
void spread_slices(Definition* definition, const HostOptions* host) {
  const auto servers = static_cast<uint32>(list_length(read_server_names(host)));
  if (servers < 2 || definition->slices_given) return;
  Definition attempt = *definition;
  Problem problem;
  if (!complete(attempt, problem)) return;
  definition->parameters.slices = (attempt.parameters.slices + servers - 1) / servers * servers;
  definition->slices_given = true;
}

}  // namespace

const char* name_of(Conflict conflict) { return kConflict[static_cast<int>(conflict)]; }
const char* name_of(Persistence persistence) { return kPersistence[static_cast<int>(persistence)]; }

List* read_server_names(const HostOptions* host) {
  List* names;
  if (host->servers == nullptr) return NIL;
  if (!SplitIdentifierString(pstrdup(host->servers), ',', &names) || names == NIL)
    ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
            errmsg("invalid value for option \"servers\": \"%s\"", host->servers),
            errhint("Give the names of servers, separated by commas."));
  return names;
}

void raise_unknown_option(const DefElem* option, const char* of, const char* valid) {
  ereport(ERROR, errcode(ERRCODE_FDW_INVALID_OPTION_NAME),
          errmsg("invalid option \"%s\" of a %s", option->defname, of),
          valid != nullptr ? errhint("Valid options are: %s.", valid)
                           : errhint("There are no valid options in this context."));
  pg_unreachable();
}

Definition read_table_options(List* options, HostOptions* host) {
  Definition definition;
  ListCell* cell;
  // The kind decides which other options there are.
  foreach (cell, options)
    if (auto* option = static_cast<DefElem*>(lfirst(cell)); is_named(option, "kind"))
      set_or_raise(&definition, host, option);
  foreach (cell, options)
    if (auto* option = static_cast<DefElem*>(lfirst(cell)); !is_named(option, "kind"))
      set_or_raise(&definition, host, option);
  spread_slices(&definition, host);
  Problem problem;
  if (!complete(definition, problem)) raise(problem);
  check_tree_options(options, definition, *host);
  return definition;
}

Role read_column_options(List* options) {
  Role role = Role::key;
  ListCell* cell;
  foreach (cell, options) {
    auto* option = static_cast<DefElem*>(lfirst(cell));
    if (!is_named(option, "role")) raise_unknown_option(option, "column of a filter", "role");
    const char* value = defGetString(option);
    if (strcmp(value, "importance") == 0)
      role = Role::importance;
    else if (strcmp(value, "time") == 0)
      role = Role::time;
    else
      ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
              errmsg("invalid value for option \"role\": \"%s\"", value),
              errhint("Valid values are: importance, time."));
  }
  return role;
}

}  // namespace streamfilter::pg
