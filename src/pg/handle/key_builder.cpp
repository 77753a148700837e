#include "pg/server/postgres.hpp"

#include "pg/handle/key_builder.hpp"

namespace streamfilter::pg {
namespace {

struct Attributes {
  const Datum* values;
  const bool* isnull;
  NullableDatum operator[](int i) const { return {values[i], isnull[i]}; }
};

Attributes read_attributes(TupleTableSlot* row, int width) {
  slot_getsomeattrs(row, width);
  return {row->tts_values, row->tts_isnull};
}

[[noreturn]] void raise_changed(const FilterHandle* filter) {
  ereport(
      ERROR, errcode(ERRCODE_OBJECT_IN_USE),
      errmsg("filter \"%s\" was changed by a cast of one of its columns", filter->relation->name));
  pg_unreachable();
}

template <class Row>
inline bool build(const KeyBuilder* builder, const Row& row, Element* element) {
  const FilterHandle* filter = builder->filter;
  *element = new_element(filter);
  int key_count = 0;
  for (int i = 0; i < builder->count; ++i) {
    const KeyInput* input = &builder->inputs[i];
    NullableDatum value = row[input->source];
    value.value = coerce(input->coercion, value.value, &value.isnull);
    if (input->column->role == Role::key) {
      builder->values[key_count] = value.value;
      builder->isnull[key_count++] = value.isnull;
    } else {
      set_role(element, input->column, filter->relation, value.value, value.isnull);
    }
  }
  if (unlikely(filter->version != builder->version)) raise_changed(filter);
  return hash_filter_key(filter, builder->values, builder->isnull, &element->hash);
}

}  // namespace

KeyBuilder make_key_builder(FilterHandle* filter, const KeyInput* inputs, int count) {
  KeyBuilder builder = {};
  const auto keys = static_cast<Size>(Max(filter->relation->key_count, 1));
  builder.filter = filter;
  builder.version = filter->version;
  builder.inputs = inputs;
  builder.count = count;
  for (int i = 0; i < count; ++i) builder.width = Max(builder.width, inputs[i].source + 1);
  builder.values = static_cast<Datum*>(palloc(sizeof(Datum) * keys));
  builder.isnull = static_cast<bool*>(palloc(sizeof(bool) * keys));
  return builder;
}

bool build_element(const KeyBuilder* builder, TupleTableSlot* row, Element* element) {
  return build(builder, read_attributes(row, builder->width), element);
}

bool build_element(const KeyBuilder* builder, const NullableDatum* row, Element* element) {
  return build(builder, row, element);
}

int build_elements(const KeyBuilder* builder, TupleTableSlot* const* rows, int count,
                   Element* elements, bool* has_key) {
  int built = 0;
  for (int i = 0; i < count; ++i) {
    has_key[i] = build(builder, read_attributes(rows[i], builder->width), &elements[built]);
    built += has_key[i];
  }
  return built;
}

}  // namespace streamfilter::pg
