// What a server with slices keeps about their filter, so that other producers need to know only one
// of the servers (Koloniari et al. 2011, section 3.1).
#pragma once

#include "pg/catalog/filter_relation.hpp"

namespace streamfilter::pg {

// Columns, options and servers of a filter as a JSON object, for one of its servers, in the current
// memory context: {"columns": [{"name", "type", "collation", "role"}], "options": {...}, "servers":
// [{"name", ...}], "position": "1", "identity": "...", "slicing": "horizontal"}. Contains no users
// and passwords. `identity`: of the producer's filter there; nullptr: of this filter.
const char* describe_producer(const FilterRelation* relation, int server,
                              const char* identity = nullptr);

// Distinguishes a filter from others of the same name, made here earlier or later, or elsewhere.
const char* identity_of_filter(Oid relid);

// Is it the identity of a filter of this database that was dropped?
bool was_dropped_here(const char* identity);

// For slices of another server's filter: have keys further places on other servers?
bool has_places_elsewhere(const FilterRelation* relation);

// The false-positive rate that the filter should keep; 0: no promise. For slices of another server,
// the rate of their producer's filter.
double promised_fpr_of(const FilterRelation* relation);

// Are repeats discarded even while the filter holds more than that allows?
bool discards_overfull(const FilterRelation* relation);

}  // namespace streamfilter::pg
