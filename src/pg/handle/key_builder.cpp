#include "pg/server/postgres.hpp"

#include "pg/handle/key_builder.hpp"

namespace streamfilter::pg {

KeyBuilder make_key_builder(FilterHandle* filter, const KeyInput* inputs, int count) {
  KeyBuilder builder = {};
  const auto keys = static_cast<Size>(Max(filter->relation->key_count, 1));
  builder.filter = filter;
  builder.version = filter->version;
  builder.inputs = inputs;
  builder.count = count;
  builder.plain = true;
  for (int i = 0; i < count; ++i) {
    builder.width = Max(builder.width, inputs[i].source + 1);
    builder.plain &= inputs[i].coercion == nullptr && inputs[i].column->role == Role::key;
  }
  builder.values = static_cast<Datum*>(palloc(sizeof(Datum) * keys));
  builder.isnull = static_cast<bool*>(palloc(sizeof(bool) * keys));
  return builder;
}

bool needs_each_row(const KeyBuilder* builder) {
  if (builder->filter->has_detour) return true;
  for (int i = 0; i < builder->count; ++i)
    if (runs_untrusted_code(builder->inputs[i].coercion)) return true;
  return false;
}

void raise_changed_by_cast(const FilterHandle* filter) {
  ereport(
      ERROR, errcode(ERRCODE_OBJECT_IN_USE),
      errmsg("filter \"%s\" was changed by a cast of one of its columns", filter->relation->name));
  pg_unreachable();
}

}  // namespace streamfilter::pg
