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

struct KindNames {
  char names[256];
};

template <Forgets when>
KindNames kinds_that_forget() {
  KindNames kinds;
  list_kinds([](const FilterOps& ops) { return ops.forgets == when; }, kinds.names,
             sizeof kinds.names);
  return kinds;
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
  const FilterOps* ops = find_ops(definition.parameters.kind);
  if (ops->forgets == Forgets::in_its_own_time) {
    fault.set(ERRCODE_FEATURE_NOT_SUPPORTED, "a filter of kind %s cannot have a parent", ops->name);
    fault.add_detail("It forgets keys in its own time, so its nodes would not agree.");
    return fault.add_hint("Use kind %s, or kind %s with a window of time.",
                          kinds_that_forget<Forgets::never>().names,
                          kinds_that_forget<Forgets::after_window>().names);
  }
  if (ops->forgets == Forgets::never) return true;
  if (relation_options.tree == TreeKind::dense) {
    fault.set(ERRCODE_FEATURE_NOT_SUPPORTED, "a tree of kind %s cannot be dense", ops->name);
    fault.add_detail("A repeat that is set again in a lower node would outlive its window there.");
    return fault.add_hint("Use tree 'sparse'.");
  }
  if (relation_options.top_down > 0) {
    fault.set(ERRCODE_FEATURE_NOT_SUPPORTED, "a tree of kind %s cannot be tested top-down",
              ops->name);
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
