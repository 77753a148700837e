#include "pg/server/postgres.hpp"

#include "pg/catalog/lookup.hpp"
#include "pg/catalog/option_list.hpp"
#include "pg/handle/slot_lifecycle.hpp"
#include "pg/handle/tree.hpp"
#include "pg/remote/remote_filter.hpp"
#include "pg/storage/image.hpp"
#include "pg/trigger/forgetful_filters.hpp"

namespace streamfilter::pg {
static void warn(const char* summary, const char* detail, const FilterRelation* filter,
                 const char* fitting) {
  const bool given = find_option(options_of_filter(filter->relid), "persistence") != nullptr;
  ereport(WARNING, errmsg_internal("%s", summary), errdetail_internal("%s", detail),
          is_remote(filter)
              ? 0
              : errhint("ALTER FOREIGN TABLE %s OPTIONS (%s persistence '%s'); makes them alike.",
                        qualified_name(filter->relid), given ? "SET" : "ADD", fitting));
}

// A filter on other servers outlives a crash of this one.
void warn_of_crash(Relation table, const FilterRelation* filter) {
  if (table->rd_rel->relkind == RELKIND_PARTITIONED_TABLE) return;  // has no rows of its own
  const char* name = RelationGetRelationName(table);
  const bool logged = is_remote(filter) || filter->options.persistence == Persistence::logged;
  switch (table->rd_rel->relpersistence) {
    case RELPERSISTENCE_PERMANENT:
      if (logged) return;
      return warn(psprintf(gettext_noop("filter \"%s\" is unlogged, but table \"%s\" is not"),
                           filter->name, name),
                  "A crash empties the filter, and repeats of the table's rows are accepted again.",
                  filter, "logged");
    case RELPERSISTENCE_UNLOGGED:
      if (!logged) return;
      return warn(psprintf(gettext_noop("table \"%s\" is unlogged, but filter \"%s\" is not"), name,
                           filter->name),
                  "A crash empties the table, and the filter goes on to take its rows for repeats.",
                  filter, "unlogged");
    default:
      if (!logged) return;
      return warn(
          psprintf(gettext_noop("table \"%s\" is temporary, but filter \"%s\" is logged"), name,
                   filter->name),
          "The table ends with its session, and the filter goes on to take its rows for repeats, "
          "even after a crash.",
          filter, "unlogged");
  }
}

// ---- filling a filter ---------------------------------------------------------------------------

namespace {

bool knows_nothing(const FilterRelation* filter) {
  if (shared_state == nullptr || transaction_uses_filters || is_remote(filter) ||
      is_in_tree(filter->relid))
    return false;
  const FilterSlot* slot = peek_slot(filter);
  if (slot == nullptr) return !is_anything_saved(filter->relid);
  return slot->saved.restored == 0 &&
         pg_atomic_read_u64(const_cast<pg_atomic_uint64*>(&slot->applied)) == 0;
}

bool has_visible_row(Oid relid) {
  Relation table = try_table_open(relid, AccessShareLock);
  if (table == nullptr) return false;
  bool found = false;
  if (table->rd_rel->relkind == RELKIND_RELATION) {
    Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
    TupleTableSlot* row = table_slot_create(table, nullptr);
    TableScanDesc scan = SF_TABLE_BEGINSCAN(table, snapshot);
    found = table_scan_getnextslot(scan, ForwardScanDirection, row);
    table_endscan(scan);
    ExecDropSingleTupleTableSlot(row);
    UnregisterSnapshot(snapshot);
  }
  table_close(table, NoLock);
  return found;
}

bool has_rows(Relation table) {
  for (const Oid child :
       each_oid(find_all_inheritors(RelationGetRelid(table), AccessShareLock, nullptr)))
    if (has_visible_row(child)) return true;
  return false;
}

const char* quoted_name(Oid relid) { return quote_literal_cstr(qualified_name(relid)); }

// The argument `columns`, needed if the table's names differ from the filter's.
const char* columns_of(Relation table, const TriggerPlan* plan) {
  TextBuffer columns;
  bool differs = false;
  for (int i = 0; i < plan->count; ++i) {
    const char* name =
        NameStr(TupleDescAttr(RelationGetDescr(table), plan->inputs[i].source)->attname);
    appendStringInfo(&columns, "%s%s", i ? ", " : ", ARRAY[", quote_literal_cstr(name));
    differs |= strcmp(name, plan->inputs[i].column->name) != 0;
  }
  appendStringInfoChar(&columns, ']');
  return differs ? columns.data : "";
}

void report_unknown_rows(int level, bool unknown, Relation table, const TriggerPlan* plan,
                         const FilterRelation* filter) {
  if (!has_rows(table)) return;
  ereport(level,
          errmsg(unknown ? "table \"%s\" has rows that filter \"%s\" does not know"
                         : "table \"%s\" has rows that filter \"%s\" may not know",
                 RelationGetRelationName(table), filter->name),
          errhint("SELECT streamfilter_warm(%s, %s%s); fills it.", quoted_name(filter->relid),
                  quoted_name(RelationGetRelid(table)), columns_of(table, plan)));
}

}  // namespace

bool is_new(Oid filter) { return latest_slot(filter) == nullptr && !is_anything_saved(filter); }

void warn_of_unknown_rows(Relation table, const TriggerPlan* plan, const FilterRelation* filter) {
  if (!is_restoring() && !is_remote(filter) && !is_in_tree(filter->relid))
    report_unknown_rows(WARNING, true, table, plan, filter);
}

void hint_to_fill(const Trigger* trigger, Relation table, const TriggerPlan* plan,
                  const FilterRelation* filter, bool attached) {
  const bool unknown = knows_nothing(filter);
  if (attached ? transaction_uses_filters : trigger->tgisclone || !unknown) return;
  report_unknown_rows(NOTICE, unknown, table, plan, filter);
}

}  // namespace streamfilter::pg
