#include "pg/server/postgres.hpp"

extern "C" {
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/indexing.h"
#include "catalog/pg_class.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_extension.h"
#include "catalog/pg_proc.h"
#include "commands/alter.h"
#include "commands/extension.h"
#include "nodes/parsenodes.h"
#include "utils/lsyscache.h"
}

#include "pg/ddl/extension_schema.hpp"
#include "pg/server/syscache.hpp"
#include "pg/storage/state_heaps.hpp"

namespace streamfilter::pg {
namespace {

constexpr char kExtension[] = "streamfilter";

bool moves_extension(const Node* statement) {
  if (!IsA(statement, AlterObjectSchemaStmt)) return false;
  const auto* move = reinterpret_cast<const AlterObjectSchemaStmt*>(statement);
  // PostgreSQL refuses others.
  return move->objectType == OBJECT_EXTENSION && strcmp(strVal(move->object), kExtension) == 0 &&
         superuser();
}

Oid schema_of_member(const FormData_pg_depend* member) {
  if (member->deptype != DEPENDENCY_EXTENSION) return InvalidOid;
  if (member->classid == ProcedureRelationId) return get_func_namespace(member->objid);
  if (member->classid == RelationRelationId) return get_rel_namespace(member->objid);
  return InvalidOid;
}

// The internals are in the handler's schema.
struct Members {
  Oid internal_schema;
  Oid schema;       // of the others; InvalidOid: there are none
  List* functions;  // of the internals
  List* relations;
};

void take_member(Members* members, const FormData_pg_depend* member) {
  const Oid schema = schema_of_member(member);
  if (!OidIsValid(schema)) return;
  if (schema != members->internal_schema)
    members->schema = schema;
  else if (member->classid == ProcedureRelationId)
    members->functions = lappend_oid(members->functions, member->objid);
  else
    members->relations = lappend_oid(members->relations, member->objid);
}

void find_members(Members* members) {
  scan_catalog<FormData_pg_depend>(
      DependRelationId, DependReferenceIndexId,
      {{Anum_pg_depend_refclassid, ExtensionRelationId},
       {Anum_pg_depend_refobjid, get_extension_oid(kExtension, true)}},
      [=](const FormData_pg_depend& row, HeapTuple, TupleDesc) { take_member(members, &row); });
}

void move_internals(const Members* members, Oid schema) {
  ListCell* cell;
  ObjectAddresses* moved = new_object_addresses();
  foreach (cell, members->functions)
    AlterObjectNamespace_oid(ProcedureRelationId, lfirst_oid(cell), schema, moved);
  foreach (cell, members->relations)
    AlterObjectNamespace_oid(RelationRelationId, lfirst_oid(cell), schema, moved);
  free_object_addresses(moved);
  CommandCounterIncrement();
}

}  // namespace

void move_extension(UtilityCall* call) {
  Members members = {};
  if (moves_extension(statement_of(call))) {
    members.internal_schema = schema_of_internals();
    find_members(&members);
  }
  if (!OidIsValid(members.schema)) {
    call->go_on();
    return;
  }
  move_internals(&members, members.schema);
  call->go_on();
  CommandCounterIncrement();
  move_internals(&members, members.internal_schema);
}

}  // namespace streamfilter::pg
