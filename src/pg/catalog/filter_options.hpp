// OPTIONS (…) of filters and their columns.
#pragma once

#include "core/format/parameters.hpp"
#include "pg/catalog/relation_options.hpp"
#include "pg/server/problem_report.hpp"

struct DefElem;
struct List;

namespace streamfilter::pg {

// Makes the complete definition from a filter's options (DefElems); options outside of it go to
// `relation_options`, which keeps its defaults for others. Faults: HV00D for an unknown option,
// 22023 for bad values and promises that cannot be kept.
bool read_table_options(List* options, Definition* definition, RelationOptions* relation_options,
                        Fault& fault);

// CREATE writes it into the options, so that a later default does not change a filter.
constexpr char kDefaultFpr[] = "1e-06";

// Do the options name no fpr, and work with this one? Options that set numbers of the kind may
// override it; others that cannot keep it are a fault: 22023. Nothing else is.
bool takes_fpr(List* options, const char* fpr, Fault& fault);

// Reads an option of the relation; false if it is another option. A bad value is a fault: 22023.
bool read_relation_option(DefElem* option, RelationOptions* relation_options, Fault& fault);

// Can all of these options be altered without looking at the filter's keys?
bool keeps_state(List* options);

// Names in option servers (char*), NIL if not given. Fault: 22023.
bool read_server_names(const RelationOptions* relation_options, List** names, Fault& fault);

// The window of time, in microseconds; 0: none.
uint64 time_window(const Parameters& parameters);

// The words of the options.
const char* name_of(Conflict conflict);
const char* name_of(Persistence persistence);
const char* name_of(FilterMode mode);

// The role of a column. Faults: HV00D, 22023.
bool read_column_options(List* options, Role* role, Fault& fault);

// ---- options of trees ---------------------------------------------------------------------------

// Options that make a filter a node of a tree: parent, tree, top_down.

// Do they fit each other and the rest of a complete definition? Faults: 22023, 0A000.
bool check_tree_options(List* options, const Definition& definition,
                        const RelationOptions& relation_options, Fault& fault);

// Splits a name as SQL writes it, such as my_schema."My Filter"; without a schema, that is nullptr.
// False: it is no such name.
bool split_name(const char* text, char** schema, char** name);

}  // namespace streamfilter::pg
