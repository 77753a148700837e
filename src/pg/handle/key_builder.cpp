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
  builder.first = builder.plain && count > 0 ? inputs[0].source : -1;
  for (int i = 1; i < count; ++i)
    if (inputs[i].source != builder.first + i) builder.first = -1;
  builder.values = static_cast<Datum*>(palloc(sizeof(Datum) * keys));
  builder.isnull = static_cast<bool*>(palloc(sizeof(bool) * keys));
  return builder;
}

bool casts_by_untrusted_code(const KeyBuilder* builder) {
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

namespace {

void resolve_call(KeyCall* call, FilterHandle* filter) {
  const FilterRelation* relation = filter->relation;
  call->keys.filter = nullptr;
  MemoryContextReset(call->context);
  MemoryContext caller = MemoryContextSwitchTo(call->context);
  const bool keys_only = call->count == relation->key_count;
  if (call->count != relation->column_count && !(call->may_leave_out_roles && keys_only))
    ereport(
        ERROR, errcode(ERRCODE_UNDEFINED_FUNCTION),
        errmsg("%s needs %d %s for filter \"%s\", not %d", call->function, relation->column_count,
               relation->column_count == 1 ? "value" : "values", relation->name, call->count),
        errhint("Give a value for every column of the filter, in order."));
  auto* inputs = static_cast<KeyInput*>(palloc(sizeof(KeyInput) * Max(call->count, 1)));
  for (int i = 0; i < call->count; ++i) {
    const FilterColumn* column = keys_only ? relation->keys[i] : &relation->columns[i];
    inputs[i] = {i, column,
                 make_coercion(call->types[i], column, relation,
                               call->what != nullptr
                                   ? call->what[i]
                                   : psprintf("argument %d of %s", i + 2, call->function))};
  }
  call->keys = make_key_builder(filter, inputs, call->count);
  MemoryContextSwitchTo(caller);
}

}  // namespace

void init_key_call(KeyCall* call, const char* function, const Oid* types, int count,
                   bool may_leave_out_roles) {
  memset(static_cast<void*>(call), 0, sizeof *call);
  call->function = function;
  call->types = types;
  call->count = count;
  call->may_leave_out_roles = may_leave_out_roles;
  call->context =
      AllocSetContextCreate(CurrentMemoryContext, "streamfilter key call", ALLOCSET_SMALL_SIZES);
}

void resolve_key_call(KeyCall* call, Oid relid, Use use) {
  FilterHandle* filter = filter_handle(relid);
  use_filter(filter, use);
  resolve_call(call, filter);
}

KeyCall* key_call_site(FunctionCallInfo fcinfo, Use use, const char* function,
                       bool may_leave_out_roles) {
  if (PG_ARGISNULL(0))
    ereport(ERROR, errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
            errmsg("the filter of %s must not be null", function));
  auto* site = static_cast<KeyCall*>(fcinfo->flinfo->fn_extra);
  if (site == nullptr) {
    if (get_fn_expr_variadic(fcinfo->flinfo))
      ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
              errmsg("%s does not take VARIADIC arrays", function),
              errhint("Give the values of the key one by one."));
    MemoryContext caller = MemoryContextSwitchTo(fcinfo->flinfo->fn_mcxt);
    const int count = PG_NARGS() - 1;
    auto* types = static_cast<Oid*>(palloc(sizeof(Oid) * Max(count, 1)));
    for (int i = 0; i < count; ++i) types[i] = get_fn_expr_argtype(fcinfo->flinfo, i + 1);
    site = static_cast<KeyCall*>(palloc0(sizeof(KeyCall)));
    init_key_call(site, function, types, count, may_leave_out_roles);
    MemoryContextSwitchTo(caller);
    fcinfo->flinfo->fn_extra = site;
  }
  begin_key_call(site, PG_GETARG_OID(0), use);
  return site;
}

}  // namespace streamfilter::pg
