// Look-ups by OID for those who hold no lock: what another session has dropped just now is an
// answer, or an error of class 42. The server's own raise XX000 for it, or print a null pointer.
#pragma once

extern "C" {
#include "foreign/foreign.h"
}

namespace streamfilter::pg {

// As SQL has it, with the schema; raises 42P01 if the relation has gone.
const char* qualified_name(Oid relation);

// InvalidOid: the relation has gone.
Oid owner_of(Oid relation);

// Does the role own the relation, or have the rights of its owner? Of one that has gone nobody
// does.
bool is_owner(Oid relation, Oid role);

// Raises unless the relation is there, is a filter, and is the current user's.
void require_own_filter(Oid relation);

// Raises 42704 if the server has gone.
const ForeignServer* server_of_oid(Oid server);

}  // namespace streamfilter::pg
