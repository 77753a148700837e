#include "pg/server/postgres.hpp"

extern "C" {
#include "access/reloptions.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_foreign_server.h"
#include "catalog/pg_foreign_table.h"
#include "catalog/pg_user_mapping.h"
#include "lib/stringinfo.h"
#include "nodes/makefuncs.h"
#include "utils/guc.h"
#include "utils/varlena.h"
}

#include <initializer_list>

#include "core/filter/filter.hpp"
#include "core/filter/time_span.hpp"
#include "pg/catalog/filter_options.hpp"
#include "pg/catalog/option_list.hpp"
#include "pg/catalog/server_options.hpp"

namespace streamfilter::pg {
namespace {

// In the order of their enums.
constexpr const char* kConflict[] = {"wait", "admit", "discard", nullptr};
constexpr const char* kPersistence[] = {"logged", "unlogged", nullptr};
constexpr const char* kMode[] = {"enforce", "shadow", "off", nullptr};
constexpr const char* kOverfull[] = {"pass", "discard", nullptr};
constexpr const char* kProbe[] = {"parallel", "pipelined", nullptr};
constexpr const char* kTree[] = {"sparse", "dense", nullptr};

// An option that is not stored in the filter's bytes.
struct RelationOption {
  const char* name;
  // False: a bad value.
  bool (*read)(const char* value, const RelationOption& option, RelationOptions* options);
  const char* hint;                    // describes valid values; nullptr: one of
  const char* const* words = nullptr;  // these words, which end with nullptr
  bool keeps_state = false;            // ALTER of it does not affect the filter's keys
};

// ---- readers

template <auto member>
bool read_word(const char* value, const RelationOption& option, RelationOptions* options) {
  auto& target = options->*member;
  for (int i = 0; option.words[i] != nullptr; ++i)
    if (strcmp(option.words[i], value) == 0) {
      target = static_cast<std::remove_reference_t<decltype(target)>>(i);
      return true;
    }
  return false;
}

template <auto member>
bool read_text(const char* value, const RelationOption&, RelationOptions* options) {
  options->*member = value;
  return true;
}

template <auto member, int low, int high>
bool read_number(const char* value, const RelationOption&, RelationOptions* options) {
  int number;
  if (!parse_int(value, &number, 0, nullptr) || number < low || number > high) return false;
  auto& target = options->*member;
  target = static_cast<std::remove_reference_t<decltype(target)>>(number);
  return true;
}

// Effect of a lost slice on keys.
bool read_lost_slice(const char* value, const RelationOption&, RelationOptions* options) {
  LostSlice* result = &options->lost_slice;
  struct Word {
    const char* word;
    LostRule rule;
  };
  constexpr Word kWords[] = {{"distinct", LostRule::distinct},
                             {"duplicate", LostRule::duplicate},
                             {"error", LostRule::error}};
  for (const Word& known : kWords)
    if (strcmp(value, known.word) == 0) {
      result->rule = known.rule;
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

bool read_max_future(const char* value, const RelationOption&, RelationOptions* options) {
  if (strcmp(value, "infinity") == 0) {
    options->max_future = PG_INT64_MAX;
    return true;
  }
  std::int64_t span;
  if (!parse_time_span(value, span)) return false;
  options->max_future = span;
  return true;
}

bool read_parent(const char* value, const RelationOption&, RelationOptions* options) {
  char *schema, *name;
  if (!split_name(value, &schema, &name)) return false;
  options->parent = value;
  return true;
}

// ---- the table

static_assert(kMaxTreeLevels == 32);  // the hint of top_down

constexpr RelationOption kRelationOptions[] = {
    {"conflict", read_word<&RelationOptions::conflict>, nullptr, kConflict, true},
    {"persistence", read_word<&RelationOptions::persistence>, nullptr, kPersistence},
    {"mode", read_word<&RelationOptions::mode>, nullptr, kMode, true},
    {"overfull", read_word<&RelationOptions::overfull>, nullptr, kOverfull, true},
    {"probe", read_word<&RelationOptions::probe>, nullptr, kProbe, true},
    {"lost_slice", read_lost_slice,
     "Valid values are: distinct, duplicate, error, votes:x, hybrid:x, with a number x of bits "
     "from "
     "1 to 64."},
    {"max_future", read_max_future, "Give a time such as '10 minutes', or 'infinity'."},
    {"servers", read_text<&RelationOptions::servers>, nullptr},
    {"producer", read_text<&RelationOptions::producer>, nullptr},
    {"identity", read_text<&RelationOptions::identity>, nullptr, nullptr, true},
    {"parent", read_parent,
     "Write the name of a filter as in SQL: my_filter, or my_schema.\"My Filter\"."},
    {"tree", read_word<&RelationOptions::tree>, nullptr, kTree},
    {"top_down", read_number<&RelationOptions::top_down, 0, 31>,
     "Give a level of the tree, 1 to 31, or 0 for none; the root is on level 0."},
};

void refuse_value(DefElem* given, const RelationOption& option, Fault& fault) {
  bad_value(given, fault);
  if (option.words == nullptr) {
    fault.add_hint("%s", option.hint);
    return;
  }
  StringInfoData list;
  initStringInfo(&list);
  for (int i = 0; option.words[i] != nullptr; ++i)
    appendStringInfo(&list, "%s%s", i > 0 ? ", " : "", option.words[i]);
  fault.add_hint("Valid values are: %s.", list.data);
}

// No kind has it, but it may be a misspelt one of these.
void name_relation_options(const char* name, Problem& problem) {
  if (is_option(name)) return;
  NearestName nearest(name);
  for (const RelationOption& option : kRelationOptions) nearest.consider(option.name);
  if (nearest.name() != nullptr && strstr(problem.hint, "Perhaps") == nullptr)
    problem.add_hint("Perhaps you meant the option \"%s\".", nearest.name());
  if (strstr(problem.hint, "Perhaps") != nullptr) return;
  StringInfoData list;
  initStringInfo(&list);
  appendBinaryStringInfo(&list, problem.hint, static_cast<int>(strcspn(problem.hint, ".")));
  for (const RelationOption& option : kRelationOptions)
    appendStringInfo(&list, ", %s", option.name);
  problem.add_hint("%s.", list.data);
}

bool read_option(DefElem* given, Definition* definition, RelationOptions* relation_options,
                 Fault& fault) {
  if (read_relation_option(given, relation_options, fault)) return !fault;
  Problem problem;
  if (set_option(*definition, given->defname, value_of(given), problem)) return true;
  name_relation_options(given->defname, problem);
  return fault.set(problem);
}

// Gives every server equally many slices by default.
bool give_servers_equally_many(Definition* definition, const RelationOptions* relation_options,
                               Fault& fault) {
  List* names;
  if (!read_server_names(relation_options, &names, fault)) return false;
  const auto servers = static_cast<uint32>(list_length(names));
  if (servers < 2 || definition->is_given(Common::slices)) return true;
  Definition attempt = *definition;
  Problem problem;
  if (!complete(attempt, problem)) return fault.set(problem);
  definition->parameters.slices = (attempt.parameters.slices + servers - 1) / servers * servers;
  definition->give(Common::slices);
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
  for (const OptionSpec& option : ops->options) {
    if (option.type != OptionType::span || strcmp(option.name, "window") != 0) continue;
    const bool rows = parameters.integer(option.word + 1) != 0;
    return rows ? 0 : parameters.integer(option.word);
  }
  return 0;
}

bool read_relation_option(DefElem* given, RelationOptions* relation_options, Fault& fault) {
  for (const RelationOption& option : kRelationOptions) {
    if (!is_named(given, option.name)) continue;
    if (!option.read(value_of(given), option, relation_options)) refuse_value(given, option, fault);
    return true;
  }
  return false;
}

bool keeps_state(List* options) {
  ListCell* cell;
  foreach (cell, options) {
    bool keeps = false;
    for (const RelationOption& option : kRelationOptions)
      keeps |= option.keeps_state && is_named(lfirst_node(DefElem, cell), option.name);
    if (!keeps) return false;
  }
  return true;
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
  // The kind decides which other options exist.
  for (const bool kind : {true, false})
    foreach (cell, options)
      if (auto* option = static_cast<DefElem*>(lfirst(cell)); is_named(option, "kind") == kind)
        if (!read_option(option, definition, relation_options, fault)) return false;
  if (!give_servers_equally_many(definition, relation_options, fault)) return false;
  relation_options->asked = *definition;
  Problem problem;
  if (!complete(*definition, problem)) return fault.set(problem);
  if (!check_max_future(definition, relation_options, fault)) return false;
  return check_tree_options(options, *definition, *relation_options, fault);
}

namespace {

bool read_with_fpr(List* options, const char* fpr, Definition* definition, RelationOptions* asked,
                   Fault& fault) {
  auto* value = reinterpret_cast<Node*>(makeString(pstrdup(fpr)));
  List* extended = lappend(list_copy(options), makeDefElem(pstrdup("fpr"), value, -1));
  *asked = RelationOptions();
  return read_table_options(extended, definition, asked, fault);
}

bool set_cannot_keep(Fault& fault, const Fault& why, const char* fpr) {
  fault = why;
  fault.add_detail("Without option fpr, its rate is to be %s.%s%s", fpr,
                   why.detail != nullptr ? " " : "", why.detail != nullptr ? why.detail : "");
  return fault.add_hint("%s%sIf losing one of a hundred new rows will do, add fpr '0.01'.",
                        why.hint != nullptr ? why.hint : "", why.hint != nullptr ? " " : "");
}

}  // namespace

bool takes_fpr(List* options, const char* fpr, Fault& fault) {
  // A producer's definition is complete; k determines the rate.
  for (const char* name : {"fpr", "producer", "k", "k1", "k2"})
    if (find_option(options, name) != nullptr) return false;
  Definition without, with;
  RelationOptions asked;
  Fault ignored;
  if (!read_table_options(options, &without, &asked, ignored)) {
    // If the rate is not kept, the message names it; otherwise CREATE's message will do.
    Fault other;
    return !read_with_fpr(options, fpr, &with, &asked, other) &&
           strcmp(other.message, ignored.message) != 0 && set_cannot_keep(fault, other, fpr);
  }
  if (find_ops(without.parameters.kind)->counts_only) return false;
  const bool may_override = promised_fpr(asked.asked) == 0;
  Problem problem;
  const bool is_read = read_with_fpr(options, fpr, &with, &asked, ignored);
  if (is_read && check_request(asked.asked, with, problem)) return true;
  if (is_read) ignored.set(problem);
  return may_override ? false : set_cannot_keep(fault, ignored, fpr);
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

// ---- options of trees ---------------------------------------------------------------------------

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

namespace {

bool check_options(List* options, Oid of, Fault& fault) {
  switch (of) {
    case ForeignTableRelationId: {
      Definition definition;
      RelationOptions relation_options;
      if (read_table_options(options, &definition, &relation_options, fault)) return true;
      if (Fault of_default; !takes_fpr(options, kDefaultFpr, of_default) && of_default)
        fault = of_default;
      return false;
    }
    case AttributeRelationId: {
      Role role;
      return read_column_options(options, &role, fault);
    }
    case ForeignServerRelationId: {
      ServerOptions server;
      return read_server_options(options, &server, fault);
    }
    case UserMappingRelationId: return check_user_mapping_options(options, fault);
    default:
      return options == NIL || unknown_option(static_cast<DefElem*>(linitial(options)),
                                              "foreign-data wrapper", nullptr, fault);
  }
}

}  // namespace

}  // namespace streamfilter::pg

using namespace streamfilter::pg;

// streamfilter_fdw_validator(options text[], catalog oid): checks the options of every object of
// the wrapper as they are set.
SF_FUNCTION(streamfilter_fdw_validator) {
  Fault fault;
  if (!check_options(untransformRelOptions(PG_GETARG_DATUM(0)), PG_GETARG_OID(1), fault))
    raise(fault);
  PG_RETURN_VOID();
}
