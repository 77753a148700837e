// What can happen to a filter: one list for the changes of a transaction (own_changes.hpp), those
// of a prepared one, notes for a copy in another size (state_copy.hpp), and rows of the log
// (saved_rows.hpp). Does not need PostgreSQL.
#pragma once

#include <cstdint>

namespace streamfilter::pg {

enum class ChangeType : std::uint8_t {
  add,        // a new key
  repeat,     // a key that was added before, for kinds that learn from repeats
  reset,      // forgets all keys
  erase,      // forgets one key
  merge,      // merges a value
  withdrawn,  // an addition, or a repeat of it, that was taken back
  // Also noted for a copy. The last one of a transaction's own.
  promote,  // a key was found, and the filter has promoted it: a change, where that has moved its
            // time
  // What COMMIT PREPARED does to a slot, after the keys. ROLLBACK PREPARED frees slots that were to
  // be defined.
  saved,     // an image is saved
  unlogged,  // it is kept in memory only: before the keys
  drop,      // frees the slot
  define,    // makes the slot the filter's state
  // Also in the log.
  roles,    // a new key with importance and time
  header,   // parameters and seed, and the collations of the keys
  image,    // the same, and an image has everything before
  memory,   // the same of a life that is kept in memory only
  unknown,  // no letter of the log
};

}  // namespace streamfilter::pg
