// To which life of a filter something belongs.
//
// A filter's contents live until an ALTER or a restart begins others: each life has a random number
// that never comes again. A slot, the rows of the log and of an image, the record in the file of
// unlogged filters and what a standby has in memory carry it, and are used only for the life that
// the newest header in the log names; without a header, nothing is saved. Lives are compared within
// one filter of one database, and only for being equal. Within a life, rows of the log have numbers
// that only grow, and tell an older state from a newer (StateVersion).
//
//   | event                         | life    | in the heaps, in the same transaction         |
//   |-------------------------------|---------|-----------------------------------------------|
//   | first use, nothing is saved   | new     | header, with the first key that commits       |
//   | TRUNCATE                      | as it is| a reset, which cuts off what is before         |
//   | ALTER: another size           | new     | image, log without the former life             |
//   | ALTER that starts empty       | ended   | all rows deleted; the slot goes at commit      |
//   | ALTER to unlogged             | as it is| all rows deleted, a header `memory`            |
//   | ALTER to logged               | as it is| image                                          |
//   | CALL streamfilter_resize()    | new     | image; its header says whose later rows count  |
//   | DROP, streamfilter_forget_saved | as it is | all rows deleted                            |
//   | lost: crash, promotion, backup | new    | header with the first key, for the former one |
//   | saved state unreadable        | new     | header, with the first key that commits       |
//
// Of another life a load, a look of a standby and a resize use nothing: no message, no damage. Who
// writes an image deletes its rows. A standby that finds another life reads all anew, or empties
// what it has.
//
// A definition says what its filter is to be, not what is saved of it. Only a definition that was
// changed where no hook ran (without preloading, with event triggers off) may not fit the header.
#pragma once

#include "core/format/layout.hpp"
#include "pg/catalog/filter_relation.hpp"

namespace streamfilter::pg {

// Draws the number of a life.
int64 begin_life();

// Takes the parameters of a packed header, which comes first in these bytes, with the geometry
// there, whatever this version would derive. `columns`: its key_signature; 0: not known. Returns
// why that is not possible; nullptr if it is.
const char* take_parameters(const char* bytes, Size length, const FilterRelation* relation,
                            uint64 columns, Parameters* result);

// Bytes that suffice for a block of so much memory, whatever slices it has: what is saved may have
// others than the definition.
inline uint64 room_for(const Parameters& p) { return p.memory + sizeof(Header) - kStoredHeader; }

// ---- collations of keys -------------------------------------------------------------------------

// Collations of a filter's keys, saved with its state: with another version of a collation, other
// keys may be equal or be hashed differently.

// A line for each key column whose collation does not come with the server: column, collation, OID,
// version at its creation or refresh, and installed version. palloc'ed.
const char* collations_of(Oid filter);

}  // namespace streamfilter::pg
