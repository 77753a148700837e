// A call of streamfilter_settle(): two tables, the filter between them, and the definition of a
// key.
#pragma once

#include "pg/settle/settle_query.hpp"

namespace streamfilter::pg {

// The columns that a call of `function` names, in the current memory context. Raises 22004.
const char** names_in(ArrayType* given, int* count, const char* function);

// Raises 42P10 unless so many columns were given as the filter has.
void check_column_count(const FilterRelation* filter, int given, const char* function);

// Locks the two tables against ALTER and against other calls on them; the filter, as its trigger
// would; and, if no filter can have keys for this transaction alone, the table against other
// writers; `removes`: duplicates are deleted. From now on deferrable constraints of both tables are
// checked at once. Allocates in the current memory context. Raises 42501 without SELECT and DELETE
// on the first table, and, on the second, SELECT, INSERT and what LOCK TABLE needs; 55000 if rows
// of the second are judged, and none of its triggers diverts into the first; and the errors in the
// messages below.
SettleTask begin_settling(Oid diverted, Oid target, ArrayType* columns, bool since, bool keep,
                          bool removes);

}  // namespace streamfilter::pg
