#include "pg/server/postgres.hpp"

#include "pg/handle/filter_handle.hpp"
#include "pg/handle/judged_rows.hpp"
#include "pg/server/settings.hpp"
#include "pg/trigger/statement_report.hpp"

namespace streamfilter::pg {

void begin_statement_report() {
  if (likely(!report && !verbose && !collects_judged_rows)) return;
  flush_counters();  // counts of earlier statements
  collect_judged_rows(report || verbose);
}

void end_statement_report() {
  if (likely(!collects_judged_rows)) return;
  // COMMIT judges nothing, and leaves no transaction for name look-ups.
  if (IsTransactionState()) {
    flush_counters();
    for (int i = 0; i < judged_filters(); ++i) {
      const JudgedRows& rows = judged_by(i);
      const char* name = get_rel_name(rows.filter);
      if (const char* text = describe_judged_rows(rows); text != nullptr && name != nullptr)
        ereport(NOTICE, errmsg("filter \"%s\": %s", name, text));
    }
  }
  collect_judged_rows(false);
}

}  // namespace streamfilter::pg
