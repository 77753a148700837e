// Is what is saved a state of the present definition of its filter?
#pragma once

#include "pg/catalog/filter_relation.hpp"

namespace streamfilter::pg {

// The identity (identity_of) of what this definition saves with these parameters.
int64 asked_identity(const FilterRelation* relation, const Parameters& parameters);

// Takes the parameters of a saved header of this definition, with the geometry in the header,
// whatever this version would derive. Returns why that is not possible; nullptr if it is.
const char* take_parameters(const char* bytes, const FilterRelation* relation, int64 identity,
                            Parameters* result);

// ---- collations of keys -------------------------------------------------------------------------

// Collations of a filter's keys, saved with its state: with another version of a collation, other
// keys may be equal or be hashed differently.

// A line for each key column whose collation does not come with the server: column, collation, OID,
// version at its creation or refresh, and installed version. palloc'ed.
const char* collations_of(Oid filter);

}  // namespace streamfilter::pg
