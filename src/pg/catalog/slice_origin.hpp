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

// ---- agreement of producers ---------------------------------------------------------------------

// Several producers share the slices of one filter. Their definitions must agree; otherwise
// they would hash the same events differently and find no repeats.

// Options that a producer wants its filter to have; nullptr: not said.
struct RequestedOptions {
  const char* conflict;
  const char* slicing;
  const char* producer;  // JSON
};

// Raises 55000 with the first difference from the relation that holds the slices.
void check_producer_agrees(const FilterRelation* relation, const RequestedOptions& requested);

// Where a producer puts the bits of a key; nullptr: its version does not say.
const char* slicing_of_producer(const char* producer);

}  // namespace streamfilter::pg
