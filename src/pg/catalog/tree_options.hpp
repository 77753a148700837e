// Options that make a filter a node of a tree: parent, tree, top_down.
#pragma once

#include "core/format/parameters.hpp"
#include "pg/catalog/relation_options.hpp"
#include "pg/server/problem_report.hpp"

struct List;

namespace streamfilter::pg {

// Do they fit each other and the rest of a complete definition? Faults: 22023, 0A000.
bool check_tree_options(List* options, const Definition& definition,
                        const RelationOptions& relation_options, Fault& fault);

// Splits a name as SQL writes it, such as my_schema."My Filter"; without a schema, that is nullptr.
// False: it is no such name.
bool split_name(const char* text, char** schema, char** name);

}  // namespace streamfilter::pg
