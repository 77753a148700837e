#include "pg/server/postgres.hpp"

#include "pg/handle/asked_runs.hpp"
#include "pg/trigger/divert.hpp"
#include "pg/trigger/judge_state.hpp"
#include "pg/trigger/judged_once.hpp"

namespace streamfilter::pg {
namespace {

[[noreturn]] void raise_judged_twice(const RowJudge* judge) {
  const FilterHandle* filter = judge->keys.filter;
  const char* trigger = judge->trigger->tgname;
  const char* table = RelationGetRelationName(judge->table);
  const bool asked = filter->last.asked_in >= judge->statement;
  ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
          errmsg("filter \"%s\" would judge a row twice", filter->relation->name),
          asked
              ? errdetail("The statement gives it keys by streamfilter_seen() or INSERT, which it "
                          "remembers; trigger \"%s\" of table \"%s\" would then take their rows "
                          "for repeats.",
                          trigger, table)
              : errdetail("The statement puts rows into another table whose trigger uses it, too; "
                          "trigger \"%s\" of table \"%s\" would take the same rows for repeats.",
                          trigger, table),
          asked ? errhint("Leave it to the trigger, or to the query while the trigger is disabled.")
                : errhint("Give the two tables different filters, or use two statements."));
  pg_unreachable();
}

[[noreturn]] void raise_diverted_twice(const RowJudge* judge) {
  ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
          errmsg("filter \"%s\" would judge a row twice", judge->keys.filter->relation->name),
          errdetail("It has called the row a repeat, which is being diverted; trigger \"%s\" of "
                    "table \"%s\" would take it for one again.",
                    judge->trigger->tgname, RelationGetRelationName(judge->table)),
          errhint("Divert repeats to a table without such a trigger."));
  pg_unreachable();
}

[[noreturn]] void raise_asked_twice(const FilterHandle* filter) {
  ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
          errmsg("filter \"%s\" would judge a row twice", filter->relation->name),
          errdetail("Rules have made several queries of the statement, and each gives the filter "
                    "the same keys; from the second on, all would be repeats."),
          errhint("Put what is new into a temporary table first, or use a trigger in place of the "
                  "rule."));
  pg_unreachable();
}

}  // namespace

void note_first_asked(FilterHandle* filter) {
  if (filter->last.asked_in == running_statement && running_statement != 0)
    raise_asked_twice(filter);
  look_at_askers(filter);
  filter->last.asked_in = running_statement;
  filter->last.asked_by = running_query;
}

void check_judged_once(const RowJudge* judge) {
  FilterHandle* filter = judge->keys.filter;
  if (unlikely(is_diverting(filter))) raise_diverted_twice(judge);
  const uint64 statement = judge->statement;
  if (unlikely(statement == 0)) return;
  if (unlikely(filter->last.asked_in >= statement || filter->last.fired_in > statement ||
               (filter->last.fired_in == statement && filter->last.fired_by != judge->created)))
    raise_judged_twice(judge);
  filter->last.fired_in = statement;
  filter->last.fired_by = judge->created;
}

}  // namespace streamfilter::pg
