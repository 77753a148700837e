// Makes an element from a row: casts values to the columns of the filter, takes importance and time
// from role columns, and hashes the others as the key. The one way for triggers, INSERT and DELETE
// on filters, and functions such as streamfilter_seen.
#pragma once

#include "pg/catalog/column_coercion.hpp"
#include "pg/handle/filter_handle.hpp"

namespace streamfilter::pg {

// Source of a filter column's value.
struct KeyInput {
  int source;  // number of the value in its row, from 0
  const FilterColumn* column;
  Coercion* coercion;  // nullptr: the value has the column's type
};

// Valid for one version of a filter, as long as its inputs are.
struct KeyBuilder {
  FilterHandle* filter;  // nullptr until made
  uint64 version;
  const KeyInput* inputs;
  int count;
  int width;   // number of values of a row to read
  bool plain;  // the values make up the key unchanged, and
  int first;   // lie side by side in the row from here on; -1: they do not
  // One per key column; reused for every row.
  Datum* values;
  bool* isnull;
};

// Allocates in the current memory context. Needs use_filter.
KeyBuilder make_key_builder(FilterHandle* filter, const KeyInput* inputs, int count);

// Does the builder still fit its filter?
inline bool is_current(const KeyBuilder* builder) {
  return builder->filter != nullptr && builder->version == builder->filter->version;
}

bool casts_by_untrusted_code(const KeyBuilder* builder);
// Must each row be judged before the next one is read? Yes if foreign code may run while a row
// becomes a key, or if a row is wanted elsewhere at once.
inline bool needs_each_row(const KeyBuilder* builder) {
  return builder->filter->hashes_specially || (!builder->plain && casts_by_untrusted_code(builder));
}

// Of keys that a query asks for.
inline KeyRoute route_in_query(const KeyBuilder* builder) {
  return {needs_each_row(builder) ? KeyRoute::unknown : KeyRoute::query, InvalidOid};
}

[[noreturn]] void raise_changed_by_cast(const FilterHandle* filter);

// Access to the values of a slot, and of a call.
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

// For rows whose values need casts, or have roles.
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

// Hashes the key of a row, wherever its values lie, and sets the roles of a new element.
template <class Values>
inline bool build_from(const KeyBuilder* builder, const Values& row, Element* element) {
  if (!builder->plain) return build_from_parts(builder, row, element);
  for (int i = 0; i < builder->count; ++i)
    builder->values[i] = row.get(builder->inputs[i].source, &builder->isnull[i]);
  return hash_filter_key(builder->filter, builder->values, builder->isnull, &element->hash);
}

// Makes the row's element. False: its key is NULL, and the hash is undefined. Needs use_filter and
// a current builder; allocates in the current memory context. Raises the errors of casts, and 55006
// if a cast has changed the filter.
inline bool build_element(const KeyBuilder* builder, TupleTableSlot* row, Element* element) {
  slot_getsomeattrs(row, builder->width);
  *element = new_element_for(builder->filter);
  if (unlikely(builder->first < 0))
    return build_from(builder, SlotValues{row->tts_values, row->tts_isnull}, element);
  return hash_filter_key(builder->filter, row->tts_values + builder->first,
                         row->tts_isnull + builder->first, &element->hash);
}

// Inlined by force: a scan calls it for each row.
[[gnu::always_inline]] inline bool build_element(const KeyBuilder* builder,
                                                 const NullableDatum* row, Element* element) {
  *element = new_element_for(builder->filter);
  return build_from(builder, GivenValues{row}, element);
}

// A call in a query that gives a filter a key value by value, such as streamfilter_seen(filter,
// key…). Resolves types once, and coerces values row by row.
struct KeyCall {
  const char* function;  // for messages
  const Oid* types;      // types of the given values
  int count;
  bool may_leave_out_roles;
  const char* const* what;  // names of the values for messages; nullptr: arguments of the function
  MemoryContext context;    // context of what is resolved
  KeyBuilder keys;
};

// `function` and `types` must live as long as the call. Allocates in the current context.
void init_key_call(KeyCall* call, const char* function, const Oid* types, int count,
                   bool may_leave_out_roles);

// Readies the filter (use_filter) and resolves what has changed. Raises 42883 for a wrong number of
// values, and the errors of use_filter and make_coercion.
void resolve_key_call(KeyCall* call, Oid relid, Use use);
inline void begin_key_call(KeyCall* call, Oid relid, Use use) {
  FilterHandle* filter = call->keys.filter;
  if (likely(filter != nullptr && filter->relid == relid)) use_filter(filter, use);
  if (unlikely(!is_current(&call->keys) || filter->relid != relid))
    resolve_key_call(call, relid, use);
}

// The running function's call, whose arguments are the filter and then the values; kept in fn_extra
// and ready to use. Raises 22004 for a NULL filter, 0A000 for a VARIADIC array, and the errors of
// resolve_key_call.
KeyCall* key_call_site(FunctionCallInfo fcinfo, Use use, const char* function,
                       bool may_leave_out_roles);

// Handles events whose time is too far ahead, which must not make all others late; events that are
// late; and a server clock that goes back, after which new events must not count as late.

// Is the event late (timing_options.hpp), where this transaction's own events have come, too? Asked
// before it waits for other transactions, and not again: that of one that comes at once with its
// repeat must not make the repeat late.
bool is_behind(const FilterHandle* filter, const TransactionChanges* changes,
               const Element& element);
inline bool comes_late(const FilterHandle* filter, const TransactionChanges* changes,
                       const Element& element) {
  return unlikely(filter->times.used) && is_behind(filter, changes, element);
}

// Counts a late event, and warns once a session and filter. Call it with no lock held.
void note_late(FilterHandle* filter);

// If the event's time is too far ahead, counts it, warns once per session and definition, and sets
// the server's time. A time by the server's clock becomes one by a clock that never goes back;
// warns if it has. Call it for keys to insert, not for look-ups.
void bound_event_time(FilterHandle* filter, Element* element);
inline void bound_time(FilterHandle* filter, Element* element) {
  if (unlikely(filter->times.used)) bound_event_time(filter, element);
}

}  // namespace streamfilter::pg
