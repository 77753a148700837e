// The parts of an element that are not its key: what the columns with a role say.
#pragma once

#include "core/kind/kind_registry.hpp"
#include "pg/catalog/filter_relation.hpp"

namespace streamfilter::pg {

// The present, in microseconds since 1970.
int64 current_time();

// How far ahead of the server's clock the time of an event may be, in microseconds: what option
// max_future says, one window by default; PG_INT64_MAX: it does not matter. Numbers may be of any
// clock, so that for them there is no default.
int64 max_future_of(const FilterRelation* relation);

// An element that no column with a role tells more of: it is of no importance and arrives now.
Element new_element(const Parameters& parameters);

// Raises 42804 unless a column with a role has a type that can play it. Importance: a number. Time:
// timestamp with or without time zone, date, or a number (microseconds, by any clock).
void check_role(const FilterColumn* column, const FilterRelation* relation);

// Sets importance or time from a value of the column's type; nothing for a key column. NULL (and
// NaN) means unimportant (0) or now. Points in time are microseconds since 1970.
void set_role(Element* element, const FilterColumn* column, const FilterRelation* relation,
              Datum value, bool isnull);

}  // namespace streamfilter::pg
