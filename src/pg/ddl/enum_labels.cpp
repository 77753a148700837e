#include "pg/server/postgres.hpp"

extern "C" {
#include "catalog/pg_attribute.h"
#include "nodes/makefuncs.h"
#include "nodes/parsenodes.h"
#include "parser/parse_coerce.h"
#include "parser/parse_type.h"
#include "utils/builtins.h"
}

#include "pg/binding/trigger_binding.hpp"
#include "pg/catalog/filter_relation.hpp"
#include "pg/ddl/enum_labels.hpp"
#include "pg/key/hash_method.hpp"
#include "pg/server/syscache.hpp"

namespace streamfilter::pg {
namespace {

// InvalidOid: another session has dropped it.
Oid find_type(List* name) {
  HeapTuple tuple = LookupTypeName(nullptr, makeTypeNameFromNameList(name), nullptr, true);
  if (!HeapTupleIsValid(tuple)) return InvalidOid;
  const Oid type = typeTypeId(tuple);
  ReleaseSysCache(tuple);
  return type;
}

// The name of the first column that is accepted; nullptr: there is none.
template <typename Accepts>
const char* find_column(Oid relation, Accepts accepts) {
  const char* name = nullptr;
  scan_catalog<FormData_pg_attribute>(
      AttributeRelationId, AttributeRelidNumIndexId, {{Anum_pg_attribute_attrelid, relation}},
      [&](const FormData_pg_attribute& row, HeapTuple, TupleDesc) {
        if (name == nullptr && row.attnum > 0 && !row.attisdropped && accepts(row.atttypid))
          name = pstrdup(NameStr(row.attname));
      });
  return name;
}

const char* find_column_of(Oid relation, Oid label_type) {
  return find_column(relation, [=](Oid type) { return contains_type(type, label_type); });
}

// A column of the table that can become a key of the filter by an implicit cast, for example to
// text.
const char* find_cast_column(Oid table, Oid filter, Oid label_type) {
  return find_column(table, [=](Oid source) {
    if (!contains_type(source, label_type)) return false;
    const auto takes = [&source](Oid type) {
      return can_coerce_type(1, &source, &type, COERCION_IMPLICIT);
    };
    return find_column(filter, takes) != nullptr;
  });
}

void refuse_rename(const AlterEnumStmt* statement, Oid type, Oid filter, const char* column,
                   Oid table) {
  const char* filter_name = get_rel_name(filter);
  const char* table_name = OidIsValid(table) ? get_rel_name(table) : "";
  if (filter_name == nullptr || table_name == nullptr) return;  // dropped just now
  ereport(
      ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
      errmsg("cannot rename label \"%s\" of type %s", statement->oldVal, format_type_be(type)),
      errdetail("Filter \"%s\" remembers labels of column \"%s\"%s%s%s: rows with the new label "
                "would count as new, and rows of a later value with the former label as "
                "repeats.",
                filter_name, column, *table_name ? " of table \"" : "", table_name,
                *table_name ? "\"" : ""),
      errhint("Type: ALTER TYPE %s ADD VALUE %s AFTER %s; and use that label from now on. If the "
              "former one must have another name, drop the filter before, and afterwards create "
              "it again and fill it with streamfilter_warm().",
              format_type_be(type), quote_literal_cstr(statement->newVal),
              quote_literal_cstr(statement->oldVal)));
}

}  // namespace

void check_renamed_label(Node* node) {
  if (!IsA(node, AlterEnumStmt) || castNode(AlterEnumStmt, node)->oldVal == nullptr) return;
  const auto* statement = castNode(AlterEnumStmt, node);
  const Oid type = find_type(statement->typeName);
  if (!OidIsValid(type)) return;
  ListCell* cell;
  foreach (cell, list_filters())
    if (const char* column = find_column_of(lfirst_oid(cell), type))
      refuse_rename(statement, type, lfirst_oid(cell), column, InvalidOid);
  foreach (cell, find_triggers()) {
    const auto* row = static_cast<const TriggerRow*>(lfirst(cell));
    if (const char* column = find_cast_column(row->table, row->binding.filter, type))
      refuse_rename(statement, type, row->binding.filter, column, row->table);
  }
}

}  // namespace streamfilter::pg
