// Volatile functions where no expression names them: checks of domains, steps of aggregates, what a
// function calls that should be declared volatile itself. The planner passes over them; here they
// matter, for they could look at the table, or at filters.
#pragma once

extern "C" {
#include "nodes/nodes.h"
}

namespace streamfilter::pg {

// Is a value of the type checked by a volatile function when it is made?
bool runs_volatile_check(Oid type);

// What the node runs besides the functions that are declared volatile, in words; nullptr: nothing
// volatile.
const char* find_hidden_code(const Node* node);

// Is there such code anywhere in it?
bool hides_volatile_code(Node* expression);

// As contain_volatile_functions(), and hidden code counts.
bool runs_volatile_code(Node* expression);

}  // namespace streamfilter::pg
