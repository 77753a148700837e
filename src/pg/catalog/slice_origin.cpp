#include "pg/server/postgres.hpp"

extern "C" {
#include "utils/ruleutils.h"
}

#include "core/filter/promise.hpp"
#include "pg/catalog/lookup.hpp"
#include "pg/catalog/option_list.hpp"
#include "pg/catalog/server_options.hpp"
#include "pg/catalog/slice_origin.hpp"

namespace streamfilter::pg {
static List* describe_column(const FilterColumn* column) {
  List* parts = list_make2(
      make_option("name", column->name),
      make_option("type",
                  format_type_extended(column->type, column->typmod,
                                       FORMAT_TYPE_TYPEMOD_GIVEN | FORMAT_TYPE_FORCE_QUALIFY)));
  if (OidIsValid(column->collation) && column->collation != get_typcollation(column->type))
    parts = lappend(parts, make_option("collation", generate_collation_name(column->collation)));
  if (column->role != Role::key) parts = lappend(parts, make_option("role", name_of(column->role)));
  if (column->unit != TimeUnit::unsaid)
    parts = lappend(parts, make_option("unit", name_of(column->unit)));
  return parts;
}

static List* describe_server(Oid oid) {
  const ForeignServer* server = server_of_oid(oid);
  List* parts = list_make1(make_option("name", server->servername));
  for (auto* option : each<DefElem>(server->options)) {
    if (is_connection_option(option->defname)) parts = lappend(parts, option);
  }
  return parts;
}

// Where the bits of a key lie, which a part of the filter does not show.
static const char* describe_slicing(const Parameters& parameters) {
  if (parameters.k1 == 0) return "horizontal";
  return psprintf("%u probes in groups of %u slices", probes(parameters),
                  slices_of_group(parameters));
}

const char* describe_producer(const FilterRelation* relation, int server, const char* identity) {
  Producer producer = {};
  for (int i = 0; i < relation->column_count; ++i)
    producer.columns = lappend(producer.columns, describe_column(&relation->columns[i]));
  producer.options = options_of_filter(relation->relid);
  for (int i = 0; i < relation->server_count; ++i)
    producer.servers = lappend(producer.servers, describe_server(relation->servers[i]));
  producer.position = psprintf("%d", server + 1);
  producer.identity = identity != nullptr ? identity : identity_of_filter(relation->relid);
  producer.slicing = describe_slicing(relation->definition.parameters);
  return print_producer(producer);
}

// ---- agreement of producers ---------------------------------------------------------------------

// Types, collations, roles and units in order, as far as hashes depend on them; names may differ.
static const char* describe_key(const Producer* producer) {
  if (producer->columns == NIL) return nullptr;
  TextBuffer text;
  ListCell* cell;
  foreach (cell, producer->columns) {
    appendStringInfoString(&text, foreach_current_index(cell) == 0 ? "(" : ", ");
    struct Part {
      const char *before, *name;
    };
    for (const Part& part :
         {Part{"", "type"}, {" collate ", "collation"}, {" role ", "role"}, {" unit ", "unit"}})
      if (const char* value = find_option(static_cast<List*>(lfirst(cell)), part.name))
        appendStringInfo(&text, "%s%s", part.before, value);
  }
  appendStringInfoChar(&text, ')');
  return text.data;
}

static const char* describe_position(const Producer* producer) {
  if (producer->servers == NIL || producer->position == nullptr) return nullptr;
  return psprintf("%s of %d", producer->position, list_length(producer->servers));
}

// nullptr: the producer's version does not say.
static void check_equal(const FilterRelation* relation, const char* what, const char* found,
                        const char* wanted) {
  if (found == nullptr || wanted == nullptr || strcmp(found, wanted) == 0) return;
  ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
          errmsg("filter \"%s\" is defined otherwise by its first producer", relation->name),
          errdetail("Its %s: %s. This producer says %s.", what, found, wanted),
          errhint("Define it as there; IMPORT FOREIGN SCHEMA does so. Or alter it on the server "
                  "that holds the "
                  "slices, and for every producer."));
}

void check_producer_agrees(const FilterRelation* relation, const Producer* requested,
                           const char* conflict) {
  const Producer* found = relation->options.producer;
  check_equal(relation, "option conflict", name_of(relation->options.conflict), conflict);
  check_equal(relation, "slicing", found->slicing, requested->slicing);
  check_equal(relation, "columns", describe_key(found), describe_key(requested));
  check_equal(relation, "place in option servers", describe_position(found),
              describe_position(requested));
}

// ---- identities ---------------------------------------------------------------------------------

const char* identity_of_filter(Oid relid) {
  return psprintf(UINT64_FORMAT "/%u/%u", GetSystemIdentifier(), MyDatabaseId, relid);
}

bool was_dropped_here(const char* identity) {
  uint64 system;
  Oid database, relid;
  if (sscanf(identity, UINT64_FORMAT "/%u/%u", &system, &database, &relid) != 3) return false;
  return system == GetSystemIdentifier() && database == MyDatabaseId && !is_filter(relid);
}

// ---- what slices take over from their producer --------------------------------------------------

bool has_places_elsewhere(const FilterRelation* relation) {
  const Producer* producer = relation->options.producer;
  if (producer == nullptr || probes(relation->definition.parameters) > 1) return false;
  const char* slicing = find_option(producer->options, "slicing");
  const char* k1 = find_option(producer->options, "k1");
  return (slicing != nullptr && strcmp(slicing, "horizontal") != 0) ||
         (k1 != nullptr && strcmp(k1, "1") != 0);
}

double promised_fpr_of(const FilterRelation* relation) {
  const Producer* producer = relation->options.producer;
  Definition asked = relation->options.asked;
  if (producer == nullptr) return promised_fpr(asked);
  if (has_places_elsewhere(relation)) return 0;
  if (find_option(producer->options, "k1") != nullptr) return asked.parameters.fpr;
  for (const OptionSpec& option : options_of(find_ops(asked.parameters.kind)))
    if (find_option(producer->options, option.name) == nullptr)
      asked.given &= ~(WordSet{1} << option.word);
  return promised_fpr(asked);
}

bool discards_overfull(const FilterRelation* relation) {
  if (relation->options.overfull == Overfull::discard) return true;
  const Producer* producer = relation->options.producer;
  const char* overfull = producer != nullptr ? find_option(producer->options, "overfull") : nullptr;
  return overfull != nullptr && strcmp(overfull, name_of(Overfull::discard)) == 0;
}

}  // namespace streamfilter::pg
