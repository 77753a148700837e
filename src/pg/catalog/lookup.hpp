// Look-ups by OID without a lock. If another session has dropped the object, they return that, or
// raise an error of class 42. PostgreSQL's own raise XX000, or print a null pointer.
#pragma once

namespace streamfilter::pg {

// Raises 42P01: the relation was dropped.
[[noreturn]] void raise_gone(Oid relation);

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

// ---- the extension ------------------------------------------------------------------------------

// Does this database have the extension?

// Also true if that cannot be found out now, and once true, true for the session. Costs one
// comparison, unless a wrapper was made or dropped since the last call.
bool is_extension_here();
// A step of kCatalogSteps: CREATE EXTENSION makes a wrapper, for which sessions get an
// invalidation; for the extension itself they get none.
void on_wrapper_change(Datum, SF_SYSCACHE_ID, uint32);

// ---- questions that must stay secret ------------------------------------------------------------

// Functions that ask filters although they are not declared volatile. A filter knows each key as
// soon as the one before is judged, while a table shows a STABLE function the rows from before the
// statement.

// Is the function one of these, as far as its source shows? Its text names our functions, or its
// parsed body calls volatile ones. Calls through other functions, and filters read as tables,
// remain unseen. False for functions in C and for PostgreSQL's.
bool asks_in_secret(Oid function);

// Counts the invalidations of watched tables, so that a caller can tell whether a table has changed
// since its last look.

struct TableWatch {
  Oid table;
  uint64 changes;
};

// Never freed.
const TableWatch* watch_table(Oid table);
// Steps of kRelationSteps, and of kCatalogSteps: the owner of a table needs rights on the schema of
// its filter.
void on_table_change(Oid table);
void on_schema_change(Datum, SF_SYSCACHE_ID, uint32);

}  // namespace streamfilter::pg
