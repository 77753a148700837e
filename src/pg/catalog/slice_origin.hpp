// What a server with slices knows of the filter they are of, and what it makes of that.
#pragma once

#include "pg/catalog/filter_relation.hpp"
#include "pg/catalog/producer.hpp"

namespace streamfilter::pg {

// Describes a filter to one of its servers, as print_producer does. `identity`: of the producer's
// filter there; nullptr: of this filter.
const char* describe_producer(const FilterRelation* relation, int server,
                              const char* identity = nullptr);

// Several producers share the slices of one filter. Their definitions must agree; otherwise they
// would hash the same events differently and find no repeats. Raises 55000 with the first
// difference from the relation that holds the slices. `conflict`: nullptr if it may differ.
void check_producer_agrees(const FilterRelation* relation, const Producer* requested,
                           const char* conflict);

// ---- identities ---------------------------------------------------------------------------------

// Distinguishes a filter from others of the same name, made here earlier or later, or elsewhere.
const char* identity_of_filter(Oid relid);

// Is it the identity of a filter of this database that was dropped?
bool was_dropped_here(const char* identity);

// ---- what slices take over from their producer --------------------------------------------------

// For slices of another server's filter: have keys further places on other servers?
bool has_places_elsewhere(const FilterRelation* relation);

// The false-positive rate that the filter should keep; 0: no promise. For slices of another server,
// the rate of their producer's filter.
double promised_fpr_of(const FilterRelation* relation);

// Are repeats discarded even while the filter holds more than that allows?
bool discards_overfull(const FilterRelation* relation);

}  // namespace streamfilter::pg
