// Importance and time of an element, from columns with a role.
#pragma once

#include "core/kind/kind_registry.hpp"
#include "pg/catalog/filter_relation.hpp"

namespace streamfilter::pg {

// The present, in microseconds since 1970.
int64 current_time();

// How far an event may be ahead of the server's clock, in microseconds: option max_future, by
// default one tick, at least a second; PG_INT64_MAX: no limit. Numbers may come from any clock, so
// they have no default.
int64 max_future_of(const FilterRelation* relation);

// An element without values from role columns: unimportant, and arriving now.
Element new_element(const Parameters& parameters);

// Raises 42804 unless a role column's type suits its role. Importance: a number. Time: timestamp
// with or without time zone, date, or a number (microseconds, by any clock).
void check_role(const FilterColumn* column, const FilterRelation* relation);

// Sets importance or time from a value of the column's type; does nothing for a key column. NULL
// (and NaN) means unimportant (0) or now. Times are microseconds since 1970.
void set_role(Element* element, const FilterColumn* column, const FilterRelation* relation,
              Datum value, bool isnull);

}  // namespace streamfilter::pg
