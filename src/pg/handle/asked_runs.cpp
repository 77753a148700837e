// A cursor's query runs once for each FETCH, and perhaps once more at COMMIT. What it has asked
// before the first run's end is not known when it is planned, because functions may ask. So a query
// is noted when it, or what it calls, asks for the first time in a run; the note lies in its
// memory, and goes with it however it ends.
#include "pg/server/postgres.hpp"

extern "C" {
#include "catalog/pg_class.h"
#include "commands/defrem.h"
#include "nodes/parsenodes.h"
#include "parser/parsetree.h"
#include "tcop/pquery.h"
}

#include "pg/handle/asked_runs.hpp"
#include "pg/handle/lost_rows.hpp"
#include "pg/server/compat.hpp"
#include "pg/server/settings.hpp"

namespace streamfilter::pg {

struct AskedRun {
  AskedRun* next;
  MemoryContextCallback end;
  const EState* estate;  // the query's, which lives as long
  Oid filter;
  bool finished;  // the query has given its last row
  bool ahead;     // more rows were fetched than a loop may take
};
AskedRun* asked_runs = nullptr;

namespace {

// ---- the error ----------------------------------------------------------------------------------

constexpr char kChoose[] =
    "Choose the rows first, and ask the filter then: WITH new AS MATERIALIZED (SELECT ...) "
    "SELECT * FROM new WHERE NOT streamfilter_seen(...).";
constexpr char kStore[] =
    "Store the rows in the same statement: WITH new AS MATERIALIZED (SELECT ... WHERE NOT "
    "streamfilter_seen(...)), stored AS (INSERT INTO ... SELECT * FROM new) SELECT ... FROM new. "
    "To count only, use streamfilter_test().";
constexpr char kLock[] =
    "Lock the rows first, and ask then: WITH locked AS MATERIALIZED (SELECT ... FOR UPDATE) "
    "SELECT * FROM locked WHERE NOT streamfilter_seen(...).";

struct LossText {
  const char* what;
  const char* hint = kChoose;
  const char* reason = nullptr;  // what has one must never ask
};

constexpr LossText kTexts[] = {
    {""},
    {"LIMIT or OFFSET leaves out rows"},
    {"DISTINCT, GROUP BY or a set operation leaves out rows"},
    {"An aggregate takes in rows", kStore},
    {"A join leaves out rows without a partner, or reads them again,"},
    {"Another condition leaves out rows"},
    {"The expression around it leaves out rows",
     "Write NOT streamfilter_seen(...) as a condition of its own, the last one."},
    {"A set-returning function may leave out rows"},
    {"EXISTS, IN, ANY or another expression only looks at rows"},
    {"ON CONFLICT leaves out rows", "Leave it to a trigger of the table, streamfilter_discard()."},
    {"MERGE leaves out rows without an action",
     "Ask in the action: WHEN NOT MATCHED AND NOT streamfilter_seen(...) THEN INSERT."},
    {"SKIP LOCKED leaves out rows"},
    {"EXPLAIN ANALYZE gives out no rows", "Leave out ANALYZE, or explain what stores the rows."},
    {"MOVE, or FETCH of a later row, passes over rows", "FETCH all rows in their order."},
    {"A query that is not read to its end leaves out rows", "Read it to its end."},
    {"a statement that locks rows", kLock,
     "If another transaction has changed a row, its conditions are evaluated again: the filter "
     "would then call it a repeat, and the row would be lost."},
    {"a cursor held over COMMIT",
     "Store the rows by one INSERT INTO ... SELECT, or COMMIT after the loop.",
     "COMMIT would read its query to the end, and the filter remember all rows: those that are "
     "not stored after that would be lost."},
    {"a materialized view", "Store the rows in a table by INSERT INTO ... SELECT.",
     "REFRESH would throw away the rows that it has, which are repeats then."},
};
static_assert(lengthof(kTexts) == static_cast<int>(Loss::materialized) + 1, "one for each Loss");

// Name of a filter by the first argument of a call.
const char* filter_name(const Node* filter) {
  if (filter == nullptr || !IsA(filter, Const)) return nullptr;
  const auto* value = reinterpret_cast<const Const*>(filter);
  return value->constisnull ? nullptr : get_rel_name(DatumGetObjectId(value->constvalue));
}

// `function`: what asks in the query's place; nullptr: the query does.
void report_loss(Loss loss, const char* name, const char* function) {
  const char* filter = name == nullptr ? "a filter" : psprintf("filter \"%s\"", name);
  const LossText& text = kTexts[static_cast<int>(loss)];
  if (text.reason != nullptr)
    ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
            errmsg("%s cannot ask %s", text.what, filter), errdetail_internal("%s", text.reason),
            errhint("%s streamfilter_test() remembers nothing.", text.hint));
  const bool refused = lost_rows_setting == LostRowsSetting::error;
  const char* asker = function == nullptr ? "streamfilter_seen()" : psprintf("%s()", function);
  ereport(refused ? ERROR : WARNING,
          errcode(refused ? ERRCODE_FEATURE_NOT_SUPPORTED : ERRCODE_WARNING),
          errmsg("query may discard rows that %s remembers", filter),
          errdetail("%s after %s has remembered them; from then on they are repeats.", text.what,
                    asker),
          errhint("%s", text.hint));
}

// ---- what a utility statement plans for ---------------------------------------------------------

// EXPLAIN may not execute the query, or not give out its rows. A plan of EXPLAIN EXECUTE may be
// kept; EXPLAIN CREATE TABLE AS stores its rows.
bool only_plans(const ExplainStmt* explain) {
  const auto* query = castNode(Query, explain->query);
  if (query->commandType == CMD_UTILITY && IsA(query->utilityStmt, ExecuteStmt)) return false;
  ListCell* cell;
  foreach (cell, explain->options) {
    auto* option = lfirst_node(DefElem, cell);
    if (strcmp(option->defname, "analyze") == 0 && defGetBoolean(option)) return false;
  }
  return true;
}

// What becomes of the rows of a query that the statement runs.
Loss loss_by(const Node* statement) {
  bool lost = false;
  if (IsA(statement, ExplainStmt)) {
    const auto* query = castNode(Query, reinterpret_cast<const ExplainStmt*>(statement)->query);
    return query->commandType == CMD_UTILITY ? loss_by(query->utilityStmt) : Loss::explain;
  }
  if (IsA(statement, DeclareCursorStmt)) {
    lost = reinterpret_cast<const DeclareCursorStmt*>(statement)->options & CURSOR_OPT_HOLD;
    return lost ? Loss::held : Loss::none;
  }
  if (IsA(statement, CreateTableAsStmt))
    lost = reinterpret_cast<const CreateTableAsStmt*>(statement)->objtype == OBJECT_MATVIEW;
  return lost || IsA(statement, RefreshMatViewStmt) ? Loss::materialized : Loss::none;
}

// The same for the statement that runs one.
Loss loss_by(const Frame* frame) {
  return frame == nullptr || frame->statement == nullptr ? Loss::none : loss_by(frame->statement);
}

pg_noinline void look_at_plan(const PlannedStmt* statement) {
  const Frame* frame = innermost_frame();
  if (statement->planTree == nullptr) return;
  if (frame != nullptr && frame->statement != nullptr && IsA(frame->statement, ExplainStmt) &&
      only_plans(reinterpret_cast<const ExplainStmt*>(frame->statement)))
    return;
  const Loss runs = loss_by(frame);
  const bool reads = runs == Loss::explain && statement->commandType == CMD_SELECT;
  LostRows lost = find_lost_rows(statement, {reads ? runs : Loss::none, false, false});
  if (!lost.asks) return;
  if (runs == Loss::held || runs == Loss::materialized) lost.loss = runs;
  if (lost.loss != Loss::none) report_loss(lost.loss, filter_name(lost.filter), nullptr);
}

// ---- queries that run ---------------------------------------------------------------------------

AskedRun* find_run(const QueryDesc* query) {
  AskedRun* run = asked_runs;
  while (run != nullptr && run->estate != query->estate) run = run->next;
  return run;
}

void forget_run(void* run) {
  AskedRun** place = &asked_runs;
  while (*place != run) place = &(*place)->next;
  *place = (*place)->next;
}

AskedRun* note_run(const QueryDesc* query, Oid filter) {
  MemoryContext memory = query->estate->es_query_cxt;
  auto* run = static_cast<AskedRun*>(MemoryContextAllocZero(memory, sizeof(AskedRun)));
  run->estate = query->estate;
  run->filter = filter;
  run->end = {forget_run, run, nullptr};
  MemoryContextRegisterResetCallback(memory, &run->end);
  run->next = asked_runs;
  asked_runs = run;
  return run;
}

bool is_cursor_of(const QueryDesc* query) {
  return ActivePortal != nullptr && ActivePortal->queryDesc == query;
}

// Do the rows of this run go to the one who asks for them?
void check_destination(const AskedRun* run, const QueryDesc* query) {
  if (!is_cursor_of(query)) return;
  const CommandDest rows_to = query->dest->mydest;
  if (rows_to == DestTuplestore && ActivePortal->holdStore != nullptr)
    report_loss(Loss::held, get_rel_name(run->filter), nullptr);
  if (rows_to == DestNone) report_loss(Loss::moved, get_rel_name(run->filter), nullptr);
}

// Does the statement itself ask a filter, or insert into one?
bool gives_keys(const PlannedStmt* statement) {
  for (int i = -1; (i = SF_NEXT_RESULT_RELATION(statement, i)) >= 0;)
    if (rt_fetch(i, statement->rtable)->relkind == RELKIND_FOREIGN_TABLE) return true;
  return has_seen_call(statement);
}

// `fired`: it has not asked itself, but a trigger that its rows have fired. That sees rows which
// are stored, or ON CONFLICT leaves them out.
void look_at_asker(const Frame* frame, const FilterHandle* filter, bool fired) {
  const char* name = filter->relation->name;
  const QueryDesc* query = frame->query;
  if (query == nullptr) {
    if (loss_by(frame) == Loss::materialized) report_loss(Loss::materialized, name, nullptr);
    return;
  }
  if (query->operation == CMD_SELECT) {
    const AskedRun* run = find_run(query);
    check_destination(run != nullptr ? run : note_run(query, filter->relid), query);
  }
  if (frame == innermost_frame() && gives_keys(query->plannedstmt)) return;
  const bool reads = query->operation == CMD_SELECT && loss_by(frame->below) == Loss::explain;
  const LostRows lost =
      find_lost_rows(query->plannedstmt, {reads ? Loss::explain : Loss::none, false, true});
  if (lost.loss == Loss::none || (fired && lost.loss != Loss::conflict)) return;
  report_loss(lost.loss, name, lost.function);
}

// Would the rest of the rows have been asked about?
bool has_read_ahead(const AskedRun* run, const PlannedStmt* statement) {
  if (run->ahead || run->finished) return run->ahead;
  return find_lost_rows(statement, {Loss::none, true, false}).loss != Loss::none ||
         find_lost_rows(statement, {Loss::none, true, true}).loss != Loss::none;
}

}  // namespace

