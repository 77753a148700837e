// The OPTIONS (…) of filters and their columns.
#pragma once

#include "core/format/parameters.hpp"
#include "pg/catalog/relation_options.hpp"
#include "pg/server/problem_report.hpp"

struct DefElem;
struct List;

namespace streamfilter::pg {

// The complete definition that the options of a filter (DefElems) ask for; the options that are not
// part of it go to `relation_options`, which keeps its defaults where they are not given. Faults:
// HV00D an unknown option, 22023 bad values and promises that cannot be kept.
bool read_table_options(List* options, Definition* definition, RelationOptions* relation_options,
                        Fault& fault);

// What a filter without option fpr keeps: the default of 1.1. CREATE writes that of now.
constexpr char kFormerFpr[] = "0.01";
constexpr char kDefaultFpr[] = "1e-06";

// Do the options name no fpr, and go with this one? Options that name numbers of the kind may
// override it; others that cannot keep it are a fault: 22023. So is nothing else.
bool takes_fpr(List* options, const char* fpr, Fault& fault);

// Reads an option of the relation; false if it is another one. A bad value is a fault: 22023.
bool read_relation_option(DefElem* option, RelationOptions* relation_options, Fault& fault);

// Is each of the options one that can be altered without a look at what the filter knows?
bool keeps_state(List* options);

// The names in option servers (char*), NIL if it is not given. Fault: 22023.
bool read_server_names(const RelationOptions* relation_options, List** names, Fault& fault);

// Has a move (slice_moves.cpp) made the relation? It holds one slice of another server's filter.
bool holds_moved_slice(const RelationOptions& options);

// The window of time, in microseconds; 0: there is none.
uint64 time_window(const Parameters& parameters);

// As options have them.
const char* name_of(Conflict conflict);
const char* name_of(Persistence persistence);
const char* name_of(FilterMode mode);

// The role of a column. Faults: HV00D, 22023.
bool read_column_options(List* options, Role* role, Fault& fault);

}  // namespace streamfilter::pg
