// The OPTIONS (…) of filters and their columns.
#pragma once

#include "core/format/parameters.hpp"
#include "pg/catalog/relation_options.hpp"

struct DefElem;
struct List;

namespace streamfilter::pg {

// The complete definition that the options of a filter (DefElems) ask for; the options that are not
// part of it go to `host`, which keeps its defaults where they are not given. Raises HV00D for an
// unknown option, 22023 for bad values and promises that cannot be kept.
Definition read_table_options(List* options, HostOptions* host);

// The names in option servers (char*), NIL if it is not given. Raises 22023.
List* read_server_names(const HostOptions* host);

// As options have them.
const char* name_of(Conflict conflict);
const char* name_of(Persistence persistence);

// The role of a column.
Role read_column_options(List* options);

// Raises HV00D: the option is none of a thing of this sort; `valid` lists those that are.
[[noreturn]] void raise_unknown_option(const DefElem* option, const char* of, const char* valid);

}  // namespace streamfilter::pg
