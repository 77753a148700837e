// Converts values to a column of a filter, by the implicit casts that an INSERT would apply.
#pragma once

namespace streamfilter::pg {

struct FilterColumn;
struct FilterRelation;

// Converts values of one type to a column's type and typmod. Made once per statement.
struct Coercion;

// Allocates in the current memory context, which must outlive the coercion; nullptr: values need no
// conversion. `source` may be unknown: an untyped literal, read by the column's input function.
// Raises 42804 if there is no implicit cast, or none that may run; the message names the source by
// `what`, e.g. `argument 2 of streamfilter_seen`. Code of the type of `filter`'s column runs as the
// filter's owner; nullptr: the column is no filter's, and everything is the caller's own. Values
// known to fit `source_typmod`, such as a column's, are not checked again if the filter's column
// has that typmod.
Coercion* make_coercion(Oid source, const FilterColumn* column, const FilterRelation* filter,
                        const char* what, int32 source_typmod = -1);

// A column of a table, to which diverted rows come back.
struct TableColumn {
  Oid table, owner;
  const char* name;
  Oid type;
  int32 typmod;
};

// The same for a column of a table, by all casts that CAST would apply, as the table's owner; but a
// value that is too long is an error.
// Raises 42804 if there is none, or if it calls a function that neither that owner nor the owner of
// the column's type nor a superuser has made.
Coercion* make_table_coercion(Oid source, int32 source_typmod, const TableColumn& column,
                              const char* what);

// May it run a function that is neither built in nor written in C, or a domain's check?
bool runs_untrusted_code(const Coercion* coercion);

// Converts one value; allocates in the current memory context. A NULL stays NULL.
Datum run_coercion(Coercion* coercion, Datum value, bool* isnull);
inline Datum coerce(Coercion* coercion, Datum value, bool* isnull) {
  return coercion == nullptr ? value : run_coercion(coercion, value, isnull);
}

}  // namespace streamfilter::pg
