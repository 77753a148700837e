#include "pg/server/postgres.hpp"

extern "C" {
#include "common/int.h"
#include "utils/fmgrprotos.h"
}

#include "core/base/math_policy.hpp"
#include "core/kind/timing_options.hpp"
#include "pg/catalog/element_roles.hpp"

namespace streamfilter::pg {
namespace {

constexpr int64 kEpochDifference =  // from 1970 to 2000, where PostgreSQL's times begin
    static_cast<int64>(POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY;

bool is_number(Oid type) {
  switch (type) {
    case INT2OID:
    case INT4OID:
    case INT8OID:
    case FLOAT4OID:
    case FLOAT8OID:
    case NUMERICOID: return true;
    default: return false;
  }
}

bool is_point_in_time(Oid type) {
  return type == TIMESTAMPTZOID || type == TIMESTAMPOID || type == DATEOID;
}

double to_double(Oid type, Datum value) {
  switch (type) {
    case INT2OID: return DatumGetInt16(value);
    case INT4OID: return DatumGetInt32(value);
    case INT8OID: return static_cast<double>(DatumGetInt64(value));
    case FLOAT4OID: return DatumGetFloat4(value);
    case FLOAT8OID: return DatumGetFloat8(value);
    default: return DatumGetFloat8(DirectFunctionCall1(numeric_float8_no_overflow, value));
  }
}

// Rounds; a number out of range becomes the nearest end.
int64 to_integer(Oid type, Datum value) {
  switch (type) {
    case INT2OID: return DatumGetInt16(value);
    case INT4OID: return DatumGetInt32(value);
    case INT8OID: return DatumGetInt64(value);
    default: break;
  }
  return saturate<int64>(std::rint(to_double(type, value)));
}

int64 since_1970(TimestampTz time) {
  int64 result;
  if (TIMESTAMP_NOT_FINITE(time)) return time;
  if (pg_add_s64_overflow(time, kEpochDifference, &result)) return PG_INT64_MAX;
  return result;
}

constexpr double kMicroseconds[] = {1, 1e6, 1e3, 1, 1e-3, 1};  // of a TimeUnit
double microseconds_of(TimeUnit unit) { return kMicroseconds[static_cast<int>(unit)]; }

int64 scale(Oid type, Datum value, TimeUnit unit) {
  const double factor = microseconds_of(unit);
  if (factor == 1) return to_integer(type, value);
  const double number = to_double(type, value);
  const int64 time = saturate<int64>(std::rint(number * factor));
  if (is_finite(time) || std::isinf(number)) return time;
  return time < 0 ? PG_INT64_MIN + 1 : PG_INT64_MAX - 1;
}

int64 to_microseconds(Oid type, Datum value, TimeUnit unit) {
  switch (type) {
    case TIMESTAMPTZOID: return since_1970(DatumGetTimestampTz(value));
    case TIMESTAMPOID:
      return since_1970(DatumGetTimestampTz(DirectFunctionCall1(timestamp_timestamptz, value)));
    case DATEOID:
      return since_1970(DatumGetTimestampTz(DirectFunctionCall1(date_timestamptz, value)));
    default: return scale(type, value, unit);
  }
}

// The base type; InvalidOid if it does not suit the column's role.
Oid role_type(const FilterColumn* column) {
  Oid type = column->type;
  const auto fits = [column](Oid candidate) {
    return is_number(candidate) || (column->role == Role::time && is_point_in_time(candidate));
  };
  if (fits(type)) return type;
  type = getBaseType(type);
  return fits(type) ? type : InvalidOid;
}

bool is_nan(Oid type, Datum value) {
  return !is_point_in_time(type) && std::isnan(to_double(type, value));
}

}  // namespace

int64 current_time() { return since_1970(GetCurrentTimestamp()); }

int64 max_future_of(const FilterRelation* relation) {
  const uint64 tick = window_of(relation->definition.parameters).length;
  if (tick == 0 || relation->time == nullptr) return PG_INT64_MAX;
  if (relation->options.max_future >= 0) return relation->options.max_future;
  const TimeUnit unit = relation->time->unit;
  const bool by_calendar = unit != TimeUnit::unsaid && unit != TimeUnit::none;
  return by_calendar || is_point_in_time(role_type(relation->time))
             ? static_cast<int64>(Max(tick, USECS_PER_SEC))
             : PG_INT64_MAX;
}

bool expects_usual_times(const FilterRelation* relation) {
  return window_of(relation->definition.parameters).length != 0 && relation->time != nullptr &&
         relation->time->unit != TimeUnit::none && is_number(role_type(relation->time));
}

const char* unit_that_fits(const FilterColumn* column, int64 time) {
  for (const TimeUnit unit : {TimeUnit::s, TimeUnit::ms, TimeUnit::us, TimeUnit::ns}) {
    const double factor = microseconds_of(unit) / microseconds_of(column->unit);
    if (is_usual(saturate<int64>(static_cast<double>(time) * factor))) return name_of(unit);
  }
  return nullptr;
}

Element new_element(const Parameters& parameters) {
  Element element{};
  if (uses_time(parameters)) element.time = current_time();
  return element;
}

void check_role(const FilterColumn* column, const FilterRelation* relation) {
  const bool time = column->role == Role::time;
  if (column->unit != TimeUnit::unsaid && !(time && is_number(role_type(column))))
    ereport(
        ERROR, errcode(ERRCODE_INVALID_TABLE_DEFINITION),
        errmsg("column \"%s\" of filter \"%s\" cannot have a unit", column->name, relation->name),
        errhint("Option unit is for a column of numbers with role 'time'."));
  if (column->unit == TimeUnit::none && relation->options.max_future >= 0)
    ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
            errmsg("option max_future needs a time by the calendar"),
            errdetail("With unit 'none', column \"%s\" is of any clock.", column->name),
            errhint("Leave out max_future, or give the unit of the numbers."));
  if (column->role == Role::key || OidIsValid(role_type(column))) return;
  ereport(
      ERROR, errcode(ERRCODE_DATATYPE_MISMATCH),
      errmsg("column \"%s\" of filter \"%s\" cannot have role '%s': its type is %s", column->name,
             relation->name, time ? "time" : "importance", format_type_be(column->type)),
      time ? errhint("Use timestamp with time zone, or a number with option unit.")
           : errhint("Use a number, for example double precision."));
}

void set_role(Element* element, const FilterColumn* column, const FilterRelation* relation,
              Datum value, bool isnull) {
  if (column->role == Role::key) return;
  const Oid type = role_type(column);
  if (!OidIsValid(type)) check_role(column, relation);
  const bool known = !isnull && !is_nan(type, value);
  if (column->role == Role::importance) {
    element->importance = known ? to_double(type, value) : 0;
    return;
  }
  element->time = known ? to_microseconds(type, value, column->unit) : PG_INT64_MAX;
  if (!is_finite(element->time)) element->time = current_time();
}

}  // namespace streamfilter::pg
