#include "pg/server/postgres.hpp"

extern "C" {
#include "commands/defrem.h"
#include "nodes/parsenodes.h"
#include "utils/varlena.h"
}

#include <initializer_list>

#include "core/kind/filter_ops.hpp"
#include "pg/catalog/hierarchy_options.hpp"

namespace streamfilter::pg {
namespace {

constexpr char kParent[] = "parent";
constexpr char kTree[] = "tree";
constexpr char kTopDown[] = "top_down";

bool is_given(List* options, const char* name) {
  ListCell* cell;
  foreach (cell, options)
    if (strcmp(static_cast<DefElem*>(lfirst(cell))->defname, name) == 0) return true;
  return false;
}

[[noreturn]] void raise_value(const char* option, const char* value, const char* hint) {
  ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
          errmsg("invalid value for option \"%s\": \"%s\"", option, value), errhint("%s", hint));
  pg_unreachable();
}

const char* read_parent(const char* value) {
  char *schema, *name;
  if (!split_name(value, &schema, &name))
    raise_value(kParent, value,
                "Write the name of a filter as in SQL: my_filter, or my_schema.\"My Filter\".");
  return value;
}

TreeKind read_kind(const char* value) {
  if (strcmp(value, "sparse") == 0) return TreeKind::sparse;
  if (strcmp(value, "dense") == 0) return TreeKind::dense;
  raise_value(kTree, value, "Valid values are: sparse, dense.");
}

unsigned read_level(const char* value) {
  char* end;
  const long level = strtol(value, &end, 10);
  if (end == value || *end != '\0' || level < 0 || level >= static_cast<long>(kMostTreeLevels))
    raise_value(kTopDown, value,
                psprintf("Give a level of the tree, 1 to %u, or 0 for none; the root is on "
                         "level 0.",
                         kMostTreeLevels - 1));
  return static_cast<unsigned>(level);
}

bool counts_rows(const Parameters& parameters) {
  const FilterOps* ops = find_ops(parameters.kind);
  char value[64];
  for (unsigned i = 0; i < ops->option_count; ++i)
    if (ops->options[i].type == OptionType::span) {
      print_option(parameters, ops->options[i], value, sizeof value);
      if (strstr(value, "rows") != nullptr) return true;
    }
  return false;
}

}  // namespace

bool read_tree_option(DefElem* option, HostOptions* host) {
  if (strcmp(option->defname, kParent) == 0)
    host->parent = read_parent(defGetString(option));
  else if (strcmp(option->defname, kTree) == 0)
    host->tree = read_kind(defGetString(option));
  else if (strcmp(option->defname, kTopDown) == 0)
    host->top_down = read_level(defGetString(option));
  else
    return false;
  return true;
}

void check_tree_options(List* options, const Definition& definition, const HostOptions& host) {
  if (host.parent == nullptr) {
    for (const char* name : {kTree, kTopDown})
      if (is_given(options, name))
        ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                errmsg("option \"%s\" needs option parent", name),
                errhint("It says how keys that come in at a filter go up to its parents."));
    return;
  }
  const Kind kind = definition.parameters.kind;
  if (kind != Kind::bloom && kind != Kind::timer)
    ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
            errmsg("a filter of kind %s cannot have a parent", find_ops(kind)->name),
            errdetail("It forgets keys in its own time, so its nodes would not agree."),
            errhint("Use kind bloom, or kind timer with a window of time."));
  if (kind == Kind::bloom) return;
  if (host.tree == TreeKind::dense)
    ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
            errmsg("a tree of kind timer cannot be dense"),
            errdetail("A repeat that is set again in a lower node would outlive its window there."),
            errhint("Use tree 'sparse'."));
  if (host.top_down > 0)
    ereport(
        ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
        errmsg("a tree of kind timer cannot be tested top-down"),
        errdetail("A key whose match is refuted would last only as long as the keys that it was "
                  "taken for."),
        errhint("Leave out option top_down."));
  if (counts_rows(definition.parameters))
    ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
            errmsg("a filter with a window of rows cannot have a parent"),
            errdetail("Every node counts its own rows, so windows would end at different times."),
            errhint("Use a window of time, such as window '10 minutes'."));
}

bool split_name(const char* text, char** schema, char** name) {
  List* parts = NIL;
  if (!SplitIdentifierString(pstrdup(text), '.', &parts)) return false;
  const int count = list_length(parts);
  *schema = count == 2 ? static_cast<char*>(linitial(parts)) : nullptr;
  *name = count == 0 ? nullptr : static_cast<char*>(llast(parts));
  return count == 1 || count == 2;
}

}  // namespace streamfilter::pg
