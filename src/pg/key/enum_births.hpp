// The identity of an enum's values. Their OIDs differ between databases, and RENAME VALUE changes
// their labels; so a key has the label under which the value was born.
//
// Births are kept only where they differ from labels, in a security label of the type, of provider
// "streamfilter": label,born,label,born, each quoted like an identifier. That is a catalog, written
// in the transaction of the ALTER TYPE; it goes with the type, comes back by pg_dump and pg_upgrade
// under the type's new OID, and no publication has it. A value that is added under a label that
// another one was born with gets a longer name than any label has. So no two values of a type are
// ever born alike.
#pragma once

extern "C" {
#include "catalog/objectaddress.h"
}

#include "pg/server/compat.hpp"

namespace streamfilter::pg {

// The hash of the label that the value was born with. Raises 22P03 if there is no such value.
uint64 hash_enum(Oid value, uint64 seed);

// A step of kCatalogSteps.
void on_enum_change(Datum, SF_SYSCACHE_ID, uint32);

// Call after ALTER TYPE in its transaction: a value was renamed, or added (`former` is nullptr).
void note_label(Oid type, const char* former, const char* label);

// Is a value of the enum called otherwise than at its birth?
bool has_births(Oid type);

// Of the provider of security labels: raises 0A000 but for what a dump brings back.
void check_births(const ObjectAddress* object, const char* births);

}  // namespace streamfilter::pg
