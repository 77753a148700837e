// From a row to the element that a filter takes: values are cast to the columns of the filter,
// columns with a role say what they say of it, the others make up its key. One way for all who give
// a filter rows: triggers, INSERT and DELETE on it, and functions such as streamfilter_seen.
#pragma once

extern "C" {
#include "executor/tuptable.h"
}

#include "pg/catalog/column_coercion.hpp"
#include "pg/handle/filter_handle.hpp"

namespace streamfilter::pg {

// Where a column of the filter has its value from.
struct KeyInput {
  int source;  // the number of the value in its row, from 0
  const FilterColumn* column;
  Coercion* coercion;  // nullptr: the value is one of the column's already
};

// Good for one version of a filter, as long as its inputs are.
struct KeyBuilder {
  FilterHandle* filter;  // nullptr: not made yet
  uint64 version;
  const KeyInput* inputs;
  int count;
  int width;   // of a row: so many values are looked at
  bool plain;  // these values make up the key as they are
  // One for each column of the key; reused by every row.
  Datum* values;
  bool* isnull;
};

// In the current memory context. Needs use_filter.
KeyBuilder make_key_builder(FilterHandle* filter, const KeyInput* inputs, int count);

// Does the builder still fit its filter?
inline bool is_current(const KeyBuilder* builder) {
  return builder->filter != nullptr && builder->version == builder->filter->version;
}

// May code of others run while a row becomes a key, or is a row wanted elsewhere as soon as it has
// one? Then each is judged before the next one is looked at.
bool needs_each_row(const KeyBuilder* builder);

[[noreturn]] void raise_changed_by_cast(const FilterHandle* filter);

// Values as a slot has them, and as a call gives them.
struct SlotValues {
  const Datum* values;
  const bool* nulls;
  Datum get(int i, bool* isnull) const {
    *isnull = nulls[i];
    return values[i];
  }
};
struct GivenValues {
  const NullableDatum* values;
  Datum get(int i, bool* isnull) const {
    *isnull = values[i].isnull;
    return values[i].value;
  }
};

// Of rows whose values are to be cast, or have roles.
template <class Values>
bool build_from_parts(const KeyBuilder* builder, const Values& row, Element* element) {
  const FilterHandle* filter = builder->filter;
  int key_count = 0;
  for (int i = 0; i < builder->count; ++i) {
    const KeyInput* input = &builder->inputs[i];
    bool isnull;
    Datum value = row.get(input->source, &isnull);
    value = coerce(input->coercion, value, &isnull);
    if (input->column->role == Role::key) {
      builder->values[key_count] = value;
      builder->isnull[key_count++] = isnull;
    } else {
      set_role(element, input->column, filter->relation, value, isnull);
    }
  }
  if (unlikely(filter->version != builder->version)) raise_changed_by_cast(filter);
  return hash_filter_key(filter, builder->values, builder->isnull, &element->hash);
}

// The element that a row stands for. False: its key is NULL, and nothing is said of the hash. Needs
// use_filter and a builder that is current; allocates in the current memory context. Raises what
// the casts raise, 55006 if one of them has changed the filter.
template <class Values>
inline bool build_from(const KeyBuilder* builder, const Values& row, Element* element) {
  const FilterHandle* filter = builder->filter;
  *element = new_element(filter);
  if (!builder->plain) return build_from_parts(builder, row, element);
  for (int i = 0; i < builder->count; ++i)
    builder->values[i] = row.get(builder->inputs[i].source, &builder->isnull[i]);
  return hash_filter_key(filter, builder->values, builder->isnull, &element->hash);
}

inline bool build_element(const KeyBuilder* builder, TupleTableSlot* row, Element* element) {
  slot_getsomeattrs(row, builder->width);
  return build_from(builder, SlotValues{row->tts_values, row->tts_isnull}, element);
}

inline bool build_element(const KeyBuilder* builder, const NullableDatum* row, Element* element) {
  return build_from(builder, GivenValues{row}, element);
}

// The elements of a batch of rows; those without has_key have none.
inline void build_elements(const KeyBuilder* builder, TupleTableSlot* const* rows, int count,
                           Element* elements, bool* has_key) {
  for (int i = 0; i < count; ++i) has_key[i] = build_element(builder, rows[i], &elements[i]);
}

}  // namespace streamfilter::pg
