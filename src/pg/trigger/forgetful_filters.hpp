// Filters that know less than their tables: after a crash, and from the start.
#pragma once

#include "pg/binding/trigger_definition.hpp"

namespace streamfilter::pg {

// ---- after a crash ------------------------------------------------------------------------------

// A table's rows and its filter's keys should survive, or not survive, a crash together.

// Warns if a crash, or the end of the session, empties either the table or the filter, but not
// both.
void warn_of_crash(Relation table, const FilterRelation* filter);

// ---- filling a filter ---------------------------------------------------------------------------

// An empty filter on a table with rows: repeats of these rows would pass.

// Prints the statement that fills the filter, unless the transaction has used filters and so may be
// filling it. A filter that knows other rows may know those of a table that is `attached`, too: of
// a partition that was detached.
void hint_to_fill(const Trigger* trigger, Relation table, const TriggerPlan* plan,
                  const FilterRelation* filter, bool attached);

// Of a restored dump nobody saw that NOTICE: the first row that a new filter judges brings it as a
// WARNING. Is the filter in use nowhere, and nothing saved? Ask before use_filter.
bool is_new(Oid filter);
void warn_of_unknown_rows(Relation table, const TriggerPlan* plan, const FilterRelation* filter);

}  // namespace streamfilter::pg
