// Importance and time of an element, from columns with a role.
#pragma once

#include "core/kind/kind_registry.hpp"
#include "pg/catalog/filter_relation.hpp"

namespace streamfilter::pg {

// The present, in microseconds since 1970.
int64 current_time();

// How far an event may be ahead of the server's clock, in microseconds: option max_future, by
// default one tick, at least a second; PG_INT64_MAX: no limit. Numbers without a unit may come from
// any clock, so they have no default.
int64 max_future_of(const FilterRelation* relation);

// An element without values from role columns: unimportant, and arriving now.
Element new_element(const Parameters& parameters);

// Times that a number in the right unit has: from 1990 to 2100.
constexpr int64 kUsualTimes[] = {631152000 * USECS_PER_SEC, 4102444800 * USECS_PER_SEC};
inline bool is_usual(int64 time) { return time >= kUsualTimes[0] && time <= kUsualTimes[1]; }

// Must the times of a filter be usual ones, or are others at least suspicious? Only those of
// numbers by the calendar.
bool expects_usual_times(const FilterRelation* relation);

// The unit in which a number would be such a time; nullptr: none. `time`: by the column's own unit.
const char* unit_that_fits(const FilterColumn* column, int64 time);

// Raises 42804 unless a role column's type suits its role. Importance: a number. Time: timestamp
// with or without time zone, date, or a number in its column's unit. Raises 42P16 for a unit of
// what is no such number, 22023 for a max_future of a time by any clock.
void check_role(const FilterColumn* column, const FilterRelation* relation);

// Sets importance or time from a value of the column's type; does nothing for a key column. NULL
// (and NaN) means unimportant (0) or now. Times are microseconds since 1970.
void set_role(Element* element, const FilterColumn* column, const FilterRelation* relation,
              Datum value, bool isnull);

}  // namespace streamfilter::pg
