#include "pg/server/postgres.hpp"

extern "C" {
#include "utils/varlena.h"
}

#include <initializer_list>

#include "core/filter/option_values.hpp"
#include "core/kind/kind_registry.hpp"
#include "pg/catalog/option_list.hpp"
#include "pg/catalog/tree_options.hpp"

namespace streamfilter::pg {
namespace {

bool counts_rows(const Parameters& parameters) {
  const FilterOps* ops = find_ops(parameters.kind);
  char value[64];
  for (const OptionSpec& option : ops->options)
    if (option.type == OptionType::span) {
      print_option(parameters, option, value, sizeof value);
      if (strstr(value, "rows") != nullptr) return true;
    }
  return false;
}

}  // namespace

bool check_tree_options(List* options, const Definition& definition,
                        const RelationOptions& relation_options, Fault& fault) {
  if (relation_options.parent == nullptr) {
    for (const char* name : {"tree", "top_down"})
      if (find_option(options, name) != nullptr) {
        fault.set(ERRCODE_INVALID_PARAMETER_VALUE, "option \"%s\" needs option parent", name);
        return fault.add_hint("It says how keys that come in at a filter go up to its parents.");
      }
    return true;
  }
  const Kind kind = definition.parameters.kind;
  if (kind != Kind::bloom && kind != Kind::timer) {
    fault.set(ERRCODE_FEATURE_NOT_SUPPORTED, "a filter of kind %s cannot have a parent",
              find_ops(kind)->name);
    fault.add_detail("It forgets keys in its own time, so its nodes would not agree.");
    return fault.add_hint("Use kind bloom, or kind timer with a window of time.");
  }
  if (kind == Kind::bloom) return true;
  if (relation_options.tree == TreeKind::dense) {
    fault.set(ERRCODE_FEATURE_NOT_SUPPORTED, "a tree of kind timer cannot be dense");
    fault.add_detail("A repeat that is set again in a lower node would outlive its window there.");
    return fault.add_hint("Use tree 'sparse'.");
  }
  if (relation_options.top_down > 0) {
    fault.set(ERRCODE_FEATURE_NOT_SUPPORTED, "a tree of kind timer cannot be tested top-down");
    fault.add_detail(
        "A key whose match is refuted would last only as long as the keys that it was taken for.");
    return fault.add_hint("Leave out option top_down.");
  }
  if (counts_rows(definition.parameters)) {
    fault.set(ERRCODE_FEATURE_NOT_SUPPORTED, "a filter with a window of rows cannot have a parent");
    fault.add_detail("Every node counts its own rows, so windows would end at different times.");
    return fault.add_hint("Use a window of time, such as window '10 minutes'.");
  }
  return true;
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
