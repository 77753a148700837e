#include "pg/server/postgres.hpp"

extern "C" {
#include "common/int.h"
}

#include "pg/handle/key_builder.hpp"
#include "pg/server/problem_report.hpp"
#include "pg/server/rows.hpp"

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
  builder.values = allocate<Datum>(keys);
  builder.isnull = allocate<bool>(keys);
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
}

static void resolve_call(KeyCall* call, FilterHandle* filter) {
  const FilterRelation* relation = filter->relation;
  call->keys.filter = nullptr;
  MemoryContextReset(call->context);
  const InContext switched(call->context);
  const bool keys_only = call->count == relation->key_count;
  if (call->count != relation->column_count && !(call->may_leave_out_roles && keys_only))
    ereport(
        ERROR, errcode(ERRCODE_UNDEFINED_FUNCTION),
        errmsg("%s needs %d %s for filter \"%s\", not %d", call->function, relation->column_count,
               relation->column_count == 1 ? "value" : "values", relation->name, call->count),
        errhint("Give a value for every column of the filter, in order."));
  auto* inputs = allocate<KeyInput>(call->count);
  for (int i = 0; i < call->count; ++i) {
    const FilterColumn* column = keys_only ? relation->keys[i] : &relation->columns[i];
    inputs[i] = {i, column,
                 make_coercion(call->types[i], column, relation,
                               call->what != nullptr
                                   ? call->what[i]
                                   : psprintf("argument %d of %s", i + 2, call->function))};
  }
  call->keys = make_key_builder(filter, inputs, call->count);
}

void init_key_call(KeyCall* call, const char* function, const Oid* types, int count,
                   bool may_leave_out_roles) {
  memset(static_cast<void*>(call), 0, sizeof *call);
  call->function = function;
  call->types = types;
  call->count = count;
  call->may_leave_out_roles = may_leave_out_roles;
  call->context = make_small_context("streamfilter key call");
}

void resolve_key_call(KeyCall* call, Oid relid, Use use) {
  resolve_call(call, filter_for_use(relid, use));
}

KeyCall* key_call_site(FunctionCallInfo fcinfo, Use use, const char* function,
                       bool may_leave_out_roles) {
  if (unlikely(PG_ARGISNULL(0))) require_arguments(fcinfo, {0});
  auto* site = static_cast<KeyCall*>(fcinfo->flinfo->fn_extra);
  if (site == nullptr) {
    if (get_fn_expr_variadic(fcinfo->flinfo))
      ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
              errmsg("%s does not take VARIADIC arrays", function),
              errhint("Give the values of the key one by one."));
    const InContext context(fcinfo->flinfo->fn_mcxt);
    const int count = PG_NARGS() - 1;
    auto* types = allocate<Oid>(count);
    for (int i = 0; i < count; ++i) types[i] = get_fn_expr_argtype(fcinfo->flinfo, i + 1);
    site = allocate_zeros<KeyCall>();
    init_key_call(site, function, types, count, may_leave_out_roles);
    fcinfo->flinfo->fn_extra = site;
  }
  begin_key_call(site, PG_GETARG_OID(0), use);
  return site;
}

// ---- the time of an event -----------------------------------------------------------------------

