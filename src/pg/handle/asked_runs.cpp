// A cursor's query runs once for each FETCH, and perhaps once more at COMMIT. What it has asked
// before the first run's end is not known when it is planned, because functions may ask. So a query
// is noted when it, or what it calls, asks for the first time in a run.
//
// A query that has asked about rows which nobody has read yet owes them, from the subtransaction on
// in which it has asked: until it is read to its end, or that rolls back, which forgets the keys.
// The query may end before, by an error that a savepoint catches; so its debt is noted in the
// transaction's memory, and a transaction with debts does not commit.
//
// Whether a function stores the rows that it asks about is seen when the query that calls it has
// run: if so, statements within it have changed tables.
#include "pg/server/postgres.hpp"

#include <dlfcn.h>

extern "C" {
#include "commands/defrem.h"
#include "plpgsql.h"
#include "tcop/pquery.h"
}

#include "pg/handle/asked_runs.hpp"
#include "pg/handle/lost_rows.hpp"
#include "pg/key/hash_method.hpp"
#include "pg/server/settings.hpp"

namespace streamfilter::pg {

// Between an INSERT and its rows: sees whether each of them was stored.
struct Gate {
  Gate* next;
  PlanState* rows;
  ExecProcNodeMtd give;
  bool given;        // a row, whose fate is known when the next one is asked for
  uint64 processed;  // by the query, before that
  bool counts;       // the INSERT counts its rows because of us only
};

struct AskedRun {
  AskedRun* next;
  MemoryContextCallback end, closed;
  const EState* estate;  // the query's, which lives as long; nullptr: it has ended
  const FilterHandle* filter;
  int level;  // nesting level of the transaction that owes rows; 0: none does
  bool looked, reads_ahead;
  bool finished;   // the query has given its last row
  Portal portal;   // keeps the rows of the finished query
  Loss suspected;  // of rows that a function asks about
  const char* function;
  uint64 accepted;  // keys, before it did
  Gate* gates;
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
    {"A second filter leaves out rows",
     "Ask both in the target list, and store all rows or choose by the answers: SELECT *, "
     "streamfilter_seen(...) AS a, streamfilter_seen(...) AS b."},
    {"The expression around it leaves out rows",
     "Write NOT streamfilter_seen(...) as a condition of its own, the last one."},
    {"A set-returning function may leave out rows"},
    {"EXISTS, IN, ANY or another expression only looks at rows"},
    {"ON CONFLICT leaves out rows",
     "Let only trigger streamfilter_discard() of the table ask, for new rows."},
    {"MERGE leaves out rows",
     "Ask in the action that stores them, with no other condition: WHEN NOT MATCHED AND NOT "
     "streamfilter_seen(...) THEN INSERT."},
    {"SKIP LOCKED leaves out rows"},
    {"EXPLAIN ANALYZE gives out no rows", "Leave out ANALYZE, or explain what stores the rows."},
    {"MOVE, or FETCH of a later row, passes over rows", "FETCH all rows in their order."},
    {"A query that is not read to its end leaves out rows", "Read it to its end."},
    {"A trigger of the target leaves out rows",
     "Let trigger streamfilter_discard() of the table ask, in place of the query."},
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

// The statement of a function in PL/pgSQL that runs the query; nullptr if none does. SPI's own
// context is the innermost.
const PLpgSQL_stmt* plpgsql_statement() {
  const ErrorContextCallback* caller =
      error_context_stack == nullptr ? nullptr : error_context_stack->previous;
  Dl_info found = {};
  if (caller == nullptr || dladdr(reinterpret_cast<void*>(caller->callback), &found) == 0 ||
      found.dli_fname == nullptr)
    return nullptr;
  const char* name = strrchr(found.dli_fname, '/');
  if (strncmp(name == nullptr ? found.dli_fname : name + 1, "plpgsql.", 8) != 0) return nullptr;
  return static_cast<const PLpgSQL_execstate*>(caller->arg)->err_stmt;
}

// ---- what a utility statement plans for ---------------------------------------------------------

// EXPLAIN may not execute the query, or not give out its rows. A plan of EXPLAIN EXECUTE may be
// kept; EXPLAIN CREATE TABLE AS stores its rows.
bool only_plans(const ExplainStmt* explain) {
  const auto* query = castNode(Query, explain->query);
  if (query->commandType == CMD_UTILITY && IsA(query->utilityStmt, ExecuteStmt)) return false;
  for (auto* option : each<DefElem>(explain->options)) {
    if (strcmp(option->defname, "analyze") == 0 && defGetBoolean(option)) return false;
  }
  return true;
}

// What becomes of the rows of a query that the statement runs.
Loss loss_by(const Node* statement) {
  bool lost = false;
  if (IsA(statement, ExplainStmt)) {
    const auto* query = castNode(Query, reinterpret_cast<const ExplainStmt*>(statement)->query);
    const bool creates =
        query->commandType == CMD_UTILITY && IsA(query->utilityStmt, CreateTableAsStmt);
    return creates ? loss_by(query->utilityStmt) : Loss::explain;
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

// EXPLAIN EXECUTE keeps the plan, whether or not it runs it.
bool explains_prepared(const Frame* frame) {
  const auto* explain = reinterpret_cast<const ExplainStmt*>(frame->statement);
  const auto* query = castNode(Query, explain->query);
  return query->commandType == CMD_UTILITY && IsA(query->utilityStmt, ExecuteStmt);
}

pg_noinline void look_at_plan(const PlannedStmt* statement) {
  const Frame* frame = innermost_frame();
  if (statement->planTree == nullptr) return;
  const bool explains =
      frame != nullptr && frame->statement != nullptr && IsA(frame->statement, ExplainStmt);
  if (explains && only_plans(reinterpret_cast<const ExplainStmt*>(frame->statement))) return;
  const Loss runs = loss_by(frame);
  const bool reads =
      runs == Loss::explain && statement->commandType == CMD_SELECT && !explains_prepared(frame);
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

void forget_run(AskedRun* run) {
  AskedRun** place = &asked_runs;
  while (*place != nullptr && *place != run) place = &(*place)->next;
  if (*place == nullptr) return;
  *place = run->next;
  pfree(run);
}

void end_query_of_run(void* argument) {
  auto* run = static_cast<AskedRun*>(argument);
  run->estate = nullptr;
  if (run->level == 0) forget_run(run);
}

void close_portal_of_run(void* argument) {
  auto* run = static_cast<AskedRun*>(argument);
  if (!run->portal->atEnd) return;
  run->level = 0;
  if (run->estate == nullptr) forget_run(run);
}

AskedRun* note_run(const QueryDesc* query, const FilterHandle* filter) {
  auto* run = allocate_zeros<AskedRun>(1, TopTransactionContext);
  run->estate = query->estate;
  run->filter = filter;
  run->end = {end_query_of_run, run, nullptr};
  MemoryContextRegisterResetCallback(query->estate->es_query_cxt, &run->end);
  run->next = asked_runs;
  asked_runs = run;
  return run;
}

const char* name_of(const AskedRun* run) { return get_rel_name(run->filter->relid); }

bool is_cursor_of(const QueryDesc* query) {
  return ActivePortal != nullptr && ActivePortal->queryDesc == query;
}

// Do the rows of this run go to the one who asks for them?
void check_destination(const AskedRun* run, const QueryDesc* query) {
  if (!is_cursor_of(query)) return;
  const CommandDest rows_to = query->dest->mydest;
  if (rows_to == DestTuplestore && ActivePortal->holdStore != nullptr)
    report_loss(Loss::held, name_of(run), nullptr);
  if (rows_to == DestNone) report_loss(Loss::moved, name_of(run), nullptr);
}

// Does the statement itself ask a filter, or insert into one?
bool gives_keys(const PlannedStmt* statement) {
  for (int i = -1; (i = SF_NEXT_RESULT_RELATION(statement, i)) >= 0;)
    if (rt_fetch(i, statement->rtable)->relkind == RELKIND_FOREIGN_TABLE) return true;
  return has_seen_call(statement);
}

// ---- triggers of the target ---------------------------------------------------------------------

// The row that was given before has been stored, if the INSERT has counted one.
TupleTableSlot* give_to_insert(PlanState* rows) {
  Gate* gate = nullptr;
  const AskedRun* run = asked_runs;
  for (; run != nullptr && gate == nullptr; run = gate == nullptr ? run->next : run)
    for (gate = run->estate == rows->state ? run->gates : nullptr;
         gate != nullptr && gate->rows != rows;)
      gate = gate->next;
  uint64* processed = &rows->state->es_processed;
  if (gate->given && *processed == gate->processed)
    report_loss(Loss::target, name_of(run), nullptr);
  if (gate->given && gate->counts && *processed > gate->processed) --*processed;
  TupleTableSlot* slot = gate->give(rows);
  // A node puts in its function at the first row.
  if (rows->ExecProcNode != give_to_insert) {
    gate->give = rows->ExecProcNode;
    rows->ExecProcNode = give_to_insert;
  }
  gate->given = !TupIsNull(slot);
  gate->processed = *processed;
  return slot;
}

// Repeats for a filter of the table itself are not lost.
bool may_drop_rows(const TriggerDesc* triggers) {
  if (triggers == nullptr ||
      !(triggers->trig_insert_before_row || triggers->trig_insert_instead_row))
    return false;
  for (int i = 0; i < triggers->numtriggers; ++i)
    if (is_own_function(triggers->triggers[i].tgfoid, "streamfilter_discard") ||
        is_own_function(triggers->triggers[i].tgfoid, "streamfilter_divert"))
      return false;
  return true;
}

// If the node below has begun, the question is about a row that it is about to give, unless
// RETURNING asks.
void put_gate(AskedRun* run, ModifyTableState* insert) {
  PlanState* rows = outerPlanState(insert);
  if (insert->operation != CMD_INSERT || !may_drop_rows(insert->rootResultRelInfo->ri_TrigDesc))
    return;
  const auto* plan = reinterpret_cast<const ModifyTable*>(insert->ps.plan);
  const bool asks = rows->ExecProcNode == rows->ExecProcNodeReal &&
                    !contain_volatile_functions(reinterpret_cast<Node*>(plan->returningLists));
  auto* gate = allocate_zeros<Gate>(1, run->estate->es_query_cxt);
  *gate = {run->gates,        rows, rows->ExecProcNode, asks, run->estate->es_processed,
           !insert->canSetTag};
  run->gates = gate;
  insert->canSetTag = true;
  rows->ExecProcNode = give_to_insert;
}

void put_gates(AskedRun* run, const QueryDesc* query) {
  if (run->gates != nullptr) return;
  if (IsA(query->planstate, ModifyTableState))
    put_gate(run, castNode(ModifyTableState, query->planstate));
  for (auto* part : each<ModifyTableState>(query->estate->es_auxmodifytables)) put_gate(run, part);
}

// ---- a query asks -------------------------------------------------------------------------------

// AFTER triggers fire when all is done. They see rows that are stored.
bool is_done(const QueryDesc* query) {
  const auto done = [](const PlanState* node) {
    return !IsA(node, ModifyTableState) || reinterpret_cast<const ModifyTableState*>(node)->mt_done;
  };
  for (const auto* part : each<PlanState>(query->estate->es_auxmodifytables))
    if (!done(part)) return false;
  return done(query->planstate);
}

// Rows of an INSERT fire a trigger that asks: ON CONFLICT leaves them out.
void look_at_fired(const QueryDesc* query, const char* name) {
  if (is_done(query)) return;
  const LostRows lost = find_lost_rows(query->plannedstmt, {Loss::none, false, true});
  if (lost.loss == Loss::conflict) report_loss(lost.loss, name, nullptr);
}

void look_at_asker(const Frame* frame, const FilterHandle* filter, bool own) {
  const char* name = filter->relation->name;
  const QueryDesc* query = frame->query;
  if (query == nullptr) {
    if (loss_by(frame) == Loss::materialized) report_loss(Loss::materialized, name, nullptr);
    return;
  }
  if (frame->fired < trigger_depth()) return look_at_fired(query, name);
  AskedRun* run = find_run(query);
  if (run == nullptr) run = note_run(query, filter);
  const bool selects = query->operation == CMD_SELECT;
  if (selects) {
    check_destination(run, query);
    const int level = GetCurrentTransactionNestLevel();
    run->level = run->level == 0 ? level : Min(run->level, level);
  }
  put_gates(run, query);
  const bool itself = own && gives_keys(query->plannedstmt);
  const bool reads = selects && loss_by(frame->below) == Loss::explain &&
                     (!itself || explains_prepared(frame->below));
  if (itself && !reads) return;
  const LostRows lost =
      find_lost_rows(query->plannedstmt, {reads ? Loss::explain : Loss::none, false, !itself});
  if (itself && lost.loss != Loss::none) report_loss(lost.loss, name, nullptr);
  if (itself || lost.loss == Loss::none) return;
  if (lost.loss == Loss::recheck) report_loss(lost.loss, name, lost.function);
  run->suspected = lost.loss;
  run->function = lost.function == nullptr
                      ? nullptr
                      : MemoryContextStrdup(TopTransactionContext, lost.function);
  run->accepted = accepted_by(filter);
}

// ---- what has been asked about, and is not read yet ---------------------------------------------

// Would the rest of the rows have been asked about?
bool reads_ahead(AskedRun* run, const PlannedStmt* statement) {
  if (!run->looked)
    run->reads_ahead = find_lost_rows(statement, {Loss::none, true, false}).loss != Loss::none ||
                       find_lost_rows(statement, {Loss::none, true, true}).loss != Loss::none;
  run->looked = true;
  return run->reads_ahead;
}

// A query that also changes tables runs to its end before its rows are read.
bool is_stored_for(Portal portal, const QueryDesc* query) {
  return portal != nullptr && portal->strategy == PORTAL_ONE_MOD_WITH &&
         query->dest->mydest == DestTuplestore && linitial(portal->stmts) == query->plannedstmt;
}

// PL/pgSQL's loops fetch ten rows and more at a time, and once more at the end.
void look_at_debt(AskedRun* run, const QueryDesc* query, uint64 count) {
  const uint64 rows = query->estate->es_processed;
  run->finished = run->finished || count == 0 || rows < count;
  const bool loops = count > 1 && rows > 1 && is_cursor_of(query) && ActivePortal->portalPinned;
  if (is_stored_for(ActivePortal, query)) {
    run->portal = ActivePortal;
    run->closed = {close_portal_of_run, run, nullptr};
    MemoryContextRegisterResetCallback(ActivePortal->portalContext, &run->closed);
  } else if (!loops && (run->finished || !reads_ahead(run, query->plannedstmt))) {
    run->level = 0;
  }
}

// PL/pgSQL's PERFORM keeps no row, and EXECUTE ... INTO one. PERFORM of one row that is made up,
// for FOUND, is a question like any other.
void check_thrown_away(const AskedRun* run, const QueryDesc* query, uint64 count) {
  if (query->dest->mydest != DestSPI || count != 0 || query->estate->es_processed == 0) return;
  const PLpgSQL_stmt* by = plpgsql_statement();
  const bool keeps_one =
      by == nullptr || by->cmd_type != PLPGSQL_STMT_PERFORM || IsA(query->planstate, ResultState);
  if (by == nullptr || (keeps_one && query->estate->es_processed < 2)) return;
  const bool itself = gives_keys(query->plannedstmt);
  const auto loses = [&](Loss top) {
    return find_lost_rows(query->plannedstmt, {top, false, !itself}).loss != Loss::none;
  };
  if (loses(Loss::left) && !loses(Loss::none)) report_loss(Loss::left, name_of(run), nullptr);
}

// A function that has changed tables stores what it asks about.
void check_suspicion(AskedRun* run) {
  const Loss suspected = run->suspected;
  run->suspected = Loss::none;
  if (suspected != Loss::none && !last_frame()->stores && accepted_by(run->filter) > run->accepted)
    report_loss(suspected, name_of(run), run->function);
}

void report_debt(AskedRun* run) {
  report_loss(Loss::left, name_of(run), nullptr);
  run->level = 0;
}

}  // namespace

PlannedStmt* look_for_lost_rows(PlannerCall* call) {
  PlannedStmt* statement = call->go_on();
  // A plan lists the functions that are not PostgreSQL's own.
  if (unlikely(statement->invalItems != NIL)) look_at_plan(statement);
  return statement;
}

// A query's own calls are in its memory, and those of other functions in that of their caller.
void look_at_askers(const FilterHandle* filter, MemoryContext from) {
  const Frame* frame = innermost_frame();
  // Of a query that calls only PostgreSQL's functions there is no frame: a domain's CHECK asks.
  const QueryDesc* query = ActivePortal == nullptr ? nullptr : ActivePortal->queryDesc;
  if (frame == nullptr && query != nullptr) {
    const LostRows lost = find_lost_rows(query->plannedstmt, {Loss::none, false, true});
    if (lost.loss != Loss::none) report_loss(lost.loss, filter->relation->name, lost.function);
  }
  bool own = from == nullptr || (frame != nullptr && frame->query != nullptr &&
                                 frame->query->estate->es_query_cxt == from);
  for (; frame != nullptr; frame = frame->below, own = false) {
    bool* told = own ? &frame->asks : &frame->hides;
    if (*told) return;
    *told = true;
    look_at_asker(frame, filter, own);
  }
}

void begin_asked_run(const RunCall* call) {
  const auto* query = call->get<QueryDesc*>();
  if (const AskedRun* run = find_run(query)) check_destination(run, query);
}

void end_asked_run(const RunCall* call) {
  const auto* query = call->get<QueryDesc*>();
  AskedRun* run = find_run(query);
  if (run == nullptr) return;
  const auto count = call->get<uint64>();
  check_suspicion(run);
  if (query->operation != CMD_SELECT || call->get<ScanDirection>() == BackwardScanDirection) return;
  check_thrown_away(run, query, count);
  if (run->level != 0) look_at_debt(run, query, count);
}

void finish_query(FinishCall* call) {
  const auto* query = call->get<QueryDesc*>();
  AskedRun* run = unlikely(asked_runs != nullptr) ? find_run(query) : nullptr;
  if (run != nullptr && run->level != 0 && run->portal == nullptr) report_debt(run);
  track_finish(call);
  if (likely(asked_runs == nullptr) || (run = find_run(query)) == nullptr) return;
  check_suspicion(run);
  if (run->portal == nullptr) run->level = 0;  // what has asked now changes tables
}

void check_debts() {
  for (AskedRun* run = asked_runs; run != nullptr; run = run->next)
    if (run->level != 0) report_debt(run);
}

void end_debts() { asked_runs = nullptr; }

void end_debts_of(int level, bool commits) {
  for (AskedRun *run = asked_runs, *next; run != nullptr; run = next) {
    next = run->next;
    if (run->level < level) continue;
    run->level = commits ? level - 1 : 0;
    if (run->level == 0 && run->estate == nullptr) forget_run(run);
  }
}

}  // namespace streamfilter::pg
