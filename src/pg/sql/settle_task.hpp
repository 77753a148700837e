// What a call of streamfilter_settle() is about: two tables, the filter between them, and what a
// key is.
#pragma once

extern "C" {
#include "utils/array.h"
}

#include "pg/sql/settle_query.hpp"

namespace streamfilter::pg {

// Locks the two tables against being altered, and against other calls on them; the filter, as its
// trigger would; and where no filter can have keys for this transaction alone, the table against
// others who write it. In the current memory context. Raises 42501 without SELECT and DELETE on
// the one and SELECT and INSERT on the other, and what is told in the messages.
SettleTask begin_settling(Oid diverted, Oid target, ArrayType* columns, bool since, bool keep);

}  // namespace streamfilter::pg
