#include "pg/server/postgres.hpp"

extern "C" {
#include "utils/json.h"
#include "utils/jsonb.h"
#include "utils/numeric.h"
}

#include <initializer_list>

#include "pg/catalog/option_list.hpp"
#include "pg/catalog/producer.hpp"

namespace streamfilter::pg {

// ---- reading ------------------------------------------------------------------------------------

namespace {

// nullptr: it is no JSON that PostgreSQL can read. An error there has changed nothing but memory,
// so no savepoint is needed to go on.
JsonbContainer* parse_json(const char* text) {
  JsonbContainer* volatile root = nullptr;
  const MemoryContext caller = CurrentMemoryContext;
  PG_TRY();
  {
    const Datum json = DirectFunctionCall1(jsonb_in, CStringGetDatum(text));
    root = &DatumGetJsonbP(json)->root;
  }
  PG_CATCH();
  {
    const int category = ERRCODE_TO_CATEGORY(geterrcode());
    if (category != ERRCODE_DATA_EXCEPTION && category != ERRCODE_PROGRAM_LIMIT_EXCEEDED)
      PG_RE_THROW();
    MemoryContextSwitchTo(caller);
    FlushErrorState();
  }
  PG_END_TRY();
  return root;
}

char* copy_string(const JsonbValue& value) {
  return pnstrdup(value.val.string.val, static_cast<Size>(value.val.string.len));
}

const JsonbValue* find_member(JsonbContainer* object, const char* name) {
  return getKeyJsonValueFromContainer(object, name, static_cast<int>(strlen(name)), nullptr);
}

const char* read_string(JsonbContainer* object, const char* name) {
  const JsonbValue* value = find_member(object, name);
  return value != nullptr && value->type == jbvString ? copy_string(*value) : nullptr;
}

// An object of strings as DefElems.
List* read_strings(const JsonbValue* object, bool* damaged) {
  List* options = NIL;
  if (object == nullptr || object->type != jbvBinary ||
      !JsonContainerIsObject(object->val.binary.data)) {
    *damaged = true;
    return options;
  }
  JsonbIterator* iterator = JsonbIteratorInit(object->val.binary.data);
  JsonbValue name, value;
  for (JsonbIteratorToken token; (token = JsonbIteratorNext(&iterator, &name, true)) != WJB_DONE;) {
    if (token != WJB_KEY) continue;
    JsonbIteratorNext(&iterator, &value, true);
    if (value.type == jbvString)
      options = lappend(options, make_option(copy_string(name), copy_string(value)));
    else
      *damaged = true;
  }
  return options;
}

// An array of such objects, which have these members at least.
List* read_objects(JsonbContainer* producer, const char* name,
                   std::initializer_list<const char*> needed, bool* damaged) {
  const JsonbValue* array = find_member(producer, name);
  List* objects = NIL;
  if (array == nullptr || array->type != jbvBinary ||
      !JsonContainerIsArray(array->val.binary.data)) {
    *damaged = true;
    return objects;
  }
  for (uint32 i = 0; i < JsonContainerSize(array->val.binary.data); ++i) {
    List* object = read_strings(getIthJsonbValueFromContainer(array->val.binary.data, i), damaged);
    for (const char* member : needed) *damaged |= find_option(object, member) == nullptr;
    objects = lappend(objects, object);
  }
  return objects;
}

}  // namespace

const Producer* read_producer(const char* text) {
  auto* producer = allocate_zeros<Producer>();
  const MemoryContext caller = CurrentMemoryContext;
  const MemoryContext parsing = make_small_context("streamfilter producer", caller);
  MemoryContextSwitchTo(parsing);
  JsonbContainer* root = text != nullptr && text[0] == '{' ? parse_json(text) : nullptr;
  MemoryContextSwitchTo(caller);
  producer->damaged = root == nullptr;
  if (root != nullptr) {
    producer->columns = read_objects(root, "columns", {"name", "type"}, &producer->damaged);
    producer->options = read_strings(find_member(root, "options"), &producer->damaged);
    producer->servers = read_objects(root, "servers", {"name"}, &producer->damaged);
    producer->position = read_string(root, "position");
    producer->identity = read_string(root, "identity");
    producer->slicing = read_string(root, "slicing");
  }
  MemoryContextDelete(parsing);
  return producer;
}

// ---- writing ------------------------------------------------------------------------------------

static void append_string(StringInfo json, const char* name, const char* value) {
  if (json->data[json->len - 1] != '{') appendStringInfoString(json, ", ");
  escape_json(json, name);
  appendStringInfoString(json, ": ");
  escape_json(json, value);
}

static void append_strings(StringInfo json, List* options) {
  appendStringInfoChar(json, '{');
  for (auto* option : each<DefElem>(options)) {
    append_string(json, option->defname, value_of(option));
  }
  appendStringInfoChar(json, '}');
}

static void append_objects(StringInfo json, List* objects) {
  appendStringInfoChar(json, '[');
  ListCell* cell;
  foreach (cell, objects) {
    if (foreach_current_index(cell) > 0) appendStringInfoString(json, ", ");
    append_strings(json, static_cast<List*>(lfirst(cell)));
  }
  appendStringInfoChar(json, ']');
}

const char* print_producer(const Producer& producer) {
  TextBuffer json;
  appendStringInfoString(&json, "{\"columns\": ");
  append_objects(&json, producer.columns);
  appendStringInfoString(&json, ", \"options\": ");
  append_strings(&json, producer.options);
  appendStringInfoString(&json, ", \"servers\": ");
  append_objects(&json, producer.servers);
  append_string(&json, "position", producer.position);
  append_string(&json, "identity", producer.identity);
  append_string(&json, "slicing", producer.slicing);
  appendStringInfoChar(&json, '}');
  return json.data;
}

}  // namespace streamfilter::pg
