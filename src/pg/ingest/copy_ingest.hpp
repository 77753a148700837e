// COPY … FROM into a table with one of our triggers, in batches.
#pragma once

struct RelationData;

namespace streamfilter::pg {

// Called for the first row of a statement in a table. A COPY reads and inserts further rows in
// batches, if it can; another statement goes on as it is.
void take_over(const RelationData* table);

}  // namespace streamfilter::pg
