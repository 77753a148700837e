#include "pg/server/postgres.hpp"

#include "pg/catalog/definition_commands.hpp"
#include "pg/catalog/lookup.hpp"
#include "pg/catalog/option_list.hpp"

namespace streamfilter::pg {

void append_options(StringInfo text, List* options) {
  ListCell* cell;
  foreach (cell, options) {
    auto* option = static_cast<DefElem*>(lfirst(cell));
    appendStringInfo(text, "%s%s %s", foreach_current_index(cell) == 0 ? " OPTIONS (" : ", ",
                     quote_identifier(option->defname), quote_literal_cstr(value_of(option)));
  }
  if (options != NIL) appendStringInfoChar(text, ')');
}

namespace {

const char* collation_name(Oid collation) {
  const char* name = nullptr;
  read_catalog<FormData_pg_collation>(
      COLLOID, collation, [&](const FormData_pg_collation& row, HeapTuple) {
        name = quote_qualified_identifier(get_namespace_name(row.collnamespace),
                                          NameStr(row.collname));
      });
  if (name == nullptr)
    ereport(ERROR, errcode(ERRCODE_UNDEFINED_OBJECT),
            errmsg("collation with OID %u does not exist", collation));
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
  TextBuffer text;
  appendStringInfo(&text, "CREATE FOREIGN TABLE IF NOT EXISTS %s (", name);
  bool first = true;
  for (int i = 0; i < RelationGetNumberOfAttributes(filter); ++i) {
    const Form_pg_attribute column = TupleDescAttr(RelationGetDescr(filter), i);
    if (column->attisdropped) continue;
    if (!first) appendStringInfoString(&text, ", ");
    first = false;
    append_column(&text, relid, column);
  }
  ForeignTable* table = GetForeignTable(relid);  // the caller has it locked
  appendStringInfo(&text, ") SERVER %s",
                   quote_identifier(server_of_oid(table->serverid)->servername));
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

// A GRANT of these rights to one role; nullptr: there are none. `column`: on this column only.
const char* grant(AclMode rights, Oid grantee, const char* name, const char* column) {
  TextBuffer text;
  for (const Right& right : kRights) {
    if ((rights & right.bit) == 0) continue;
    appendStringInfo(&text, "%s%s", text.len == 0 ? "GRANT " : ", ", right.name);
    if (column != nullptr) appendStringInfo(&text, " (%s)", column);
  }
  if (text.len == 0) return nullptr;
  const char* role =
      grantee == ACL_ID_PUBLIC ? "PUBLIC" : quote_identifier(GetUserNameFromId(grantee, false));
  appendStringInfo(&text, " ON %s TO %s", name, role);
  return text.data;
}

void add_grants(List** commands, const Acl* acl, Oid owner, const char* name, const char* column) {
  for (int i = 0; i < ACL_NUM(acl); ++i) {
    const AclItem* item = &ACL_DAT(acl)[i];
    if (item->ai_grantee == owner) continue;
    const AclMode granted_on = ACLITEM_GET_GOPTIONS(*item);
    const AclMode rest = ACLITEM_GET_PRIVS(*item) & ~granted_on;
    if (const char* command = grant(rest, item->ai_grantee, name, column))
      *commands = lappend(*commands, const_cast<char*>(command));
    if (const char* command = grant(granted_on, item->ai_grantee, name, column))
      *commands = lappend(*commands, psprintf("%s WITH GRANT OPTION", command));
  }
}

// The ACL in a catalog row; nullptr: nothing was granted.
const Acl* acl_of(int cache, HeapTuple tuple, AttrNumber attribute) {
  bool isnull;
  const Datum datum =
      SysCacheGetAttr(static_cast<SysCacheIdentifier>(cache), tuple, attribute, &isnull);
  return isnull ? nullptr : DatumGetAclPCopy(datum);
}

List* grants(Relation filter, const char* name) {
  const Oid relid = RelationGetRelid(filter), owner = filter->rd_rel->relowner;
  List* commands = NIL;
  read_catalog<FormData_pg_class>(RELOID, relid, [&](const auto&, HeapTuple tuple) {
    if (const Acl* acl = acl_of(RELOID, tuple, Anum_pg_class_relacl))
      add_grants(&commands, acl, owner, name, nullptr);
  });
  for (int i = 1; i <= RelationGetNumberOfAttributes(filter); ++i) {
    const auto add = [&](const FormData_pg_attribute& column, HeapTuple tuple) {
      if (const Acl* acl = acl_of(ATTNUM, tuple, Anum_pg_attribute_attacl);
          acl != nullptr && !column.attisdropped)
        add_grants(&commands, acl, owner, name, quote_identifier(NameStr(column.attname)));
    };
    read_catalog<FormData_pg_attribute>(ATTNUM, relid, add, static_cast<AttrNumber>(i));
  }
  return commands;
}

}  // namespace

List* definition_commands(Oid relid) {
  Relation filter = try_relation_open(relid, AccessShareLock);
  if (filter == nullptr) raise_gone(relid);
  const char* name = quote_qualified_identifier(get_namespace_name(RelationGetNamespace(filter)),
                                                RelationGetRelationName(filter));
  const Oid owner = filter->rd_rel->relowner;
  List* commands = list_make2(creation(filter, name),
                              psprintf("ALTER FOREIGN TABLE %s OWNER TO %s", name,
                                       quote_identifier(GetUserNameFromId(owner, false))));
  commands = list_concat(commands, grants(filter, name));
  table_close(filter, AccessShareLock);  // anybody may ask: nobody waits for the end of that
  return commands;
}

}  // namespace streamfilter::pg
