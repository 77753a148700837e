// Several producers share the slices of one filter. Their definitions (slice_origin.hpp) must
// agree; otherwise they would hash the same events differently and find no repeats.
#pragma once

#include "pg/catalog/filter_relation.hpp"

namespace streamfilter::pg {

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
