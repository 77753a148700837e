#include "streamfilter/pg/pg.hpp"

extern "C" {
#include "access/reloptions.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_foreign_server.h"
#include "catalog/pg_foreign_table.h"
#include "commands/defrem.h"
#include "nodes/parsenodes.h"
}

#include "streamfilter/core/filter.hpp"
#include "streamfilter/pg/error.hpp"
#include "streamfilter/pg/filter_options.hpp"
#include "streamfilter/pg/tree_options.hpp"

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
constexpr HostOption kConflictOption = {"conflict", kConflict, "wait, admit, discard"};
constexpr HostOption kPersistenceOption = {"persistence", kPersistence, "logged, unlogged"};

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

void set_or_raise(Definition* definition, HostOptions* host, DefElem* option) {
  if (read_host_option(option, kConflictOption, &host->conflict) ||
      read_host_option(option, kPersistenceOption, &host->persistence) ||
      read_tree_option(option, host))
    return;
  Problem problem;
  if (!set_option(*definition, option->defname, defGetString(option), problem)) raise(problem);
}

[[noreturn]] void raise_unknown(const DefElem* option, const char* of, const char* valid) {
  ereport(ERROR, errcode(ERRCODE_FDW_INVALID_OPTION_NAME),
          errmsg("invalid option \"%s\" of a %s", option->defname, of),
          valid != nullptr ? errhint("Valid options are: %s.", valid)
                           : errhint("There are no valid options in this context."));
  pg_unreachable();
}

}  // namespace

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
    if (!is_named(option, "role")) raise_unknown(option, "column of a filter", "role");
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

uint64 read_memory_limit(List* options) {
  uint64 limit = PG_UINT64_MAX;
  ListCell* cell;
  foreach (cell, options) {
    auto* option = static_cast<DefElem*>(lfirst(cell));
    if (!is_named(option, "memory_limit"))
      raise_unknown(option, "server of filters", "memory_limit");
    if (!parse_size(defGetString(option), limit))
      ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
              errmsg("invalid value for option \"memory_limit\": \"%s\"", defGetString(option)),
              errhint("Give a number of bytes, or a number with a unit: B, kB, MB, GB, TB."));
  }
  return limit;
}

}  // namespace streamfilter::pg

// streamfilter_fdw_validator(options text[], catalog oid): checks the options of every object of
// the wrapper as they are set.
SF_FUNCTION(streamfilter_fdw_validator) {
  using namespace streamfilter::pg;
  List* options = untransformRelOptions(PG_GETARG_DATUM(0));
  switch (PG_GETARG_OID(1)) {
    case ForeignTableRelationId: {
      HostOptions host;
      read_table_options(options, &host);
      break;
    }
    case AttributeRelationId:
      read_column_options(options);
      break;
    case ForeignServerRelationId:
      read_memory_limit(options);
      break;
    default:
      if (options != NIL)
        raise_unknown(static_cast<DefElem*>(linitial(options)), "foreign-data wrapper or user",
                      nullptr);
  }
  PG_RETURN_VOID();
}
