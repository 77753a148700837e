#pragma once

#include "pg/handle/filter_handle.hpp"

namespace streamfilter::pg {

// Saves the state of a filter that is ready for use, in the current transaction, and deletes log
// rows that the image makes superfluous. `own_changes`: includes those of this transaction, which
// is about to commit. Raises 55006 if other transactions take too long to commit.
void save_filter(FilterHandle* filter, bool own_changes);

}  // namespace streamfilter::pg
