// Look-ups by OID without a lock. If another session has dropped the object, they return that, or
// raise an error of class 42. PostgreSQL's own raise XX000, or print a null pointer.
#pragma once

extern "C" {
#include "foreign/foreign.h"
}

namespace streamfilter::pg {

// The quoted name with schema; raises 42P01 if the relation was dropped.
const char* qualified_name(Oid relation);

// "?": the role was dropped.
const char* name_of_role(Oid role);

// InvalidOid: the relation was dropped.
Oid owner_of(Oid relation);

// Does the role own the relation, or have its owner's rights? False if it was dropped.
bool is_owner(Oid relation, Oid role);

// Raises unless the relation exists, is a filter, and belongs to the current user.
void require_own_filter(Oid relation);

// OPERATOR(schema.=): how values of the type are compared; nullptr if they are not.
const char* equality_operator(Oid type);

// Raises 42704 if the server was dropped.
const ForeignServer* server_of_oid(Oid server);

// Is there one for the role, or for PUBLIC?
bool has_user_mapping(Oid role, Oid server);

}  // namespace streamfilter::pg
