#include "pg/server/postgres.hpp"

extern "C" {
#include "catalog/pg_class.h"
}

#include "pg/catalog/option_list.hpp"
#include "pg/trigger/crash_warning.hpp"

namespace streamfilter::pg {
namespace {

void warn(const char* summary, const char* detail, const FilterRelation* filter,
          const char* fitting) {
  const bool given = find_option(options_of_filter(filter->relid), "persistence") != nullptr;
  ereport(WARNING, errmsg_internal("%s", summary), errdetail_internal("%s", detail),
          is_remote(filter)
              ? 0
              : errhint("ALTER FOREIGN TABLE %s OPTIONS (%s persistence '%s') makes them alike.",
                        quote_identifier(filter->name), given ? "SET" : "ADD", fitting));
}

}  // namespace

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

}  // namespace streamfilter::pg
