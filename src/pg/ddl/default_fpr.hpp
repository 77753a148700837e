// The false-positive rate of filters that are not told one. It is written into their options, so
// that what was made under another default keeps it: a filter without the option has that of 1.1.
#pragma once

#include "pg/server/postgres.hpp"

namespace streamfilter::pg {

// Of a filter that CREATE has made, or whose fpr ALTER has dropped. A node of a tree takes over
// what its parent says. Nothing is written where the SQL objects are of 1.0 or 1.1, or while a dump
// is restored. Raises 22023 if the filter cannot keep the rate and names nothing that overrides it.
void write_default_fpr(Oid relid);

}  // namespace streamfilter::pg
