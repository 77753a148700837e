// Several producers share the slices of one filter: what each says of it (slice_origin.hpp) has to
// agree, or they hash the same events differently and find no repeats.
#pragma once

#include "pg/catalog/filter_relation.hpp"

namespace streamfilter::pg {

// What a producer says of the filter that it wants to use; each may be nullptr: it does not say.
struct ProducerWish {
  const char* conflict;
  const char* producer;  // JSON
};

// Raises 55000 with the first difference between it and the relation that holds the slices.
void check_producer_agrees(const FilterRelation* relation, const ProducerWish& wish);

}  // namespace streamfilter::pg
