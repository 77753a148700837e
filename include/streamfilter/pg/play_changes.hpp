// Brings the changes of a transaction into a filter.
#pragma once

#include "streamfilter/pg/key_log.hpp"
#include "streamfilter/pg/shared_state.hpp"

namespace streamfilter::pg {

// Plays the changes that count on a filter: the state of `slot`, under its locks, or with nullptr a
// private copy. Allocates nothing and cannot fail.
void play_changes(const KeyLog* log, Header* header, const FilterSlot* slot);

}  // namespace streamfilter::pg
