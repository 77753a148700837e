// Values on their way into a column of a filter: the casts an INSERT would apply, implicit ones
// only.
#pragma once

namespace streamfilter::pg {

struct FilterColumn;
struct FilterRelation;

// Converts values of one type to the type and typmod of a column. Made once per statement.
struct Coercion;

// In the current memory context, which must outlive it; nullptr: values pass as they are. `source`
// may be unknown: an untyped literal, read by the column's input function. Raises 42804 when there
// is no implicit cast, or none that may run; `what` names the source in the message, e.g. `argument
// 2 of streamfilter_seen`. `filter` is whose column it is: code that comes with its type runs as
// its owner. nullptr: it is no filter's, all is the caller's own. Values known to fit
// `source_typmod` already, a column's for example, need no second look if that is the typmod of the
// filter's column.
Coercion* make_coercion(Oid source, const FilterColumn* column, const FilterRelation* filter,
                        const char* what, int32 source_typmod = -1);

// May a function run that is neither built in nor written in C, or the check of a domain?
bool runs_untrusted_code(const Coercion* coercion);

// Converts one value; allocates in the current memory context. A NULL stays NULL.
Datum run_coercion(Coercion* coercion, Datum value, bool* isnull);
inline Datum coerce(Coercion* coercion, Datum value, bool* isnull) {
  return coercion == nullptr ? value : run_coercion(coercion, value, isnull);
}

}  // namespace streamfilter::pg
