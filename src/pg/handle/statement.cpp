// Hooks keep a stack of running queries and utility statements: COPY inserts without a query.
#include "pg/server/postgres.hpp"

extern "C" {
#include "commands/copy.h"
#include "tcop/pquery.h"
}

#include "pg/handle/filter_handle.hpp"
#include "pg/handle/statement.hpp"

namespace streamfilter::pg {

uint64 running_statement = 0;
uint64 running_query = 0;

namespace {

const Frame* top = nullptr;
uint64 statements = 0, queries = 0;

// The query that ran last. Its finish phase still belongs to the same statement.
Frame last = {};

// The statement that rules have rewritten to several queries, and how many have run.
struct {
  Portal portal;
  const List* queries;
  TimestampTz start;
  int place;
  uint64 number;
} multiplied = {};

int place_in_portal(const QueryDesc* query) {
  if (ActivePortal == nullptr || ActivePortal->strategy != PORTAL_MULTI_QUERY) return -1;
  for (int i = 0; i < list_length(ActivePortal->stmts); ++i)
    if (list_nth(ActivePortal->stmts, i) == query->plannedstmt) return i;
  return -1;
}

uint64 statement_number(const QueryDesc* query) {
  const int place = place_in_portal(query);
  if (place < 0) return ++statements;
  // The queries run in order, so the first query of another run is not mistaken for the next one of
  // this run.
  const bool goes_on = multiplied.portal == ActivePortal &&
                       multiplied.queries == ActivePortal->stmts &&
                       multiplied.start == ActivePortal->creation_time && place > multiplied.place;
  multiplied = {ActivePortal, ActivePortal->stmts, ActivePortal->creation_time, place,
                goes_on ? multiplied.number : ++statements};
  return multiplied.number;
}

// Not inlined: otherwise compilers warn about variables of PG_TRY.
pg_noinline void push(const Frame* frame) {
  top = frame;
  running_statement = frame->number;
  running_query = frame->query_number;
}

// Does it put rows into tables? Those of filters are none.
bool changes_tables(const Frame& frame) {
  if (frame.query == nullptr)
    return IsA(frame.statement, CopyStmt) || IsA(frame.statement, CreateTableAsStmt);
  const PlannedStmt* statement = frame.query->plannedstmt;
  for (int i = -1; (i = SF_NEXT_RESULT_RELATION(statement, i)) >= 0;)
    if (rt_fetch(i, statement->rtable)->relkind != RELKIND_FOREIGN_TABLE) return true;
  return false;
}

pg_noinline void pop(const Frame& frame) {
  const Frame* below = frame.below;
  if (below != nullptr && below->fired == frame.fired && !below->stores)
    below->stores = frame.stores || changes_tables(frame);
  last = frame;
  top = frame.below;
  running_statement = top == nullptr ? 0 : top->number;
  running_query = top == nullptr ? 0 : top->query_number;
}

// Runs no other statement, and fires no trigger.
bool is_plain(const Node* statement) {
  return IsA(statement, TransactionStmt) || IsA(statement, VariableSetStmt) ||
         IsA(statement, VariableShowStmt);
}

// ---- what streamfilter.report says after a top-level statement

void begin_statement_report() {
  if (likely(!report && !collects_judged_rows)) return;
  flush_counters();  // counts of earlier statements
  collect_judged_rows(report);
}

// May raise what sending a message can raise.
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

// Runs the statement with its frame on the stack.
template <typename Call>
void go_on_in(const Frame& frame, Call* call) {
  if (top == nullptr) begin_statement_report();
  push(&frame);
  PG_TRY();
  {
    call->go_on();
    if (unlikely(pending_rows != nullptr)) kUpwardCalls.on_end(frame.query_number);
  }
  PG_FINALLY();
  {
    if (unlikely(pending_rows != nullptr)) kUpwardCalls.on_error(frame.query_number);
    pop(frame);
  }
  PG_END_TRY();
  publish_counts();
}

}  // namespace

void track_run(RunCall* call) {
  auto* query = call->get<QueryDesc*>();
  const Frame frame = {query,     nullptr,         nullptr, statement_number(query),
                       ++queries, trigger_depth(), top,     call->get<uint64>()};
  go_on_in(frame, call);
}

// Data-modifying CTEs whose output nobody reads run here.
void track_finish(FinishCall* call) {
  auto* query = call->get<QueryDesc*>();
  const bool goes_on = query == last.query;
  const Frame frame = {query,
                       nullptr,
                       nullptr,
                       goes_on ? last.number : ++statements,
                       goes_on ? last.query_number : ++queries,
                       trigger_depth(),
                       top};
  go_on_in(frame, call);
  last.query = nullptr;  // another query may get the same address
  if (top == nullptr) end_statement_report();
}

void track_utility(UtilityCall* call) {
  Node* statement = statement_of(call);
  if (is_plain(statement)) return call->go_on();
  Copied copied = {};
  copied.command = GetCurrentCommandId(false);
  if (const auto* copy = IsA(statement, CopyStmt) ? castNode(CopyStmt, statement) : nullptr) {
    copied.pauses = copy->filename == nullptr || copy->is_program;
    copied.chooses = copy->whereClause != nullptr;
  }
  const Frame frame = {nullptr,      statement, IsA(statement, CopyStmt) ? &copied : nullptr,
                       ++statements, ++queries, trigger_depth(),
                       top};
  go_on_in(frame, call);
  if (auto* completion = call->get<QueryCompletion*>()) completion->nprocessed += copied.rows;
}

void end_tracked() {
  if (top == nullptr) end_statement_report();
}

const Frame* innermost_frame() { return top; }

const Frame* last_frame() { return &last; }

bool is_within_statement() { return top != nullptr && top->below != nullptr; }

void** kept_for_copy() {
  return top == nullptr || top->copy == nullptr ? nullptr : &top->copy->kept;
}

CommandId command_of_copy() { return top->copy->command; }

void copy_never_pauses() { top->copy->pauses = false; }

void count_copied(uint64 rows) { top->copy->rows += rows; }

}  // namespace streamfilter::pg
