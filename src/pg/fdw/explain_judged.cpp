// Adds a line per filter below the plan. PostgreSQL offers no place with the trigger's own line,
// and formats other than text have no place after the query.
#include "pg/server/postgres.hpp"

extern "C" {
#include "executor/instrument.h"
#include "tcop/tcopprot.h"
}

#include "pg/fdw/explain_judged.hpp"
#include "pg/handle/filter_handle.hpp"
#include "pg/handle/judged_report.hpp"

namespace streamfilter::pg {
namespace {

void append_judged_rows(ExplainState* es) {
  flush_counters();
  for (int i = 0; i < judged_filters(); ++i) {
    const JudgedRows& rows = judged_by(i);
    const char* name = get_rel_name(rows.filter);
    if (const char* text = describe_judged_rows(rows); text != nullptr && name != nullptr)
      appendStringInfo(es->str, "Filter %s: %s\n", quote_identifier(name), text);
  }
}

}  // namespace

void explain_judged_rows(ExplainCall* call) {
  auto* es = call->get<ExplainState*>();
  const bool wanted = es->analyze && es->format == EXPLAIN_FORMAT_TEXT;
  const bool collecting = collects_judged_rows;
  if (wanted && !collecting) {
    flush_counters();
    collect_judged_rows(true);
  }
  call->go_on();
  if (!wanted) return;
  append_judged_rows(es);
  if (!collecting) collect_judged_rows(false);
}

}  // namespace streamfilter::pg
