#include "pg/server/postgres.hpp"

extern "C" {
#include "access/xlog.h"
#include "commands/defrem.h"
#include "lib/stringinfo.h"
#include "utils/json.h"
#include "utils/jsonb.h"
#include "utils/numeric.h"
#include "utils/ruleutils.h"
}

#include "core/filter/promise.hpp"
#include "pg/catalog/lookup.hpp"
#include "pg/catalog/server_options.hpp"
#include "pg/catalog/slice_origin.hpp"

namespace streamfilter::pg {
namespace {

void append_member(StringInfo json, const char* name, const char* value) {
  if (json->data[json->len - 1] != '{') appendStringInfoString(json, ", ");
  escape_json(json, name);
  appendStringInfoString(json, ": ");
  escape_json(json, value);
}

void append_separator(StringInfo json, int i) {
  if (i > 0) appendStringInfoString(json, ", ");
}

const char* role_of(const FilterColumn* column) {
  switch (column->role) {
    case Role::importance: return "importance";
    case Role::time: return "time";
    default: return nullptr;
  }
}

void append_column(StringInfo json, const FilterColumn* column) {
  appendStringInfoChar(json, '{');
  append_member(json, "name", column->name);
  append_member(json, "type",
                format_type_extended(column->type, column->typmod,
                                     FORMAT_TYPE_TYPEMOD_GIVEN | FORMAT_TYPE_FORCE_QUALIFY));
  if (OidIsValid(column->collation) && column->collation != get_typcollation(column->type))
    append_member(json, "collation", generate_collation_name(column->collation));
  if (const char* role = role_of(column)) append_member(json, "role", role);
  appendStringInfoChar(json, '}');
}

void append_server(StringInfo json, Oid oid) {
  const ForeignServer* server = server_of_oid(oid);
  appendStringInfoChar(json, '{');
  append_member(json, "name", server->servername);
  ListCell* cell;
  foreach (cell, server->options) {
    auto* option = static_cast<DefElem*>(lfirst(cell));
    if (is_connection_option(option->defname))
      append_member(json, option->defname, defGetString(option));
  }
  appendStringInfoChar(json, '}');
}

// Where the bits of a key lie, which a part of the filter does not show.
const char* describe_slicing(const Parameters& parameters) {
  if (parameters.k1 == 0) return "horizontal";
  return psprintf("%u probes in groups of %u slices", probes(parameters),
                  slices_of_group(parameters));
}

constexpr char kOptions[] = "\"options\": {", kServers[] = "}, \"servers\": [";

// Does such an object have this option, with this value? nullptr: with any. The object may be
// arbitrary text. Quotes within a name or value are escaped, so the search cannot match anything
// else.
bool producer_gives(const char* producer, const char* option, const char* value) {
  const char* start = strstr(producer, kOptions);
  const char* end = start != nullptr ? strstr(start, kServers) : nullptr;
  if (end == nullptr) return false;
  StringInfoData member;
  initStringInfo(&member);
  escape_json(&member, option);
  appendStringInfoString(&member, ": ");
  value != nullptr ? escape_json(&member, value) : appendStringInfoChar(&member, '"');
  const char* found = strstr(start, member.data);
  pfree(member.data);
  return found != nullptr && found < end;
}

}  // namespace

const char* identity_of_filter(Oid relid) {
  return psprintf(UINT64_FORMAT "/%u/%u", GetSystemIdentifier(), MyDatabaseId, relid);
}

bool was_dropped_here(const char* identity) {
  uint64 system;
  Oid database, relid;
  if (sscanf(identity, UINT64_FORMAT "/%u/%u", &system, &database, &relid) != 3) return false;
  return system == GetSystemIdentifier() && database == MyDatabaseId && !is_filter(relid);
}

bool has_places_elsewhere(const FilterRelation* relation) {
  const char* producer = relation->options.producer;
  if (producer == nullptr || probes(relation->definition.parameters) > 1) return false;
  return producer_gives(producer, "slicing", "vertical") ||
         producer_gives(producer, "slicing", "diced") ||
         (producer_gives(producer, "k1", nullptr) && !producer_gives(producer, "k1", "1"));
}

double promised_fpr_of(const FilterRelation* relation) {
  const char* producer = relation->options.producer;
  Definition asked = relation->options.asked;
  if (producer == nullptr) return promised_fpr(asked);
  if (has_places_elsewhere(relation)) return 0;
  if (producer_gives(producer, "k1", nullptr)) return asked.parameters.fpr;
  for (const OptionSpec& option : options_of(find_ops(asked.parameters.kind)))
    if (!producer_gives(producer, option.name, nullptr))
      asked.given &= ~(WordSet{1} << option.word);
  return promised_fpr(asked);
}

bool discards_overfull(const FilterRelation* relation) {
  const char* producer = relation->options.producer;
  return relation->options.overfull == Overfull::discard ||
         (producer != nullptr && producer_gives(producer, "overfull", "discard"));
}

const char* describe_producer(const FilterRelation* relation, int server, const char* identity) {
  StringInfoData json;
  initStringInfo(&json);
  appendStringInfoString(&json, "{\"columns\": [");
  for (int i = 0; i < relation->column_count; ++i) {
    append_separator(&json, i);
    append_column(&json, &relation->columns[i]);
  }
  appendStringInfo(&json, "], %s", kOptions);
  ListCell* cell;
  foreach (cell, options_of_filter(relation->relid)) {
    auto* option = static_cast<DefElem*>(lfirst(cell));
    append_member(&json, option->defname, defGetString(option));
  }
  appendStringInfoString(&json, kServers);
  for (int i = 0; i < relation->server_count; ++i) {
    append_separator(&json, i);
    append_server(&json, relation->servers[i]);
  }
  appendStringInfo(&json, "], \"position\": \"%d\", ", server + 1);
  escape_json(&json, "identity");
  appendStringInfoString(&json, ": ");
  escape_json(&json, identity != nullptr ? identity : identity_of_filter(relation->relid));
  append_member(&json, "slicing", describe_slicing(relation->definition.parameters));
  appendStringInfoChar(&json, '}');
  return json.data;
}

// ---- agreement of producers ---------------------------------------------------------------------

namespace {

// The option may have been written by hand.
bool is_object(const char* text) { return text != nullptr && text[0] == '{'; }

JsonbContainer* parse_json(const char* text) {
  const Datum json = DirectFunctionCall1(jsonb_in, CStringGetDatum(text));
  return &DatumGetJsonbP(json)->root;
}

// The value of a member; nullptr: there is none.
const JsonbValue* find_member(JsonbContainer* object, const char* name) {
  if (!JsonContainerIsObject(object)) return nullptr;
  return getKeyJsonValueFromContainer(object, name, static_cast<int>(strlen(name)), nullptr);
}

// A member that is an array or object; nullptr: there is none.
JsonbContainer* find_container(JsonbContainer* object, const char* name) {
  const JsonbValue* value = find_member(object, name);
  return value != nullptr && value->type == jbvBinary ? value->val.binary.data : nullptr;
}

// Appends a string member, and `before` in front of it.
void append_string(StringInfo text, JsonbContainer* object, const char* name, const char* before) {
  const JsonbValue* value = find_member(object, name);
  if (value == nullptr || value->type != jbvString) return;
  appendStringInfoString(text, before);
  appendBinaryStringInfo(text, value->val.string.val, value->val.string.len);
}

// Types, collations and roles in order, as far as hashes depend on them; names may differ.
const char* describe_key(JsonbContainer* producer) {
  JsonbContainer* columns = find_container(producer, "columns");
  if (columns == nullptr || !JsonContainerIsArray(columns)) return nullptr;
  StringInfoData text;
  initStringInfo(&text);
  appendStringInfoChar(&text, '(');
  for (uint32 i = 0; i < JsonContainerSize(columns); ++i) {
    const JsonbValue* column = getIthJsonbValueFromContainer(columns, i);
    if (i > 0) appendStringInfoString(&text, ", ");
    if (column == nullptr || column->type != jbvBinary) continue;
    append_string(&text, column->val.binary.data, "type", "");
    append_string(&text, column->val.binary.data, "collation", " collate ");
    append_string(&text, column->val.binary.data, "role", " role ");
  }
  appendStringInfoChar(&text, ')');
  return text.data;
}

// The position of this server among all; nullptr: the producer's version does not say.
const char* describe_position(JsonbContainer* producer) {
  JsonbContainer* servers = find_container(producer, "servers");
  const JsonbValue* position = find_member(producer, "position");
  if (servers == nullptr || position == nullptr || position->type != jbvString) return nullptr;
  return psprintf("%.*s of %u", position->val.string.len, position->val.string.val,
                  JsonContainerSize(servers));
}

void check_equal(const FilterRelation* relation, const char* what, const char* found,
                 const char* wanted) {
  if (found == nullptr || wanted == nullptr || strcmp(found, wanted) == 0) return;
  ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
          errmsg("filter \"%s\" is defined otherwise by its first producer", relation->name),
          errdetail("Its %s: %s. This producer says %s.", what, found, wanted),
          errhint("Define it as there; IMPORT FOREIGN SCHEMA does so. Or alter it on the server "
                  "that holds the "
                  "slices, and for every producer."));
}

}  // namespace

void check_producer_agrees(const FilterRelation* relation, const RequestedOptions& requested) {
  check_equal(relation, "option conflict", name_of(relation->options.conflict), requested.conflict);
  check_equal(relation, "slicing", slicing_of_producer(relation->options.producer),
              requested.slicing);
  if (!is_object(requested.producer) || !is_object(relation->options.producer)) return;
  JsonbContainer* found = parse_json(relation->options.producer);
  JsonbContainer* wanted = parse_json(requested.producer);
  check_equal(relation, "columns", describe_key(found), describe_key(wanted));
  check_equal(relation, "place in option servers", describe_position(found),
              describe_position(wanted));
}

const char* slicing_of_producer(const char* producer) {
  if (!is_object(producer)) return nullptr;
  const JsonbValue* value = find_member(parse_json(producer), "slicing");
  if (value == nullptr || value->type != jbvString) return nullptr;
  return pnstrdup(value->val.string.val, static_cast<Size>(value->val.string.len));
}

}  // namespace streamfilter::pg