PlannedStmt* look_for_lost_rows(PlannerCall* call) {
  PlannedStmt* statement = call->go_on();
  // A plan lists the functions that are not PostgreSQL's own.
  if (unlikely(statement->invalItems != NIL)) look_at_plan(statement);
  return statement;
}

void look_at_askers(const FilterHandle* filter) {
  const int depth = trigger_depth();
  for (const Frame* frame = innermost_frame(); frame != nullptr && !frame->asks;
       frame = frame->below) {
    frame->asks = true;
    look_at_asker(frame, filter, frame->fired < depth);
  }
}

void begin_asked_run(const RunCall* call) {
  const auto* query = call->get<QueryDesc*>();
  if (const AskedRun* run = find_run(query)) check_destination(run, query);
}

// PL/pgSQL's loops fetch ten rows and more at a time, and once more at the end.
void end_asked_run(const RunCall* call) {
  const auto* query = call->get<QueryDesc*>();
  AskedRun* run = find_run(query);
  if (run == nullptr || call->get<ScanDirection>() == BackwardScanDirection) return;
  const uint64 count = call->get<uint64>(), rows = query->estate->es_processed;
  run->finished = run->finished || count == 0 || rows < count;
  run->ahead = count > 1 && rows > 1 && is_cursor_of(query) && ActivePortal->portalPinned;
}

void finish_query(FinishCall* call) {
  if (unlikely(asked_runs != nullptr)) {
    const auto* query = call->get<QueryDesc*>();
    const AskedRun* run = find_run(query);
    if (run != nullptr && has_read_ahead(run, query->plannedstmt))
      report_loss(Loss::left, get_rel_name(run->filter), nullptr);
  }
  track_finish(call);
}

}  // namespace streamfilter::pg
