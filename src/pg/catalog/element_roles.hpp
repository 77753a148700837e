// The parts of an element that are not its key: what the columns with a role say.
#pragma once

#include "core/kind/kind_registry.hpp"
#include "pg/catalog/filter_relation.hpp"

namespace streamfilter::pg {

// The present, in microseconds since 1970.
int64 current_time();

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
