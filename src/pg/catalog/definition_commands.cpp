#include "pg/server/postgres.hpp"

extern "C" {
#include "access/table.h"
#include "catalog/pg_class.h"
#include "catalog/pg_collation.h"
#include "foreign/foreign.h"
#include "lib/stringinfo.h"
#include "utils/acl.h"
#include "utils/rel.h"
}

#include "pg/catalog/definition_commands.hpp"
#include "pg/catalog/option_list.hpp"

namespace streamfilter::pg {
namespace {

void append_options(StringInfo text, List* options) {
  ListCell* cell;
  foreach (cell, options) {
    auto* option = static_cast<DefElem*>(lfirst(cell));
    appendStringInfo(text, "%s%s %s", foreach_current_index(cell) == 0 ? " OPTIONS (" : ", ",
                     quote_identifier(option->defname), quote_literal_cstr(value_of(option)));
  }
  if (options != NIL) appendStringInfoChar(text, ')');
}

const char* collation_name(Oid collation) {
  HeapTuple tuple = SearchSysCache1(COLLOID, ObjectIdGetDatum(collation));
  if (!HeapTupleIsValid(tuple)) elog(ERROR, "cache lookup failed for collation %u", collation);
  const auto* form = reinterpret_cast<Form_pg_collation>(GETSTRUCT(tuple));
  const char* name =
      quote_qualified_identifier(get_namespace_name(form->collnamespace), NameStr(form->collname));
  ReleaseSysCache(tuple);
  return name;
}

void append_column(StringInfo text, Oid filter, const Form_pg_attribute column) {
  appendStringInfo(text, "%s %s", quote_identifier(NameStr(column->attname)),
                   format_type_extended(column->atttypid, column->atttypmod,
                                        FORMAT_TYPE_TYPEMOD_GIVEN | FORMAT_TYPE_FORCE_QUALIFY));
  append_options(text, GetForeignColumnOptions(filter, column->attnum));
  if (OidIsValid(column->attcollation) &&
      column->attcollation != get_typcollation(column->atttypid))
    appendStringInfo(text, " COLLATE %s", collation_name(column->attcollation));
  if (column->attnotnull) appendStringInfoString(text, " NOT NULL");
}

char* creation(Relation filter, const char* name) {
  const Oid relid = RelationGetRelid(filter);
  StringInfoData text;
  initStringInfo(&text);
  appendStringInfo(&text, "CREATE FOREIGN TABLE IF NOT EXISTS %s (", name);
  bool first = true;
  for (int i = 0; i < RelationGetNumberOfAttributes(filter); ++i) {
    const Form_pg_attribute column = TupleDescAttr(RelationGetDescr(filter), i);
    if (column->attisdropped) continue;
    if (!first) appendStringInfoString(&text, ", ");
    first = false;
    append_column(&text, relid, column);
  }
  ForeignTable* table = GetForeignTable(relid);
  appendStringInfo(&text, ") SERVER %s",
                   quote_identifier(GetForeignServer(table->serverid)->servername));
  append_options(&text, table->options);
  return text.data;
}

struct Right {
  AclMode bit;
  const char* name;
};
constexpr Right kRights[] = {{ACL_INSERT, "INSERT"},
                             {ACL_SELECT, "SELECT"},
                             {ACL_DELETE, "DELETE"},
                             {ACL_TRUNCATE, "TRUNCATE"}};

const char* grant(const AclItem* item, const char* name) {
  StringInfoData text;
  initStringInfo(&text);
  for (const Right& right : kRights)
    if (ACLITEM_GET_PRIVS(*item) & right.bit)
      appendStringInfo(&text, "%s%s", text.len == 0 ? "GRANT " : ", ", right.name);
  if (text.len == 0) return nullptr;
  const char* grantee = item->ai_grantee == ACL_ID_PUBLIC
                            ? "PUBLIC"
                            : quote_identifier(GetUserNameFromId(item->ai_grantee, false));
  appendStringInfo(&text, " ON %s TO %s", name, grantee);
  return text.data;
}

List* grants(Oid relid, Oid owner, const char* name) {
  HeapTuple tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
  if (!HeapTupleIsValid(tuple)) elog(ERROR, "cache lookup failed for relation %u", relid);
  bool isnull;
  const Datum datum = SysCacheGetAttr(RELOID, tuple, Anum_pg_class_relacl, &isnull);
  List* commands = NIL;
  if (!isnull) {
    const Acl* acl = DatumGetAclPCopy(datum);
    for (int i = 0; i < ACL_NUM(acl); ++i) {
      const AclItem* item = &ACL_DAT(acl)[i];
      const char* command = item->ai_grantee == owner ? nullptr : grant(item, name);
      if (command != nullptr) commands = lappend(commands, const_cast<char*>(command));
    }
  }
  ReleaseSysCache(tuple);
  return commands;
}

}  // namespace

List* definition_commands(Oid relid) {
  Relation filter = table_open(relid, AccessShareLock);
  const char* name = quote_qualified_identifier(get_namespace_name(RelationGetNamespace(filter)),
                                                RelationGetRelationName(filter));
  const Oid owner = filter->rd_rel->relowner;
  List* commands = list_make2(creation(filter, name),
                              psprintf("ALTER FOREIGN TABLE %s OWNER TO %s", name,
                                       quote_identifier(GetUserNameFromId(owner, false))));
  commands = list_concat(commands, grants(relid, owner, name));
  table_close(filter, NoLock);
  return commands;
}

}  // namespace streamfilter::pg
