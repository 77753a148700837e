// Finds volatile functions that no expression names: checks of domains, steps of aggregates, and
// functions called by one that should be declared volatile itself. The planner ignores them; here
// they matter, because they could look at the table, or at filters.
#pragma once

namespace streamfilter::pg {

// Is it a volatile function of PostgreSQL that needs nothing of the database?
bool only_computes(Oid function);

// Does a volatile function check values of one of these columns when they are made?
bool has_volatile_column(TupleDesc columns);

// What the node runs besides functions declared volatile, in words; nullptr: nothing volatile.
const char* find_hidden_code(const Node* node);

// Contains the expression such code?
bool hides_volatile_code(Node* expression);

// Like contain_volatile_functions(), and counts hidden code.
bool runs_volatile_code(Node* expression);

// Do CHECK constraints of the table run code of that sort? Its generated columns or indexes? Any of
// these?
using CodeTest = bool (*)(Node* expression);
bool checks_by_code(Relation table, CodeTest test);
bool computes_by_code(Relation table, CodeTest test);
bool runs_code_for_rows(Relation table, CodeTest test);

}  // namespace streamfilter::pg
