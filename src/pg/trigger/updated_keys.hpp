// Keys that the running statement has given to rows. An UPDATE that shifts keys (id + 1) gives one
// row the key that it takes from another; such a key must not be forgotten, whatever the order of
// rows.
#pragma once

namespace streamfilter::pg {

void note_updated_to(Oid filter, uint64 hash);
bool was_updated_to(Oid filter, uint64 hash);

}  // namespace streamfilter::pg
