// Several producers share the slices of one filter: what each says of it (slice_origin.hpp) has to
// agree, or they hash the same events differently and find no repeats.
#pragma once

#include "pg/catalog/filter_relation.hpp"

namespace streamfilter::pg {

// The options that a producer wants its filter to have; nullptr: it does not say.
struct RequestedOptions {
  const char* conflict;
  const char* producer;  // JSON
};

// Raises 55000 with the first difference between it and the relation that holds the slices.
void check_producer_agrees(const FilterRelation* relation, const RequestedOptions& requested);

// How many servers were retired, as the producer describes its filter.
uint32 retirements_of_producer(const char* producer);

}  // namespace streamfilter::pg
