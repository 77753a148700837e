#include "pg/server/postgres.hpp"

extern "C" {
#include "lib/stringinfo.h"
#include "utils/jsonb.h"
#include "utils/numeric.h"
}

#include "pg/catalog/filter_options.hpp"
#include "pg/catalog/producer_agreement.hpp"

namespace streamfilter::pg {
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
