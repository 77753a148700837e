// Rights that a table's owner needs on the filter of its trigger, and on the table that it diverts
// repeats to. A trigger whose owner lacks them blocks no DDL.
#pragma once

extern "C" {
#include "commands/trigger.h"
#include "utils/acl.h"
}

#include "pg/binding/trigger_binding.hpp"
#include "pg/binding/trigger_kind.hpp"

namespace streamfilter::pg {

// Needed rights on the filter; `type` is pg_trigger.tgtype.
AclMode needed_rights(int16 type, TriggerKind kind);

// Has the owner these rights on the relation, and USAGE on its schema?
bool has_rights(Oid relation, Oid owner, AclMode rights);

// The owner of a trigger's table, and the table's quoted name.
struct TableOwner {
  Oid role;
  const char* table_name;
};

// False, with 42501 reported at this level, unless the owner has the rights.
bool check_rights(Oid relation, TableOwner owner, AclMode rights, int level);

// Has the owner of the trigger's table all rights that the trigger needs?
bool has_all_rights(const TriggerRow* row, TriggerKind kind);

// Does the relation's owner own the table, too, directly or as a member of the owning role? DDL on
// the relation waits for such tables, and may fail because of them.
bool owns_both(Oid relation, Oid table);

}  // namespace streamfilter::pg
