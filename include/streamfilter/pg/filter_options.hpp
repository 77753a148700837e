// The OPTIONS (…) of foreign servers, filters and their columns.
#pragma once

#include "streamfilter/pg/filter_relation.hpp"

struct List;

namespace streamfilter::pg {

// The complete definition that the options of a filter (DefElems) ask for; the options that are not
// part of it go to `host`, which keeps its defaults where they are not given. Raises HV00D for an
// unknown option, 22023 for bad values and promises that cannot be kept.
Definition read_table_options(List* options, HostOptions* host);

// The role of a column.
Role read_column_options(List* options);

// Option memory_limit of a server in bytes; PG_UINT64_MAX if there is none.
uint64 read_memory_limit(List* options);

}  // namespace streamfilter::pg
