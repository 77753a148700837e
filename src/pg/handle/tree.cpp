#include "pg/server/postgres.hpp"

#include "core/filter/option_values.hpp"
#include "pg/catalog/lookup.hpp"
#include "pg/handle/slot_lifecycle.hpp"
#include "pg/handle/tree.hpp"

namespace streamfilter::pg {
namespace {

Oid look_up_parent(const char* text, Oid child) {
  char *schema, *name;
  split_name(text, &schema, &name);
  const Oid space = schema != nullptr ? get_namespace_oid(schema, true) : get_rel_namespace(child);
  return OidIsValid(space) ? get_relname_relid(name, space) : InvalidOid;
}

// 0: a root; -1: there is no way up to one.
int level_of(Oid relid) {
  for (int level = 0; level < static_cast<int>(kMaxTreeLevels); ++level) {
    if (!is_filter(relid)) return -1;
    const RelationOptions options = tree_options_of(relid);
    if (options.parent == nullptr) return level;
    relid = look_up_parent(options.parent, relid);
  }
  return -1;
}

// ---- what differs ------------------------------------------------------------------------------

struct Difference {
  const char* what;  // nullptr: nothing
  const char* mine;
  const char* its;
};

const char* text_of(const Parameters& parameters, const OptionSpec& option) {
  char text[256];
  print_option(parameters, option, text, sizeof text);
  return pstrdup(text);
}

const char* text_of(const Parameters& parameters, const CommonOption& option) {
  char text[256];
  TextWriter out(text, sizeof text);
  option.write(out, parameters);
  return pstrdup(text);
}

const char* key_text(const FilterRelation* relation) {
  TextBuffer text;
  for (int i = 0; i < relation->key_count; ++i)
    appendStringInfo(&text, "%s%s", i > 0 ? ", " : "", format_type_be(relation->keys[i]->type));
  return text.data;
}

bool have_equal_keys(const FilterRelation* a, const FilterRelation* b) {
  if (a->key_count != b->key_count) return false;
  for (int i = 0; i < a->key_count; ++i)
    if (a->keys[i]->base_type != b->keys[i]->base_type ||
        a->keys[i]->collation != b->keys[i]->collation)
      return false;
  return true;
}

Difference difference_of(const FilterRelation* relation, const FilterRelation* parent) {
  const Parameters& mine = relation->definition.parameters;
  const Parameters& its = parent->definition.parameters;
  constexpr auto kAlike = set_of(Common::kind, Common::memory, Common::layout);
  if (const CommonOption* option = find_difference(mine, its, kAlike))
    return {option->name, text_of(mine, *option), text_of(its, *option)};
  for (const OptionSpec& option : find_ops(mine.kind)->options)
    if (!is_same_option(option, mine, its))
      return {option.name, text_of(mine, option), text_of(its, option)};
  if (!relation->adopts_seed &&
      !(parent->definition.is_given(Common::seed) && mine.seed == its.seed))
    return {"seed", psprintf(UINT64_FORMAT, mine.seed), "another"};
  if (relation->options.top_down > 0 &&
      relation->options.persistence != parent->options.persistence)
    return {"persistence", name_of(relation->options.persistence),
            name_of(parent->options.persistence)};
  return {nullptr, nullptr, nullptr};
}

}  // namespace

RelationOptions tree_options_of(Oid relid) {
  RelationOptions options;
  Fault fault;
  for (auto* option : each<DefElem>(options_of_filter(relid)))
    read_relation_option(option, &options, fault);
  return options;
}

Oid find_parent(Oid relid) {
  const RelationOptions options = tree_options_of(relid);
  return options.parent != nullptr ? look_up_parent(options.parent, relid) : InvalidOid;
}

namespace {

// The filters of the database that name a parent, most often none. Kept until some foreign table
// is created, altered or dropped: to ask all filters for each one that is used would take time and
// memory by the square of their number.
struct NamedParents {
  List* children = NIL;
  bool valid = false;
} named;

const List* list_children() {
  if (named.valid) return named.children;
  MemoryContext lookup = make_small_context("streamfilter trees");
  MemoryContext caller = MemoryContextSwitchTo(lookup);
  List* found = NIL;
  named.valid = true;  // what changes meanwhile makes it invalid again
  for (const Oid filter : each_oid(list_filters("parent")))
    if (tree_options_of(filter).parent != nullptr) found = lappend_oid(found, filter);
  MemoryContextSwitchTo(CacheMemoryContext);
  List* kept = list_copy(found);
  list_free(named.children);
  named.children = kept;
  MemoryContextSwitchTo(caller);
  MemoryContextDelete(lookup);
  return named.children;
}

}  // namespace

void on_foreign_table_change(Datum, SF_SYSCACHE_ID, uint32) { named.valid = false; }

List* find_children(Oid relid) {
  List* children = NIL;
  for (const Oid other : each_oid(list_children())) {
    if (other == relid) continue;
    const RelationOptions options = tree_options_of(other);
    if (options.parent != nullptr && look_up_parent(options.parent, other) == relid &&
        has_rights_on_parent(other, relid))
      children = lappend_oid(children, other);
  }
  return children;
}

List* find_descendants(Oid relid) {
  List* found = find_children(relid);
  // The list grows while it is read; a circle ends where it has begun.
  for (int i = 0; i < list_length(found); ++i)
    found = list_concat_unique_oid(found, find_children(list_nth_oid(found, i)));
  return found;
}

bool is_in_tree(Oid relid) { return OidIsValid(find_parent(relid)) || find_children(relid) != NIL; }

FilterRelation* try_load_filter_relation(Oid relid, Fault& fault) {
  FilterRelation* relation = read_filter_relation(relid, fault);
  if (relation == nullptr) return nullptr;
  relation->adopts_seed =
      relation->options.parent != nullptr && !relation->definition.is_given(Common::seed);
  if (relation->options.parent == nullptr) return relation;
  relation->parent = look_up_parent(relation->options.parent, relation->relid);
  relation->level = level_of(relation->relid);
  // An owner without rights on the parent must not learn its seed.
  if (relation->level < 0 || !relation->adopts_seed ||
      !has_rights_on_parent(relation->relid, relation->parent))
    return relation;
  const FilterRelation* parent = try_load_filter_relation(relation->parent, fault);
  if (parent == nullptr) return nullptr;
  uint64 seed = parent->definition.parameters.seed;
  if (!parent->definition.is_given(Common::seed) && !peek_seed(parent, &seed)) return relation;
  relation->uncommitted |= parent->uncommitted;
  adopt_seed(relation, seed);
  return relation;
}

FilterRelation* load_filter_relation(Oid relid) {
  Fault fault;
  FilterRelation* relation = try_load_filter_relation(relid, fault);
  if (relation == nullptr) raise(fault);
  return relation;
}

FilterRelation* show_filter_relation(Oid relid, Fault& fault) {
  if (!is_filter(relid)) return nullptr;
  FilterRelation* relation = try_load_filter_relation(relid, fault);
  // It was dropped just now, and nobody has locked it against that.
  if (relation == nullptr && !is_filter(relid)) fault = Fault();
  return relation;
}

void report_missing_parent(int level, const FilterRelation* relation) {
  ereport(level, errcode(ERRCODE_UNDEFINED_TABLE),
          errmsg("parent \"%s\" of filter \"%s\" does not exist", relation->options.parent,
                 relation->name),
          errdetail("A name without a schema is looked up in schema \"%s\", that of the filter.",
                    get_namespace_name(get_rel_namespace(relation->relid))),
          errhint("Create it, or name another filter with ALTER FOREIGN TABLE ... OPTIONS (SET "
                  "parent '...')."));
}

void check_way_up(const FilterRelation* relation) {
  if (relation->level >= 0) return;
  if (!OidIsValid(relation->parent)) report_missing_parent(ERROR, relation);
  if (!is_filter(relation->parent))
    ereport(ERROR, errcode(ERRCODE_WRONG_OBJECT_TYPE),
            errmsg("parent \"%s\" of filter \"%s\" is not a filter", relation->options.parent,
                   relation->name));
  Oid ancestor = relation->parent;
  for (unsigned i = 0; i < kMaxTreeLevels && OidIsValid(ancestor); ++i) {
    if (ancestor == relation->relid)
      ereport(ERROR, errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
              errmsg("filter \"%s\" cannot be its own ancestor", relation->name),
              errdetail("Following its parents leads back to it."));
    ancestor = find_parent(ancestor);
  }
  ereport(ERROR, errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
          errmsg("there is no way from filter \"%s\" up to a root", relation->name),
          errdetail("An ancestor has a parent that does not exist or is no filter, or there are "
                    "more than %u levels.",
                    kMaxTreeLevels));
}

void check_fit(int level, const FilterRelation* relation, const FilterRelation* parent) {
  if (!have_equal_keys(relation, parent)) {
    ereport(level, errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
            errmsg("filter \"%s\" does not fit its parent \"%s\"", relation->name, parent->name),
            errdetail("Its key is (%s), that of the parent (%s).", key_text(relation),
                      key_text(parent)),
            errhint("All filters of a tree have the same types and collations of key columns."));
    return;
  }
  if (is_remote(parent) && !parent->definition.is_given(Common::seed))
    ereport(level, errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
            errmsg("filter \"%s\" cannot be a parent without option seed", parent->name),
            errdetail("Its state is on other servers, and the filters below need its seed."),
            errhint("ALTER FOREIGN TABLE ... OPTIONS (ADD seed '...')."));
  const Difference difference = difference_of(relation, parent);
  if (difference.what == nullptr) return;
  ereport(level, errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
          errmsg("filter \"%s\" does not fit its parent \"%s\"", relation->name, parent->name),
          errdetail("Its %s is %s, that of the parent is %s.", difference.what, difference.mine,
                    difference.its),
          strcmp(difference.what, "seed") == 0
              ? errhint("Leave out option seed: a filter with a parent has the seed of its root.")
              : errhint("All filters of a tree are of one shape: give both the same %s.",
                        difference.what));
}

bool has_rights_on_parent(Oid relid, Oid parent) {
  const Oid owner = owner_of(relid);
  bool is_missing = false;
  return pg_class_aclcheck_ext(parent, owner, ACL_INSERT, &is_missing) == ACLCHECK_OK &&
         pg_class_aclcheck_ext(parent, owner, ACL_SELECT, &is_missing) == ACLCHECK_OK &&
         !is_missing;
}

void check_rights_on_parent(int level, const FilterRelation* relation,
                            const FilterRelation* parent) {
  if (has_rights_on_parent(relation->relid, parent->relid)) return;
  const char* name = name_of_role(owner_of(relation->relid));
  ereport(level, errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
          errmsg("permission denied for filter \"%s\"", parent->name),
          errdetail("The owner of its child \"%s\", role \"%s\", needs SELECT and INSERT on it.",
                    relation->name, name),
          errhint("GRANT SELECT, INSERT ON %s TO %s;", qualified_name(parent->relid),
                  quote_identifier(name)));
}

}  // namespace streamfilter::pg
