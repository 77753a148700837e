// Dependencies of filters on the servers that hold them and on their parent in a tree, so that DROP
// names filters and CASCADE drops them. CREATE, ALTER and IMPORT record them; if no event trigger
// ran (pg_upgrade, or disabled triggers), the filter's first change does.
#pragma once

#include "pg/catalog/filter_relation.hpp"

namespace streamfilter::pg {

// OIDs of the objects of a class that a filter depends on, and of the filters that depend on an
// object.
List* objects_needed_by(Oid relid, Oid class_id);
List* filters_depending_on(Oid class_id, Oid object);

// The relations that depend on a filter, without those that another session is dropping, or is
// taking from it.
List* lasting_children(Oid filter);

// Makes a filter depend on an object, or no more. True: it did already.
bool depend_on(Oid relid, Oid class_id, Oid object);
void depend_no_more_on(Oid relid, Oid class_id, Oid object);

// Records dependencies on its own server and those in option servers, and on no others.
bool depend_on_servers(const FilterRelation* relation);

// May the current transaction change the catalog?
bool may_record_dependencies();

}  // namespace streamfilter::pg
