// The keys that rows have got from the statement that runs. An UPDATE that moves keys on (id + 1)
// gives one row the key that it takes from another: it must not be forgotten, in whatever order the
// rows come.
#pragma once

namespace streamfilter::pg {

void note_updated_to(Oid filter, uint64 hash);
bool was_updated_to(Oid filter, uint64 hash);

}  // namespace streamfilter::pg