namespace {

// Has this session been told about a filter? Notes that it has.
bool was_told(List** told, Oid relid) {
  if (list_member_oid(*told, relid)) return true;
  const InContext context(TopMemoryContext);
  *told = lappend_oid(*told, relid);
  return false;
}

void suggest_unit(const FilterHandle* filter, const char* unit) {
  static List* told = NIL;
  const FilterColumn* column = filter->times.numbers;
  if (was_told(&told, filter->relation->relid)) return;
  ereport(
      NOTICE,
      errmsg("times of filter \"%s\" look like numbers of %s", filter->relation->name, unit),
      errdetail("Without option unit, column \"%s\" is a number of microseconds, and the window "
                "is as long in these.",
                column->name),
      errhint("ALTER FOREIGN TABLE %s ALTER COLUMN %s OPTIONS (ADD unit '%s'). If these are no "
              "times of the calendar, give unit 'none'.",
              quote_identifier(filter->relation->name), quote_identifier(column->name), unit));
}

// A time outside of 1990 to 2100 in an empty filter: its unit is wrong. Later the clock of the
// filter bounds it.
void check_unit(FilterHandle* filter, int64 time) {
  const FilterColumn* column = filter->times.numbers;
  const char* unit = unit_that_fits(column, time);
  if (column->unit == TimeUnit::unsaid) {
    if (unit != nullptr) suggest_unit(filter, unit);
    return;
  }
  if (filter->header == nullptr || !(has_truncated(filter) || is_empty(filter->header))) return;
  ereport(ERROR, errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
          errmsg("time of an event is out of range for filter \"%s\"", filter->relation->name),
          errdetail("In unit '%s' of column \"%s\" it is not between 1990 and 2100.",
                    name_of(column->unit), column->name),
          unit != nullptr
              ? errhint("It would be in unit '%s'.", unit)
              : errhint("Give the unit of the numbers, or 'none' if they are of another clock."));
}

void warn(FilterHandle* filter) {
  if (filter->times.warned) return;
  filter->times.warned = true;
  ereport(WARNING, errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
          errmsg("an event is too far ahead for filter \"%s\"", filter->relation->name),
          errdetail("Its time is later than the server's clock by more than max_future. It counts "
                    "as an event of now."),
          errhint("Check the times of events and their time zones, or set option max_future. "
                  "Column ahead of streamfilter_stats counts such events."));
}

void warn_of_clock(const FilterHandle* filter, int64 behind) {
  ereport(WARNING, errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
          errmsg("the clock went back for filter \"%s\"", filter->relation->name),
          errdetail("It remembers times up to %lld seconds later than the server's clock, and goes "
                    "on from there.",
                    static_cast<long long>((behind + USECS_PER_SEC - 1) / USECS_PER_SEC)),
          errhint("Look at the server's clock. To begin anew, use TRUNCATE %s.",
                  quote_identifier(filter->relation->name)));
}

// Advances the filter's time ahead of the clock by so much more.
void set_ahead(FilterHandle* filter, int64 more) {
  const int64 before =
      static_cast<int64>(pg_atomic_fetch_add_u64(&filter->slot->ahead_of_clock, more));
  if (before == 0) warn_of_clock(filter, more);
}

// Other sessions may come between reading the clock and reading the filter. If the clock seems to
// have gone back, read it again, after the filter.
void follow_clock(FilterHandle* filter, Element* element) {
  if (filter->slot == nullptr) return;
  const int64 latest = clock_of(filter->header, element->hash);
  const auto ahead = static_cast<int64>(pg_atomic_read_u64(&filter->slot->ahead_of_clock));
  element->time += ahead;
  if (likely(element->time >= latest && ahead == 0)) return;
  element->time = current_time();
  if (has_truncated(filter)) return;
  element->time += ahead;
  if (element->time >= latest) return;
  set_ahead(filter, latest - element->time);
  element->time = latest;
}

void check_time(FilterHandle* filter, Element* element) {
  if (filter->times.numbers != nullptr && !is_usual(element->time))
    check_unit(filter, element->time);
  if (element->time <= filter->times.latest || filter->times.max_future == PG_INT64_MAX) return;
  // Reads the clock only if the last reading does not decide.
  const int64 now = current_time();
  if (pg_add_s64_overflow(now, filter->times.max_future, &filter->times.latest))
    filter->times.latest = PG_INT64_MAX;
  if (element->time <= filter->times.latest) return;
  element->time = now;
  count_row(filter, RowCount::ahead);
  warn(filter);
}

}  // namespace

void bound_event_time(FilterHandle* filter, Element* element) {
  if (unlikely(element->time > filter->times.latest || element->time < filter->times.earliest))
    check_time(filter, element);
  if (filter->times.by_clock) follow_clock(filter, element);
}

bool is_behind(const FilterHandle* filter, const TransactionChanges* changes,
               const Element& element) {
  int64 clock = changes == nullptr ? PG_INT64_MIN : changes->latest;
  if (changes == nullptr || changes->log.last_reset == kNoChange)
    clock = Max(clock, clock_of(filter->header, element.hash));
  return element.time < clock && is_late(filter->header->parameters, element, clock);
}

void note_late(FilterHandle* filter) {
  count_row(filter, RowCount::late);
  static List* told = NIL;  // filters that this session has been told about
  if (was_told(&told, filter->relation->relid)) return;
  ereport(
      WARNING, errcode(kLateEvent),
      errmsg("an event comes too late for filter \"%s\"", filter->relation->name),
      errdetail("Its time is behind that of a newer event by more than lateness. It passes, even "
                "if it is a repeat."),
      errhint("Look at the times that come in (column late of streamfilter_stats counts such "
              "events), or set option lateness."));
}

}  // namespace streamfilter::pg
