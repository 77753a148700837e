#include "pg/server/postgres.hpp"

extern "C" {
#include "access/reloptions.h"
#include "catalog/pg_user_mapping.h"
#include "utils/varlena.h"
}

#include <array>
#include <initializer_list>

#include "core/filter/filter.hpp"
#include "core/filter/option_values.hpp"
#include "core/filter/time_span.hpp"
#include "pg/catalog/filter_options.hpp"
#include "pg/catalog/option_list.hpp"
#include "pg/catalog/producer.hpp"
#include "pg/catalog/server_options.hpp"

namespace streamfilter::pg {
namespace {

// An option that is not stored in the filter's bytes.
struct RelationOption {
  const char* name;
  // False: a bad value.
  bool (*read)(const char* value, const RelationOption& option, RelationOptions* options);
  const char* hint;           // describes valid values; nullptr: one of
  WordList words = kNoWords;  // these words
  bool keeps_state = false;   // ALTER of it does not affect the filter's keys
};

// ---- readers

template <auto member>
bool read_word(const char* value, const RelationOption& option, RelationOptions* options) {
  auto& target = options->*member;
  const int word = find_word(option.words, value);
  if (word >= 0) target = static_cast<std::remove_reference_t<decltype(target)>>(word);
  return word >= 0;
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
  const char* colon = strchr(value, ':');
  const int word = find_word(kLostWords, pnstrdup(value, strcspn(value, ":")));
  if (word < 0) return false;
  const auto rule = static_cast<LostRule>(word);
  const bool needs_number = rule == LostRule::votes || rule == LostRule::hybrid;
  int least = 0;
  if (needs_number != (colon != nullptr) ||
      (needs_number && (!parse_int(colon + 1, &least, 0, nullptr) || least <= 0 || least > 64)))
    return false;
  options->lost_slice = {rule, static_cast<uint32>(least)};
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

bool read_producer_option(const char* value, const RelationOption&, RelationOptions* options) {
  options->producer = read_producer(value);
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
    {"conflict", read_word<&RelationOptions::conflict>, nullptr, kConflictWords, true},
    {"persistence", read_word<&RelationOptions::persistence>, nullptr, kPersistenceWords},
    {"mode", read_word<&RelationOptions::mode>, nullptr, kModeWords, true},
    {"overfull", read_word<&RelationOptions::overfull>, nullptr, kOverfullWords, true},
    {"probe", read_word<&RelationOptions::probe>, nullptr, kProbeWords, true},
    {"lost_slice", read_lost_slice,
     "Valid values are: distinct, duplicate, error, votes:x, hybrid:x, with a number x of bits "
     "from "
     "1 to 64."},
    {"max_future", read_max_future, "Give a time such as '10 minutes', or 'infinity'."},
    {"servers", read_text<&RelationOptions::servers>, nullptr},
    {"producer", read_producer_option, nullptr},
    {"identity", read_text<&RelationOptions::identity>, nullptr, kNoWords, true},
    {"parent", read_parent,
     "Write the name of a filter as in SQL: my_filter, or my_schema.\"My Filter\"."},
    {"tree", read_word<&RelationOptions::tree>, nullptr, kTreeWords},
    {"top_down", read_number<&RelationOptions::top_down, 0, 31>,
     "Give a level of the tree, 1 to 31, or 0 for none; the root is on level 0."},
};

// The names of the table.
constexpr auto kRelationOptionNames = [] {
  std::array<const char*, std::size(kRelationOptions) + 1> names = {};
  for (std::size_t i = 0; i < std::size(kRelationOptions); ++i) names[i] = kRelationOptions[i].name;
  return names;
}();

bool refuse_value(DefElem* given, const char* hint, WordList words, Fault& fault) {
  bad_value(given, fault);
  if (hint != nullptr) return fault.add_hint("%s", hint);
  char list[128];
  TextWriter out(list, sizeof list);
  add_words(out, words);
  return fault.add_hint("Valid values are: %s.", list);
}

bool read_option(DefElem* given, Definition* definition, RelationOptions* relation_options,
                 Fault& fault) {
  if (read_relation_option(given, relation_options, fault)) return !fault;
  Problem problem;
  return set_option(*definition, given->defname, value_of(given), problem,
                    kRelationOptionNames.data()) ||
         fault.set(problem);
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
  if (relation_options->max_future < 0 || window_of(definition->parameters).length != 0)
    return true;
  fault.set(ERRCODE_INVALID_PARAMETER_VALUE, "option max_future needs a window of time");
  return fault.add_hint("Add option window, for example window '10 minutes'.");
}

}  // namespace

bool read_relation_option(DefElem* given, RelationOptions* relation_options, Fault& fault) {
  const RelationOption* option = find_named(kRelationOptions, given->defname);
  if (option == nullptr) return false;
  if (!option->read(value_of(given), *option, relation_options))
    refuse_value(given, option->hint, option->words, fault);
  return true;
}

bool keeps_state(List* options) {
  for (auto* given : each<DefElem>(options)) {
    const auto* option = find_named(kRelationOptions, given->defname);
    if (option == nullptr || !option->keeps_state) return false;
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
  // The kind decides which other options exist.
  for (const bool kind : {true, false})
    for (auto* option : each<DefElem>(options))
      if (is_named(option, "kind") == kind)
        if (!read_option(option, definition, relation_options, fault)) return false;
  if (!give_servers_equally_many(definition, relation_options, fault)) return false;
  relation_options->asked = *definition;
  Problem problem;
  if (!complete(*definition, problem)) return fault.set(problem);
  if (!check_max_future(definition, relation_options, fault)) return false;
  return check_tree_options(options, *definition, *relation_options, fault);
}

static bool read_with_fpr(List* options, const char* fpr, Definition* definition,
                          RelationOptions* asked, Fault& fault) {
  List* extended = lappend(list_copy(options), make_option("fpr", fpr));
  *asked = RelationOptions();
  return read_table_options(extended, definition, asked, fault);
}

static bool set_cannot_keep(Fault& fault, const Fault& why, const char* fpr) {
  fault = why;
  fault.add_detail("Without option fpr, its rate is to be %s.%s%s", fpr,
                   why.detail != nullptr ? " " : "", why.detail != nullptr ? why.detail : "");
  return fault.add_hint("%s%sIf losing one of a hundred new rows will do, add fpr '0.01'.",
                        why.hint != nullptr ? why.hint : "", why.hint != nullptr ? " " : "");
}

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

bool read_column_options(List* options, Role* role, TimeUnit* unit, Fault& fault) {
  *role = Role::key;
  *unit = TimeUnit::unsaid;
  for (auto* option : each<DefElem>(options)) {
    const bool is_role = is_named(option, "role");
    if (!is_role && !is_named(option, "unit"))
      return unknown_option(option, "column of a filter", "role, unit", fault);
    const WordList words = (is_role ? kRoleWords : kUnitWords) + 1;  // the first needs no option
    const int word = find_word(words, value_of(option));
    if (word < 0) return refuse_value(option, nullptr, words, fault);
    if (is_role) *role = static_cast<Role>(word + 1);
    if (!is_role) *unit = static_cast<TimeUnit>(word + 1);
  }
  return true;
}

// ---- options of trees ---------------------------------------------------------------------------

static bool has_window_of_rows(const Parameters& parameters) {
  for (const OptionSpec& option : find_ops(parameters.kind)->options)
    if (option.type == OptionType::span && counts_rows(parameters, option)) return true;
  return false;
}

template <Forgets when, Forgets or_when = when>
static const char* kinds_that_forget() {
  auto* names = allocate<char>(256);
  list_kinds([](const FilterOps& ops) { return ops.forgets == when || ops.forgets == or_when; },
             names, 256);
  return names;
}

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
                          kinds_that_forget<Forgets::never, Forgets::when_full>(),
                          kinds_that_forget<Forgets::after_window>());
  }
  if (ops->forgets == Forgets::never) return true;
  if (keys_expire(definition.parameters) && relation_options.tree == TreeKind::dense) {
    fault.set(ERRCODE_FEATURE_NOT_SUPPORTED, "a tree of kind %s with a window cannot be dense",
              ops->name);
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
  if (has_window_of_rows(definition.parameters)) {
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

static bool check_options(List* options, Oid of, Fault& fault) {
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
      TimeUnit unit;
      return read_column_options(options, &role, &unit, fault);
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

// streamfilter_fdw_validator(options text[], catalog oid): checks the options of every object of
// the wrapper as they are set.
SF_FUNCTION(streamfilter_fdw_validator) {
  Fault fault;
  if (!check_options(untransformRelOptions(PG_GETARG_DATUM(0)), PG_GETARG_OID(1), fault))
    raise(fault);
  PG_RETURN_VOID();
}

}  // namespace streamfilter::pg
