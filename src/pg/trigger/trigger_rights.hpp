// What the owner of a table needs of the filter that a trigger of the table names, and of the table
// that it diverts repeats to: without that, he is in nobody's way.
#pragma once

extern "C" {
#include "commands/trigger.h"
#include "utils/acl.h"
}

#include "pg/trigger/trigger_binding.hpp"
#include "pg/trigger/trigger_kind.hpp"

namespace streamfilter::pg {

// Of the filter; `type` is pg_trigger.tgtype.
AclMode needed_rights(int16 type, TriggerKind kind);

// Has he these rights on the relation, and USAGE of its schema?
bool has_rights(Oid relation, Oid owner, AclMode rights);

// The owner of a trigger's table, by its quoted name.
struct TableOwner {
  Oid role;
  const char* table_name;
};

// False, and 42501 reported at this level, unless the owner has the rights.
bool check_rights(Oid relation, TableOwner owner, AclMode rights, int level);

// Has the owner of the trigger's table all the rights that the trigger needs?
bool has_all_rights(const TriggerRow* row, TriggerKind kind);

// Does the owner of the relation own the table, too, by himself or as a member of the role that
// does? What he does to the relation waits for his own tables, and may fail because of them.
bool owns_both(Oid relation, Oid table);

}  // namespace streamfilter::pg
